"""Running a program whose Python processes record themselves."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from .notes import Note, read_notes
from .settings import VARIABLE, Settings

INJECTED = Path(__file__).with_name("inject")
_SIGNALLED = 128
"""Shells add it to the signal that ended a program."""


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A program that has ended."""

    code: int
    """Its exit code; 128 + the signal that ended it."""
    notes: tuple[Note, ...]
    """Of the processes that loaded torch, by rank."""
    files: tuple[Path, ...]
    """The traces; plain ones are of processes that ended before they could compress them."""


def run(command: Sequence[str], settings: Settings) -> Ran:
    """Run a program to its end and collect what its processes tell.

    Raises:
        OSError: the program cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="replay-capture-") as notes:
        asked = replace(settings, notes=notes, folder=str(Path(settings.folder).absolute()))
        process = subprocess.Popen(command, env=environment(os.environ, asked))
        with _handed_on(process):
            code = process.wait()
        return Ran(
            code=_SIGNALLED - code if code < 0 else code,
            notes=tuple(read_notes(Path(notes))),
            files=tuple(traces_in(Path(settings.folder))),
        )


@contextmanager
def room_in(folder: Path) -> Iterator[None]:
    """The folder takes files; one that was not there is gone again where it got none.

    Raises:
        OSError: it cannot be made, or written: said before a program has run for hours.
    """
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        yield
    finally:
        for one in made:
            with suppress(OSError):
                one.rmdir()


def traces_in(folder: Path) -> list[Path]:
    """The files of ranks; none that are still being written."""
    return sorted([*folder.glob("rank*.json"), *folder.glob("rank*.json.gz")])


def environment(given: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """The variables of the program: as given, with the settings and the folder to import from."""
    paths = [str(INJECTED), *filter(None, [given.get("PYTHONPATH")])]
    return {**given, "PYTHONPATH": os.pathsep.join(paths), VARIABLE: settings.to_json()}


@contextmanager
def _handed_on(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Ctrl-C reaches the program by itself, and other signals by us; we outlive both."""

    def hand_on(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    def leave_to_it(_number: int, _frame: FrameType | None) -> None:
        sys.stderr.write("replay capture: waiting for the program to end\n")

    ours = {signal.SIGINT: leave_to_it, signal.SIGTERM: hand_on, signal.SIGHUP: hand_on}
    before = {number: signal.signal(number, action) for number, action in ours.items()}
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)
