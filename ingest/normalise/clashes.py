"""Ranks that run different operations at one place of a communicator."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.normalise.sequence import Calls, agree

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

_ALONE = -1
_MOST_LOOKED_AT = 10_000
_TOGETHER_SHARE = 0.5
"""Of the shorter of two operations that wait for each other, how much runs beside the other."""


class Clash(NamedTuple):
    """A member, and one of another rank that stands at the same place and is another operation."""

    row: int
    other: int


class _Line(NamedTuple):
    """Members of one file in order of issue, and where each collective stands among them."""

    rows: Int64
    collective: Int64
    """Per place; -1 for a member that was not matched."""
    place_of: dict[int, int]


def find_clashes(parts: Sequence[Int64], calls: Calls, collective: Int64) -> Iterator[Clash]:
    """Unmatched members that stand where another rank has something else.

    The same place: between the same two matched collectives, as many members on both ranks; at
    the head or tail of a recording, next to the same matched one. They must run at the same time as
    well, on clocks set equal at that collective: two lost members at one place do not.

    Args:
        parts: rows of each file on one communicator, in order of issue.
        calls: labels and times of all rows.
        collective: per row, -1 where not matched.
    """
    lines = [_line(rows, collective) for rows in parts]
    lone = [np.flatnonzero(line.collective == _ALONE) for line in lines]
    if sum(map(len, lone)) > _MOST_LOOKED_AT:
        return
    for line, places in zip(lines, lone, strict=True):
        matched = np.flatnonzero(line.collective != _ALONE)
        for place in places.tolist():
            gap = _gap(place, matched)
            found = (_opposite(line, place, gap, other) for other in lines if other is not line)
            clash = next((one for one in found if one is not None and _differ(one, calls)), None)
            if clash is not None:
                yield Clash(clash.row, clash.other)


def _line(rows: Int64, collective: Int64) -> _Line:
    of_row = collective[rows]
    return _Line(rows, of_row, {one: place for place, one in enumerate(of_row.tolist())})


class _Gap(NamedTuple):
    """Places of the matched members before and behind a member; None at the head or tail."""

    before: int | None
    behind: int | None


def _gap(place: int, matched: Int64) -> _Gap:
    after = int(np.searchsorted(matched, place))
    return _Gap(
        before=int(matched[after - 1]) if after else None,
        behind=int(matched[after]) if after < len(matched) else None,
    )


class _Opposite(NamedTuple):
    """A member and what stands opposite, each with a member of one collective nearby."""

    row: int
    other: int
    anchor: int
    other_anchor: int


def _opposite(line: _Line, place: int, gap: _Gap, other: _Line) -> _Opposite | None:
    """What another rank has at the place of a member; None for nothing, or one that both have."""
    before, behind = gap
    first = _place_in(other, line, before)
    last = _place_in(other, line, behind)
    if before is not None and behind is not None:
        if first is None or last is None or last - first != behind - before:
            return None
        there, anchor, other_anchor = first + place - before, before, first
    elif before is not None and first is not None and place == before + 1:
        there, anchor, other_anchor = first + 1, before, first
    elif behind is not None and last is not None and place == behind - 1:
        there, anchor, other_anchor = last - 1, behind, last
    else:
        return None
    if not 0 <= there < len(other.rows):
        return None
    matched = int(other.collective[there])
    if matched != _ALONE and matched in line.place_of:
        return None
    return _Opposite(
        row=int(line.rows[place]),
        other=int(other.rows[there]),
        anchor=int(line.rows[anchor]),
        other_anchor=int(other.rows[other_anchor]),
    )


def _place_in(other: _Line, line: _Line, place: int | None) -> int | None:
    return None if place is None else other.place_of.get(int(line.collective[place]))


def _differ(one: _Opposite, calls: Calls) -> bool:
    """Whether the two are different operations that ran at the same time for the most part."""
    here, there = calls.take(np.array([one.row])), calls.take(np.array([one.other]))
    if agree(here, there)[0]:
        return False
    apart = calls.end_ns[one.other_anchor] - calls.end_ns[one.anchor]
    begin = max(int(here.start_ns[0]), int((there.start_ns - apart)[0]))
    end = min(int(here.end_ns[0]), int((there.end_ns - apart)[0]))
    shorter = min(int((call.end_ns - call.start_ns)[0]) for call in (here, there))
    return end - begin > _TOGETHER_SHARE * shorter
