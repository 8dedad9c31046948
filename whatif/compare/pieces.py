"""Stretches of time with what they are spent on, as columns."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from replay.graph.arrays import Int64
from whatif.compare.side import Side


class Way(IntEnum):
    """How the cause column of a piece is to be read."""

    KERNEL = 0
    CPU = 1
    COLLECTIVE = 2
    COPY = 3
    IDLE = 4


COLUMNS = ("way", "part", "cause", "name", "op", "module", "phase", "shape", "size", "group")


@dataclass(frozen=True, slots=True)
class Pieces:
    """Stretches of time that belong to one key, on one rank and in one step."""

    keys: Int64
    """Shape (pieces, len(COLUMNS))."""
    task: Int64
    """-1 in idle time."""
    rank: Int64
    """Position in `graph.ranks`."""
    step: Int64
    units: Int64
    count: Int64
    raw_ns: Int64


@dataclass(frozen=True, slots=True)
class Intervals:
    """What may have an instant of one device, in order of the start."""

    task: Int64
    level: Int64
    lo_ns: Int64
    hi_ns: Int64


def step_at(boundary_ns: Int64, moment_ns: Int64) -> Int64:
    """Number of the step that each moment lies in; the first or last where it lies in none."""
    place = np.searchsorted(boundary_ns, moment_ns, side="right") - 1
    return np.clip(place, 0, len(boundary_ns) - 2)


def joined(pieces: list[Pieces]) -> Pieces:
    """All of them, one after the other."""

    def column(name: str) -> Int64:
        return np.concatenate([getattr(piece, name) for piece in pieces])

    return Pieces(**{name: column(name) for name in Pieces.__slots__})


def all_names(side: Side) -> tuple[str, ...]:
    """What the column `name` counts in: names of the graph, then Python frames."""
    return (*side.graph.names, *sorted(set(side.frames.values())))
