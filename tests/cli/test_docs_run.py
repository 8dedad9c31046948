"""The commands in the documents do what they say: each is run."""

import shlex
from pathlib import Path

import pytest

from tests.arch.test_docs import DOCUMENTS, ROOT, _commands
from tests.cli.calls import Run

NEED_NO_TRACE = ("replay schema", "replay queries", "replay hardware", "replay scenario")
RUNNABLE = [
    pytest.param(command, id=f"{path.relative_to(ROOT)}: {command}")
    for path in DOCUMENTS
    for command in _commands(path)
    if "sample_traces/" in command or command.startswith(NEED_NO_TRACE)
    if not command.startswith("replay export")  # writes files: tests/cli/test_export.py
    if "machines.yaml" not in command  # a file that the reader writes: tests/cli/test_hardware.py
]


def test_every_document_with_commands_shows_some_that_can_be_run() -> None:
    assert len(RUNNABLE) >= 5


@pytest.mark.parametrize("command", RUNNABLE)
def test_a_command_in_a_document_answers(command: str, run: Run, tmp_path: Path) -> None:
    words = shlex.split(command, comments=True)[1:]
    written = None
    if "-o" in words:
        at = words.index("-o") + 1
        written = tmp_path / words[at]
        words[at] = str(written)
    outcome = run(*words)
    assert outcome.code == 0, outcome.err
    assert outcome.out or (written is not None and written.stat().st_size)
