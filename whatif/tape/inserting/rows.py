"""Where collectives are put in, and what waits for them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ingest.vocab import CollectiveKind
from replay.graph.arrays import NONE, Bool, Group, Int32, Int64, TaskGraph
from replay.graph.hosts import host_tasks
from whatif.tape.segments import Tape

OTHERWISE = -2
"""A row that `Waits.ahead` says nothing of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insertions:
    """Collectives to be put in: columns with one row per collective and recorded rank."""

    key: Int64
    """Equal for members of one collective on several recorded ranks that meet; unique else."""
    after: Int32
    """Task on whose lane, behind which, it runs (a kernel; of CPU runs a host task)."""
    kind: CollectiveKind
    group: Group
    """Of the new layout; appended to the graph's groups. Its ranks are empty where each recorded
    rank stands for one group of its own."""
    size_bytes: Int64
    """As nccl-tests counts it."""
    transfer_ns: Int64
    beside: bool
    """On a stream of its own: what follows on the lane goes on, and only `waits` waits."""
    waits: Int32
    """Task that waits for it where it runs beside; -1: what follows the segment. On a device it may
    be `after` itself: then it runs behind what precedes that, and is launched with it."""
    host_ns: Int64
    """What its launch costs the thread."""
    offset_ns: Int64 | None = None
    """Of CPU runs: it is issued so long after the start of `after`; None: at its end."""
    ends: Int32 | None = None
    """Where nothing `waits` for it beside: task that ends a step of the thread, which then waits
    behind that; a step of a device ends with it. None: the segment is waited for."""
    name: str = "collective"
    """Of its tasks."""
    stream: str = "collectives"
    """Role of its stream where it runs beside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """All insertions, by the task that they follow; one row per collective and recorded rank."""

    addition: Int64
    call: Int64
    """Number of its collective among the new ones."""
    after: Int64
    size_bytes: Int64
    transfer_ns: Int64
    beside: Bool
    waits: Int64
    ends: Int64
    """-1: none."""
    host_ns: Int64
    offset_ns: Int64
    """-1: at the end."""
    on_host: Bool
    previous: Int64
    """Row of the last one before it that holds up the lane behind the same task; -1."""

    def __len__(self) -> int:
        return len(self.after)


def rows_of(graph: TaskGraph, additions: Sequence[Insertions]) -> Rows:
    """All of `additions` in the order in which they hold up their lanes."""
    counts = [len(each.after) for each in additions]
    addition = np.repeat(np.arange(len(additions)), counts)
    key = np.concatenate([each.key for each in additions])
    _, call = np.unique(np.stack([addition, key]), axis=1, return_inverse=True)
    after = np.concatenate([each.after for each in additions]).astype(np.int64)
    order = np.argsort(after, kind="stable")
    beside = np.repeat([each.beside for each in additions], counts)[order]
    after = after[order]
    held = np.where(~beside, np.arange(len(after)), NONE)
    latest = np.concatenate([[NONE], np.maximum.accumulate(held)[:-1]])
    same = (latest >= 0) & (after[latest] == after)

    def column(name: str) -> Int64:
        return np.concatenate([getattr(each, name) for each in additions]).astype(np.int64)[order]

    def optional(name: str) -> Int64:
        given = [getattr(each, name) for each in additions]
        filled = [
            np.full(count, NONE) if column is None else column
            for count, column in zip(counts, given, strict=True)
        ]
        return np.concatenate(filled).astype(np.int64)[order]

    return Rows(
        addition=addition[order],
        call=call.ravel()[order],
        after=after,
        size_bytes=column("size_bytes"),
        transfer_ns=column("transfer_ns"),
        beside=beside,
        waits=column("waits"),
        host_ns=column("host_ns"),
        ends=optional("ends"),
        offset_ns=optional("offset_ns"),
        on_host=host_tasks(graph)[after],
        previous=np.where(same, latest, NONE),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Waits of host threads for what runs beside them: one for all that is awaited at a place."""

    behind: Int64
    """Per wait: the host task that it follows."""
    of_row: Int64
    """Per row: its wait; -1."""
    next_task: Int64
    """Per row that runs beside on a device: the task that waits for it; -1."""
    ahead: Int64
    """Per row that runs beside on a device, and is awaited by the task that it comes with: the task
    before that on its lane, -1 for none; -2 for all other rows."""

    @classmethod
    def of(cls, tape: Tape, rows: Rows) -> "Waits":
        """Where the threads and streams wait."""
        neighbours = Neighbours.of(tape)
        beside_host = rows.beside & rows.on_host
        before = np.where(rows.waits >= 0, neighbours.previous[rows.waits], NONE)
        last = np.where(rows.ends >= 0, rows.ends, neighbours.last_of_segment[rows.after])
        behind = np.where(before >= 0, before, last)
        places, number = np.unique(behind[beside_host], return_inverse=True)
        of_row = np.full(len(rows), NONE, np.int64)
        of_row[beside_host] = number
        otherwise = np.where(rows.ends >= 0, NONE, neighbours.after_segment[rows.after])
        following = np.where(rows.waits >= 0, rows.waits, otherwise)
        on_device = rows.beside & ~rows.on_host
        itself = on_device & (rows.waits == rows.after)
        return cls(
            ahead=np.where(itself, neighbours.previous[rows.after], OTHERWISE),
            behind=places,
            of_row=of_row,
            next_task=np.where(on_device, following, NONE),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Per task, its neighbours on its lane."""

    previous: Int64
    last_of_segment: Int64
    """Last task of the stretch of its segment."""
    after_segment: Int64
    """First task behind it."""

    @classmethod
    def of(cls, tape: Tape) -> "Neighbours":
        """By the recorded order of every lane."""
        tasks = tape.graph.tasks
        n = tape.graph.n_tasks
        order = np.lexsort((np.arange(n), tasks.ts_ns, tasks.lane))
        lane, segment = tasks.lane[order], tape.segment[order]
        same_lane = np.concatenate([[False], lane[1:] == lane[:-1]])
        new_run = ~same_lane | np.concatenate([[True], segment[1:] != segment[:-1]])
        run = np.cumsum(new_run) - 1
        first = np.flatnonzero(new_run)
        last = np.concatenate([first[1:] - 1, [n - 1]])
        following = np.minimum(last + 1, n - 1)
        stays = (last + 1 < n) & (lane[following] == lane[last])
        previous, last_of, behind = (np.full(n, NONE, np.int64) for _ in range(3))
        previous[order] = np.where(same_lane, np.roll(order, 1), NONE)
        last_of[order] = order[last[run]]
        behind[order] = np.where(stays, order[following], NONE)[run]
        return cls(previous=previous, last_of_segment=last_of, after_segment=behind)
