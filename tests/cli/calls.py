"""A call of the command line in a test, and what became of it."""

from pathlib import Path
from typing import NamedTuple, Protocol

ROOT = Path(__file__).resolve().parents[2]


class Outcome(NamedTuple):
    """What a call printed and how it ended."""

    code: int
    out: str
    err: str


class Run(Protocol):
    """Runs `replay` with these arguments."""

    def __call__(self, *arguments: str | Path) -> Outcome: ...
