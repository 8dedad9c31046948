"""Exit codes and error lines: data on stdout, talk on stderr, one clear line each."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.calls import Run

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = "sample_traces/ddp8_h100"

USAGE, TRACE, SCENARIO = 2, 3, 4


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """A folder with one good trace among files that are none."""
    (tmp_path / "zero_bytes.json").write_bytes(b"")
    (tmp_path / "words.json").write_text("hello\n", encoding="utf-8")
    (tmp_path / "other.json").write_text('{"a": 1}', encoding="utf-8")
    (tmp_path / "no_events.json").write_text('{"traceEvents": []}', encoding="utf-8")
    shutil.copy(ROOT / "sample_traces/tiny/cpu_only.json", tmp_path / "good.json")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("missing.json", "no such file"),
        ("zero_bytes.json", "empty"),
        ("words.json", "not JSON"),
        ("other.json", "no traceEvents"),
        ("no_events.json", "no events"),
    ],
)
def test_what_is_no_trace_is_told_in_one_line(run: Run, bad: Path, name: str, word: str) -> None:
    outcome = run(bad / name)
    assert (outcome.code, outcome.out) == (TRACE, "")
    first, *rest = outcome.err.splitlines()
    assert first.startswith("error: ")
    assert name in first
    assert word in first
    assert rest == [] or rest[0] == ""


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        (["--nvlink", "900"], USAGE, "`900` is not a rate"),
        (["--nvlink", "fast"], USAGE, "`fast` is not a rate"),
        (["--nvlink", "0GBps"], USAGE, "above zero"),
        (["--gpu", "H1000"], SCENARIO, "no accelerator `H1000`"),
        (["--precision", "int3"], USAGE, "no precision `int3`"),
        (["--gpu", "A100", "--precision", "fp8"], SCENARIO, "do not take fp8"),
        (["--network-scale", "0"], USAGE, "no speed of a network"),
        (["--scale", "class:gemm"], USAGE, "has no factor"),
        (["--scale", "class:host=1e300"], USAGE, "is no factor"),
        (["--scale", "colour:red=2"], USAGE, "colour"),
        (["--steps", "5:3"], USAGE, "holds no step"),
        (["--steps", "99"], USAGE, "99"),
        (["--ranks", "9"], USAGE, "no file holds rank 9"),
        (["--unprofiled-step", "20"], USAGE, "`20` is not a time above zero"),
        (["--unprofiled-step", "-3ms"], USAGE, "`-3ms` is not a time above zero"),
        (["--unprofiled-step", "1ms"], SCENARIO, "no speed of the host makes this step 1.00 ms"),
        (["--nonsense"], USAGE, "No such option"),
        (["--format", "xml"], USAGE, "xml"),
        (["--scenario", "missing.yaml"], USAGE, "missing.yaml"),
        (["--base-gpu", "H100"], USAGE, "change nothing by themselves"),
        (["--nvlink", "x2", "--base-gpu", "H999"], SCENARIO, "H999"),
        (["--scale", "name:nothing*=2"], SCENARIO, "name:nothing*"),
        (["--remove", "class:gem"], SCENARIO, "class:gem"),
    ],
)
def test_a_wrong_option_ends_with_its_code_and_prints_no_data(
    run: Run, options: list[str], code: int, word: str
) -> None:
    outcome = run(SAMPLE, *options)
    assert (outcome.code, outcome.out) == (code, "")
    assert word in outcome.err
    assert "Traceback" not in outcome.err


def test_a_hint_stands_after_a_blank_line(run: Run) -> None:
    lines = run(SAMPLE, "--nvlink", "900").err.splitlines()
    assert lines[0] == "error: `900` is not a rate"
    assert lines[1] == ""
    assert lines[2].startswith("hint: ")


def test_bits_are_understood_as_bits(run: Run) -> None:
    outcome = run(SAMPLE, "--nvlink", "3600Gbps", "--json")
    assert json.loads(outcome.out)["prediction"]["scenario"] == ["nvlink 3600 Gbps = 450 GB/s"]


def test_good_files_answer_and_bad_ones_are_named(run: Run, bad: Path) -> None:
    outcome = run(bad, "--json")
    answer = json.loads(outcome.out)
    assert outcome.code == 0
    assert (answer["trace"]["files"], answer["trace"]["files_failed"]) == (1, 4)
    told = outcome.err.splitlines()
    assert len(told) == 4
    assert all(line.startswith("left out: ") for line in told)


def test_strict_makes_a_bad_file_an_error(run: Run, bad: Path) -> None:
    assert run(bad, "--strict").code == TRACE


def test_an_error_in_the_first_file_is_told_from_the_cache_as_well(run: Run, bad: Path) -> None:
    assert run(bad, "--json").err == run(bad, "--json").err != ""


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("reportt", "hint: did you mean the command report? replay report --help"),
        ("difff", "hint: did you mean the command diff? replay diff --help"),
        ("no/such/trace.json", ""),
    ],
)
def test_a_first_word_that_is_nearly_a_command_is_told(run: Run, word: str, hint: str) -> None:
    outcome = run(word, SAMPLE)
    assert (outcome.code, outcome.out) == (TRACE, "")
    first, *rest = outcome.err.splitlines()
    assert first == f"error: no such file: `{word}`"
    assert [line for line in rest if line] == ([hint] if hint else [])


def test_files_that_are_no_traces_are_one_line(run: Run, bad: Path) -> None:
    for number in range(40):
        (bad / f"c{number}.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (bad / "train.log").touch()
    outcome = run("schema", bad)
    assert outcome.code == 0
    told = outcome.err.splitlines()
    assert "left out: 41 files that are no traces (`c0.png`, ...)" in told
    names = ("zero_bytes.json", "words.json", "other.json", "no_events.json")
    assert len(told) == 1 + len(names)
    assert all(any(name in line for line in told) for name in names)
