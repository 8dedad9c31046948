"""What is printed where: data on stdout, talk on stderr, progress only on a terminal."""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from time import perf_counter
from typing import TYPE_CHECKING

from ingest.errors import UserError

if TYPE_CHECKING:
    from rich.progress import Progress


def escape_what_cannot_be_shown() -> None:
    """On a terminal that is not UTF-8, a character that it lacks is shown as its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def show(text: str) -> None:
    """Data, as it is."""
    sys.stdout.write(text)


def width() -> int:
    """Columns of the terminal; 100 where the text goes elsewhere and nothing else is said."""
    return shutil.get_terminal_size((100, 24)).columns


def talk(text: str) -> None:
    """A line for the person."""
    sys.stderr.write(text + "\n")


def report(error: UserError) -> None:
    """The fact, and after a blank line the next step."""
    talk(f"error: {error}")
    if error.hint:
        talk(f"\nhint: {error.hint}")


_TRACE_ENDINGS = (".json", ".gz", ".zip", ".zst", ".trace", ".chrome")
_NO_TRACE = ("is not JSON", "file is empty")


def report_failed(failed: tuple[tuple[str, str], ...]) -> None:
    """One line for each file that was left out, and one for all that are not even called traces.

    A folder of traces holds pictures and logs as well.
    """
    others = [name for name, reason in failed if _is_other(name, reason)]
    for name, reason in failed:
        if len(others) > 1 and _is_other(name, reason):
            continue
        talk(f"left out: {reason}" if f"`{name}`" in reason else f"left out: {name}: {reason}")
    if len(others) > 1:
        talk(f"left out: {len(others):,} files that are no traces (`{others[0]}`, ...)")


def _is_other(name: str, reason: str) -> bool:
    """Neither its name nor its content is that of a trace."""
    named = name.lower().endswith(_TRACE_ENDINGS)
    return not named and any(words in reason for words in _NO_TRACE)


_SHOWN_AFTER_S = 1.0


@contextmanager
def progress() -> Iterator[Callable[[str, float], None]]:
    """A bar for what takes longer than a second; nothing where nobody watches."""
    if not sys.stderr.isatty():
        yield lambda _text, _share: None
        return
    bar = _Bar()
    try:
        yield bar.show
    finally:
        bar.end()


class _Bar:
    """Appears when it is known that there is something to wait for."""

    def __init__(self) -> None:
        self._began = perf_counter()
        self._shown: Progress | None = None

    def show(self, text: str, share: float) -> None:
        """Say what is being done, and which share of all is done."""
        if self._shown is None:
            if perf_counter() - self._began < _SHOWN_AFTER_S:
                return
            self._shown = self._made()
            self._shown.start()
        self._shown.update(self._shown.task_ids[0], description=text, completed=share)

    @staticmethod
    def _made() -> "Progress":
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        bar.add_task("reading traces", total=1.0)
        return bar

    def end(self) -> None:
        """Take it away."""
        if self._shown is not None:
            self._shown.stop()
