"""`replay export`: what it says, what it refuses, and that files are whole or not there."""

import gzip
import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.calls import ROOT, Run

SAMPLE = "sample_traces/ddp8_h100"
PAGE = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^replay (export sample_traces/.*)$", PAGE, re.MULTILINE)
USAGE, TRACE, SCENARIO = 2, 3, 4


def test_a_prediction_beside_the_recording_is_told_on_stderr(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "out.json.gz"
    outcome = run("export", SAMPLE, "--nvlink", "1800GBps", "-o", output)
    assert (outcome.code, outcome.out) == (0, "")
    lines = outcome.err.splitlines()
    assert lines[0] == "what-ifs: nvlink 1800 GB/s"
    assert lines[1] == "recorded  step 17.25 ms"
    assert lines[2].startswith("predicted step 15.")
    assert "slices and" in lines[-2]
    assert lines[-1] == "open it in ui.perfetto.dev or chrome://tracing"
    document = json.loads(gzip.decompress(output.read_bytes()))
    assert document["otherData"]["what_ifs"] == ["nvlink 1800 GB/s"]
    assert document["otherData"]["left_out"]["gpu_user_annotation"] == 272
    clocks = document["otherData"]["clocks"]
    assert [clock["rank"] for clock in clocks] == list(range(8))
    moved = any(clock["device_clock_offset_ns"] for clock in clocks)
    assert ("device rows are moved by" in outcome.err) == moved


def test_a_file_without_gz_is_not_compressed(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    assert run("export", "sample_traces/tiny/cpu_only.json", "-o", output).code == 0
    assert json.loads(output.read_text(encoding="utf-8"))["traceEvents"]


def test_ranks_are_cut(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    assert run("export", SAMPLE, "--ranks", "2,5", "--steps", "11", "-o", output).code == 0
    events = json.loads(output.read_text(encoding="utf-8"))["traceEvents"]
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names == {
        "run",
        *(f"rank {rank} {half}" for rank in (2, 5) for half in ("recorded", "replayed")),
    }


def test_execution_traces_tell_what_they_leave_out(run: Run, tmp_path: Path) -> None:
    outcome = run("export", SAMPLE, "--chakra", "-o", tmp_path / "et")
    assert (outcome.code, outcome.out) == (0, "")
    assert "104 members of collectives with a duration of their own" in outcome.err
    assert "of the step's critical path are lags" in outcome.err
    assert "17,662 nodes of 8 ranks written to" in outcome.err
    assert len(list((tmp_path / "et").glob("*.et"))) == 8


def test_a_table_is_counted(run: Run, tmp_path: Path) -> None:
    outcome = run("export", SAMPLE, "--table", "kernel", "-o", tmp_path / "kernel.parquet")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.startswith("1 table, 5,942 rows written to ")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_writes_what_it_names(run: Run, tmp_path: Path, command: str) -> None:
    *arguments, output = shlex.split(command)
    assert arguments[-1] == "-o"
    assert run(*arguments, tmp_path / output).code == 0
    assert (tmp_path / output).exists()


def test_the_example_of_the_page_is_true(run: Run) -> None:
    assert run("check", SAMPLE).code == 0  # the store is there, where tests keep theirs
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(compile(block, "docs/export.md", "exec"), {})


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        ([SAMPLE], USAGE, "Missing option '-o'"),
        ([SAMPLE, "-o", "nowhere/out.json"], USAGE, "`nowhere` is no folder"),
        ([SAMPLE, "-o", "out.jsonl"], USAGE, "`out.jsonl` is no folder"),
        ([f"{SAMPLE}/rank0.json.gz", "-o", f"{SAMPLE}/rank0.json.gz"], USAGE, "trace itself"),
        ([SAMPLE, "-o", "LICENSE"], USAGE, "is a file, no folder"),
        ([SAMPLE, "--chakra", "-o", "LICENSE"], USAGE, "is a file, no folder"),
        ([SAMPLE, "--chakra", "-o", "out.json"], USAGE, "is no folder"),
        (["missing.json", "-o", "out.json"], TRACE, "no such file"),
        ([SAMPLE, "--gpu", "H1000", "-o", "out.json"], SCENARIO, "no accelerator"),
        (
            [SAMPLE, "--base-nvlink", "450GBps", "-o", "out.json"],
            USAGE,
            "change nothing by themselves",
        ),
        ([SAMPLE, "--table", "kernel", "--gpu", "H200", "-o", "k.csv"], USAGE, "whole recorded"),
        ([SAMPLE, "--table", "kernel", "--ranks", "0", "-o", "k.csv"], USAGE, "whole recorded"),
        ([SAMPLE, "--table", "kernel", "--chakra", "-o", "k.csv"], USAGE, "whole recorded"),
    ],
)
def test_what_cannot_be_written_is_refused(
    run: Run, arguments: list[str], code: int, word: str
) -> None:
    before = sorted(path.name for path in Path().iterdir())
    outcome = run("export", *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert word in outcome.err
    assert sorted(path.name for path in Path().iterdir()) == before
