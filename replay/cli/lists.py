"""Lists and ranges of an option's values, as `replay sweep` takes them.

`x1,x2,x4` is a list; `450:1800:4` are four values from 450 to 1800, evenly apart, or by equal
ratios with `:log`. The unit stands at either end or at both (`450GBps:1800GBps:4`), or is the
usual one of the option. Of SELECTOR=FACTOR what stands after the last `=` is listed. `|` separates
values that have commas of their own: selectors, and pairs like RATE,TIME. `none` leaves the option
out.
"""

import math
import re
from collections.abc import Sequence

from ingest.errors import UsageError
from replay.cli.asked import Asked

NONE = "none"
"""The value that leaves an option out at some points of a grid."""
MOST_VALUES = 100_000
USUAL_UNIT = {
    "nvlink": "GBps",
    "pcie": "GBps",
    "net": "Gbps",
    "net_latency": "us",
    "base_nvlink": "GBps",
    "base_pcie": "GBps",
    "base_net": "Gbps",
    "base_net_latency": "us",
}
"""By parameter: the unit of a bare number in a list or range."""
WITH_COMMAS = ("SELECTOR", ",")
"""Marks in an option's metavar: commas belong to the value."""
_NUMBER = r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+"
_END = rf"(?P<sign{{0}}>[xX+]?)(?P<number{{0}}>{_NUMBER})(?P<unit{{0}}>[A-Za-zµ/]*)"
_RANGE = re.compile(f"{_END.format(1)}:{_END.format(2)}:(?P<count>[0-9]+)(?P<log>:log)?")
_ONE_END = re.compile(_END.format(1))
_LIKE_RANGE = re.compile(r"([^:@]*):([^:@]*):[+-]?[0-9]+(?::[a-z]*)?")
_WITH_COLONS = ("SELECTOR", "FILE", "NAME")
"""Marks in an option's metavar: colons belong to the value."""
_BARE = re.compile(_NUMBER)


def values_of(asked: Asked, text: str) -> tuple[str, ...]:
    """The values that a text lists, each once and as the option itself takes it.

    Raises:
        UsageError: an empty place, a range that is none, or a number that the option cannot take.
    """
    if asked.value is bool:
        return (text,)
    head, text = _front(asked, text)
    values = [
        f"{head}{value}" if value != NONE else value
        for part in _parts(asked, text)
        for value in _spread(asked, part)
    ]
    for value in values:
        _check(asked, value)
    return tuple(dict.fromkeys(values))


def _front(asked: Asked, text: str) -> tuple[str, str]:
    """What stands before the list: the selector of a factor."""
    if "=" not in asked.metavar:
        return "", text
    where, equals, listed = text.rpartition("=")
    return where + equals, listed


def _parts(asked: Asked, text: str) -> Sequence[str]:
    has_commas = "=" not in asked.metavar and any(mark in asked.metavar for mark in WITH_COMMAS)
    separator = "|" if has_commas or "|" in text else ","
    parts = [part.strip() for part in text.split(separator)]
    if not all(parts):
        raise UsageError(
            f"`{asked.option} {text}` has an empty place", hint=f"for example {asked.option} a,b,c"
        )
    return parts


def _spread(asked: Asked, part: str) -> Sequence[str]:
    found = _RANGE.fullmatch(part)
    unit = USUAL_UNIT.get(asked.name, "")
    if found is None:
        _refuse_ends(asked, part)
        return [f"{part}{unit}" if _BARE.fullmatch(part) else part]
    signs, units = ({found[f"{what}{end}"] for end in (1, 2)} - {""} for what in ("sign", "unit"))
    factor = bool(signs & {"x", "X"})
    if len(signs) > 1 or len(units) + factor > 1:
        raise UsageError(f"`{asked.option} {part}` mixes units", hint="give both ends in one unit")
    sign, unit = next(iter(signs), ""), next(iter(units), "" if factor else unit)
    ends = float(found["number1"]), float(found["number2"])
    return [f"{sign}{number:.10g}{unit}" for number in _numbers(asked, part, ends, found)]


def _refuse_ends(asked: Asked, part: str) -> None:
    """What reads like a range but has an end that is no number, by that end."""
    if any(mark in asked.metavar for mark in _WITH_COLONS) and "=" not in asked.metavar:
        return
    found = _LIKE_RANGE.fullmatch(part)
    if found is None:
        return
    for end in found.groups():
        if _ONE_END.fullmatch(end) is None:
            raise UsageError(
                f"`{asked.option} {part}`: a range cannot end at `{end}`",
                hint="FROM:TO:COUNT with two numbers from 0 up, with or without their unit",
            )
    raise UsageError(
        f"`{asked.option} {part}` is no range",
        hint=f"FROM:TO:COUNT or FROM:TO:COUNT:log, with a count of 2 to {MOST_VALUES:,}",
    )


def _numbers(
    asked: Asked, part: str, ends: tuple[float, float], found: re.Match[str]
) -> Sequence[float]:
    first, last = ends
    count = int(found["count"])
    for end in ("number1", "number2"):
        if math.isinf(float(found[end])):
            raise UsageError(
                f"`{asked.option} {part}`: a range cannot end at `{found[end]}`",
                hint="give two finite numbers",
            )
    if not 2 <= count <= MOST_VALUES:  # noqa: PLR2004  (a range has two ends)
        raise UsageError(
            f"`{asked.option} {part}` has {count} values",
            hint=f"FROM:TO:COUNT with a count of 2 to {MOST_VALUES:,}",
        )
    if not found["log"]:
        return [first + (last - first) * place / (count - 1) for place in range(count)]
    if first <= 0 or last <= 0:
        raise UsageError(
            f"`{asked.option} {part}` goes to 0 by equal ratios", hint="leave `:log` out"
        )
    ratios = [first * (last / first) ** (place / (count - 1)) for place in range(count)]
    return [first, *(float(f"{number:.4g}") for number in ratios[1:-1]), last]


def _check(asked: Asked, value: str) -> None:
    """What typer checks where an option takes one value."""
    if asked.value not in (int, float) or value == NONE:
        return
    try:
        asked.value(value)
    except ValueError as error:
        what = "a whole number" if asked.value is int else "a number"
        raise UsageError(
            f"`{asked.option} {value}` is not {what}",
            hint="choose ends and count so that all values are whole"
            if asked.value is int
            else f"for example {asked.option} 2",
        ) from error
