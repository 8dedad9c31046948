"""The TAB key: what may stand next, and that each shell can be told."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from tests.cli.calls import ROOT, Run

COMMAND_LINE = f'exec "{sys.executable}" -m replay "$@"\n'


def _words(run: Run, *typed: str) -> list[str]:
    outcome = run("completion", "--words", "--", *typed)
    assert (outcome.code, outcome.err) == (0, "")
    return [line.partition("\t")[0] for line in outcome.out.splitlines()]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (("sw",), ["sweep"]),
        (("--v",), ["--version"]),
        (("sample_traces/dd",), ["sample_traces/ddp8_h100/"]),
        (("sample_traces/ddp8_h100/rank3",), ["sample_traces/ddp8_h100/rank3.json.gz"]),
        (("sample_traces/ddp8_h100/NOTHING",), []),
        (("no/such/folder/x",), []),
        (("a.json", "--nvl"), ["--nvlink"]),
        (("sweep", "a.json", "--mo"), ["--most"]),
        (("a.json", "--gpu", "H100-P"), ["H100-PCIE"]),
        (("a.json", "--base-gpu", "=", "h100-p"), ["H100-PCIE"]),
        (("solve", "a.json", "--speedup", ""), []),
        (("sql", "a.json", "--query", "late_r"), ["late_ranks"]),
        (("sql", "a.json", "--json", "--format", "ma"), ["markdown"]),
        (("queries", "kernel_ti"), ["kernel_times"]),
        (("hardware", ""), ["list", "show"]),
        (("hardware", "show", "nvlink4"), ["NVLink4"]),
        (("scenario", "docs/examples/nothing"), []),
        (("capture", "--step-is", ""), ["optimizer", "forward"]),
        (("capture", "--", "python", "READ"), ["README.md"]),
        (("capture", "--", "python", "train.py", "--nv"), []),
        (("completion", ""), []),
    ],
    ids=str,
)
def test_the_word_being_typed_may_become(
    run: Run, typed: tuple[str, ...], expected: list[str]
) -> None:
    assert _words(run, *typed) == expected


def test_the_first_word_is_a_command_or_a_trace(run: Run) -> None:
    words = _words(run, "")
    assert {"whatif", "sql", "capture", "sample_traces/"} <= set(words)
    assert "README.md" not in words


def test_hidden_options_are_not_offered(run: Run) -> None:
    assert _words(run, "completion", "--") == ["--help"]


def test_meanings_stand_after_a_tab(run: Run) -> None:
    found = run("completion", "--words", "--", "a.json", "--gpu", "H200-").out
    assert found == "H200-NVL\tH200 NVL 141 GB\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_lines(run: Run, shell: str) -> None:
    outcome = run("completion", shell)
    assert outcome.code == 0
    assert "completion --words --" in outcome.out


@pytest.mark.parametrize("shell", [("tcsh",), ("bash", "zsh")])
def test_an_unknown_shell_is_refused(run: Run, shell: tuple[str, ...]) -> None:
    outcome = run("completion", *shell)
    assert (outcome.code, outcome.out) == (2, "")
    assert "one of bash, zsh, fish" in outcome.err


@pytest.mark.skipif(which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["replay", "sample_traces/ddp8_h100", "--netw"], "--network-scale"),
        (["replay", "sample_traces/dd"], "sample_traces/ddp8_h100/"),
        (["replay", "a.json", "--gpu", "H100-N"], "H100-NVL"),
        (["replay", "my tr"], r"my\ traces/"),
    ],
)
def test_bash_completes(tmp_path: Path, words: list[str], expected: str) -> None:
    """The function is called as bash calls it when TAB is pressed."""
    program = tmp_path / "bin" / "replay"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{COMMAND_LINE}", encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "my traces").mkdir()
    (tmp_path / "sample_traces").symlink_to(ROOT / "sample_traces")
    quoted = " ".join(f"'{word}'" for word in words)
    script = (
        'compopt() { :; }; eval "$(replay completion bash)"; '
        f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _replay; "
        "printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=tmp_path,
        env={
            **os.environ,
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [expected]
