"""Which part of a run counts: the texts of `--steps` and `--ranks`."""

import re
import sys

from ingest.errors import UsageError
from ingest.units import Nanos, parse_time

_STEPS = re.compile(r"(?P<first>\d*)(?P<colon>:?)(?P<stop>\d*)", re.ASCII)
_RANKS = re.compile(r"(?P<first>\d+)(?:-(?P<last>\d+))?", re.ASCII)
MOST_RANKS = 1_000_000


def parse_steps(text: str | None) -> range | None:
    """`3:6` is 3, 4, 5 as in a Python slice; `3:`, `:6` and a single `3` are allowed.

    Raises:
        UsageError: not of that form, or empty.
    """
    if text is None:
        return None
    found = _STEPS.fullmatch(text.strip())
    if not found or not (found["first"] or found["colon"]):
        raise UsageError(f"`--steps {text}` is no range of steps", hint="for example --steps 3:6")
    first = int(found["first"] or 0)
    stop = int(found["stop"] or sys.maxsize) if found["colon"] else first + 1
    if first >= stop:
        raise UsageError(
            f"`--steps {text}` holds no step", hint="A:B means A up to but not including B"
        )
    return range(first, stop)


def parse_step_time(text: str | None) -> Nanos | None:
    """A time with its unit.

    Raises:
        UsageError: not of that form.
    """
    return None if text is None else parse_time(text)


def parse_ranks(text: str | None) -> tuple[int, ...] | None:
    """`0,2-5` is ranks 0, 2, 3, 4 and 5.

    Raises:
        UsageError: not of that form.
    """
    if text is None:
        return None
    ranks: set[int] = set()
    for part in text.split(","):
        found = _RANKS.fullmatch(part.strip())
        first = int(found["first"]) if found else 0
        last = int(found["last"] or first) if found else -1
        if not first <= last < MOST_RANKS:
            raise UsageError(
                f"`--ranks {text}` is no list of ranks", hint="for example --ranks 0,2-5"
            )
        ranks.update(range(first, last + 1))
    return tuple(sorted(ranks))
