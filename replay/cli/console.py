"""What is printed where: data on stdout, talk on stderr, progress only on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper

from ingest.errors import UserError


def escape_what_cannot_be_shown() -> None:
    """On a terminal that is not UTF-8, a character that it lacks is shown as its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def show(text: str) -> None:
    """Data, as it is."""
    sys.stdout.write(text)


def talk(text: str) -> None:
    """A line for the person."""
    sys.stderr.write(text + "\n")


def report(error: UserError) -> None:
    """The fact, and after a blank line the next step."""
    talk(f"error: {error}")
    if error.hint:
        talk(f"\nhint: {error.hint}")


def report_failed(failed: tuple[tuple[str, str], ...]) -> None:
    """One line for each file that was left out."""
    for name, reason in failed:
        talk(f"left out: {name}: {reason}")


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A line that is overwritten while traces are read; nothing where nobody watches."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("reading traces") as status:
        yield status.update
