"""The critical path as it moves between ranks, in few enough pieces to draw."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ingest.vocab import HOST_KINDS
from replay.graph.arrays import NONE, Int64, TaskGraph
from replay.results.causes import Cause, task_causes
from replay.results.critical_path import PathPieces
from whatif.report.blocks import Piece

MOST_PIECES = 300
ROLES = {
    Cause.HOST: "host",
    Cause.INPUT: "input",
    Cause.COMPUTE: "compute",
    Cause.COPIES: "memcpy",
    Cause.TRANSFER: "comm",
    Cause.WAIT: "wait",
    Cause.UNKNOWN: "other",
}
"""Colours of causes, on all charts that tell them."""
NO_RANK = "all ranks"
STEP = "ProfilerStep#"
"""A task that only the step's own annotation covers is what lies between operators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretches:
    """Parts of the path in time order, without a hole; rows have a rank and a cause."""

    ts_ns: Int64
    dur_ns: Int64
    rank: Int64
    """-1 where it is no rank's: a meeting."""
    cause: Int64
    task: Int64


def stretches(graph: TaskGraph, pieces: PathPieces) -> Stretches:
    """Lag and residual of each piece apart from its span: nobody's work, so of unknown cause."""
    before_ns = pieces.lag_ns + pieces.residual_ns
    dur_ns = np.column_stack([before_ns, pieces.span_ns]).ravel()
    ts_ns = np.column_stack([pieces.ts_ns, pieces.ts_ns + before_ns]).ravel()
    cause = task_causes(graph)[pieces.task]
    both = np.column_stack([np.full(len(cause), int(Cause.UNKNOWN)), cause]).ravel()
    kept = dur_ns > 0
    return Stretches(
        ts_ns=ts_ns[kept],
        dur_ns=dur_ns[kept],
        rank=np.repeat(graph.tasks.rank[pieces.task].astype(np.int64), 2)[kept],
        cause=both[kept],
        task=np.repeat(pieces.task, 2)[kept],
    )


def drawn(graph: TaskGraph, parts: Stretches) -> tuple[tuple[Piece, ...], bool]:
    """Pieces for a timeline, and whether they are exact.

    Neighbours of one rank, cause and name are one piece. Where more than `MOST_PIECES` are left,
    the time is cut into as many equal slots: each shows the rank and cause that take most of it,
    and the longest of that.
    """
    merged = _merged(graph, parts)
    exact = len(merged.ts_ns) <= MOST_PIECES
    shown = merged if exact else _merged(graph, _slots(parts))
    return tuple(_pieces(graph, shown)), exact


def lane_of(rank: int) -> str:
    """Name of a rank's lane."""
    return NO_RANK if rank < 0 else f"rank {rank}"


def _pieces(graph: TaskGraph, parts: Stretches) -> Iterator[Piece]:
    origin_ns = int(parts.ts_ns[0]) if len(parts.ts_ns) else 0
    columns = (parts.ts_ns, parts.dur_ns, parts.rank, parts.cause, parts.task)
    for ts_ns, dur_ns, rank, cause, task in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        yield Piece(
            lane=lane_of(rank),
            name=name_of(graph, task) if cause != Cause.UNKNOWN else "lag or gap",
            role=ROLES[Cause(cause)],
            ts_ns=ts_ns - origin_ns,
            dur_ns=dur_ns,
        )


def name_of(graph: TaskGraph, task: int) -> str:
    """The task's row, or what it is between rows."""
    number = int(graph.tasks.name[task])
    if number >= 0 and not graph.names[number].startswith(STEP):
        return graph.names[number]
    host = graph.tasks.kind[task] in HOST_KINDS
    return "Python between operators" if host else "waiting"


def _merged(graph: TaskGraph, parts: Stretches) -> Stretches:
    """Neighbours of one rank, cause and name as one."""
    if not len(parts.ts_ns):
        return parts
    begins = np.zeros(len(parts.ts_ns), bool)
    begins[0] = True
    name = np.where(parts.cause == Cause.UNKNOWN, NONE, graph.tasks.name[parts.task])
    for column in (parts.rank, parts.cause, name):
        begins[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(begins)
    return Stretches(
        ts_ns=parts.ts_ns[first],
        dur_ns=np.add.reduceat(parts.dur_ns, first),
        rank=parts.rank[first],
        cause=parts.cause[first],
        task=parts.task[first],
    )


def _slots(parts: Stretches) -> Stretches:
    """Equal slots of the path, each with the rank and cause that take most of it."""
    lo_ns, hi_ns = int(parts.ts_ns[0]), int(parts.ts_ns[-1] + parts.dur_ns[-1])
    edges_ns = np.linspace(lo_ns, hi_ns, MOST_PIECES + 1).astype(np.int64)
    points = np.unique(np.concatenate([edges_ns, parts.ts_ns]))
    points = points[points < hi_ns]
    length_ns = np.diff(np.append(points, hi_ns))
    part = np.searchsorted(parts.ts_ns, points, side="right") - 1
    slot = np.searchsorted(edges_ns, points, side="right") - 1
    kinds, kind = np.unique(np.column_stack([parts.rank, parts.cause]), axis=0, return_inverse=True)
    spent_ns = np.zeros((MOST_PIECES, len(kinds)), np.int64)
    np.add.at(spent_ns, (slot, kind.reshape(-1)[part]), length_ns)
    most = spent_ns.argmax(axis=1)
    inside = kind.reshape(-1)[part] == most[slot]
    order = np.lexsort((-length_ns * inside, slot))
    longest = order[np.searchsorted(slot[order], np.arange(MOST_PIECES))]
    return Stretches(
        ts_ns=edges_ns[:-1],
        dur_ns=np.diff(edges_ns),
        rank=kinds[most, 0],
        cause=kinds[most, 1],
        task=parts.task[part[longest]],
    )
