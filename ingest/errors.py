"""Mistakes that a person can mend: one line, a hint and an exit code."""

from difflib import get_close_matches
from typing import ClassVar


class UserError(Exception):
    """The fact and the place in one line; `hint` names the next step (may be empty)."""

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(UserError):
    """The command line or the SQL cannot be understood."""

    exit_code = 2


class TraceError(UserError):
    """There is no trace to read: missing, empty, not JSON, no events, or refused by `--strict`."""

    exit_code = 3


class ScenarioError(UserError):
    """The scenario does not fit this trace: unknown GPU, selector without a match, no base."""

    exit_code = 4


class GateError(UserError):
    """A gate that the person set was not met."""

    exit_code = 5


def nearest(name: str, known: list[str], *, limit: int = 3) -> str:
    """A hint with the known names nearest to `name`, or the first few when none is near."""
    lowered = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), list(lowered), n=limit, cutoff=0.4)
    names = [lowered[match] for match in close] or sorted(known)[:limit]
    return "nearest names: " + ", ".join(names) if names else ""
