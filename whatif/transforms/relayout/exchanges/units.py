"""The computation of a tape as its collectives see it: units of one part, pass and micro-batch.

Of a run on devices the computation is the kernels of the stream that has most of them, of a run
without it is the work of the thread that has most.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ingest.vocab import LaneKind, TaskKind
from replay.graph.arrays import NONE, Bool, Int32, Int64, TaskGraph
from whatif.models.places import BACKWARDS, Part, Pass, Place
from whatif.tape.segments import Tape
from whatif.tape.splice import boundary_rows

FORWARDS = (Pass.FORWARD, Pass.RECOMPUTE)
PARTS = (Part.EMBEDDING, Part.LAYER, Part.HEAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Columns with one row per unit, by rank and time.

    A unit is what a rank computes in one step of one part of the model in one pass (all kinds of
    backward together) for one micro-batch.
    """

    rank: Int32
    step: Int32
    part: Int32
    way: Int32
    """Pass: FORWARD, BACKWARD or RECOMPUTE."""
    layer: Int32
    micro_batch: Int32
    first: Int64
    """Place of its first and last task in `line`."""
    last: Int64
    line: Int64
    """All tasks of the computation, by rank and time."""
    place: Int32
    """Per place of the line: Place of the task."""
    of_unit: Int64
    """Per place of the line: its unit; -1 outside."""
    lane: Int32
    """Per place of the line."""
    of_step: Int32
    """Per place of the line."""
    on_host: bool

    def __len__(self) -> int:
        return len(self.rank)

    def chosen(self, part: Part, ways: Sequence[Pass]) -> Int64:
        """Units of a part of the model in some passes."""
        wanted = np.isin(self.way, [int(way) for way in ways])
        return np.flatnonzero((self.part == part) & wanted)

    def last_task(self, units: Int64) -> Int64:
        """Last task of each."""
        return self.line[self.last[units]]

    def behind(self, units: Int64, places: Sequence[Place]) -> Int64:
        """Last task of some places in each unit, or else its last task."""
        found = self._ends(units, places, last=True)
        return self.line[np.where(found >= 0, found, self.last[units])]

    def before(self, units: Int64, places: Sequence[Place]) -> Int64:
        """Task before the first one of some places in each unit, or else before its first."""
        found = self._ends(units, places, last=False)
        at = np.where(found >= 0, found, self.first[units])
        return self.previous(at)

    def following(self, at: Int64) -> Int64:
        """Task behind each place of the line; -1 at the end of a step of a rank."""
        behind = np.minimum(at + 1, max(len(self.line) - 1, 0))
        same = (behind > at) & (self.lane[behind] == self.lane[at])
        same &= self.of_step[behind] == self.of_step[at]
        return np.where(same, self.line[behind], NONE)

    def previous(self, at: Int64) -> Int64:
        """Task before each place of the line, or that one where a step of a rank begins with it."""
        before = np.maximum(at - 1, 0)
        same = (self.lane[before] == self.lane[at]) & (self.of_step[before] == self.of_step[at])
        return np.where(same, self.line[before], self.line[at])

    def end_of(self, units: Int64, places: Sequence[Place]) -> Int64:
        """Place in the line of what `behind` finds."""
        found = self._ends(units, places, last=True)
        return np.where(found >= 0, found, self.last[units])

    def _ends(self, units: Int64, places: Sequence[Place], *, last: bool) -> Int64:
        """First or last place in the line of some places of each unit; -1 where there is none."""
        mine: Bool = np.isin(self.place, [int(place) for place in places]) & (self.of_unit >= 0)
        at = np.flatnonzero(mine)
        found = np.full(len(self) + 1, NONE, np.int64)
        order = at if last else at[::-1]
        found[self.of_unit[order]] = order
        return found[units]


def units_of(tape: Tape) -> Units:
    """Find the units of a tape."""
    line, on_host = _line(tape)
    tasks, segments = tape.graph.tasks, tape.segments
    segment = tape.segment[line]
    part = np.where(segment >= 0, segments.part[segment], Part.OTHER).astype(np.int64)
    direction = np.where(segment >= 0, segments.direction[segment], Pass.NONE).astype(np.int64)
    way = np.where(np.isin(direction, [int(each) for each in BACKWARDS]), Pass.BACKWARD, direction)
    inside = np.isin(part, [int(each) for each in PARTS]) & (way != Pass.NONE)
    columns = np.stack(
        [
            tasks.rank[line],
            segments.step[segment],
            part,
            way,
            segments.layer[segment],
            segments.micro_batch[segment],
        ]
    ).astype(np.int64)
    at = np.flatnonzero(inside)
    keys, number, first = _by_time(columns[:, at])
    of_unit = np.full(len(line), NONE, np.int64)
    of_unit[at] = number
    last = np.full(len(first), NONE, np.int64)
    last[number] = at
    rank, step, of_part, of_way, layer, micro_batch = keys.astype(np.int32)
    return Units(
        rank=rank,
        step=step,
        part=of_part,
        way=of_way,
        layer=layer,
        micro_batch=micro_batch,
        first=at[first],
        last=last,
        line=line,
        place=tape.labels.place[line].astype(np.int32),
        of_unit=of_unit,
        lane=tasks.lane[line],
        of_step=tasks.step[line],
        on_host=on_host,
    )


def _by_time(columns: Int64) -> tuple[Int64, Int64, Int64]:
    """Distinct columns as they first come, the number of each one, and where each first comes."""
    keys, first, number = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    renumbered = np.empty(len(order), np.int64)
    renumbered[order] = np.arange(len(order))
    return keys[:, order], renumbered[number.ravel()], first[order]


def _line(tape: Tape) -> tuple[Int64, bool]:
    """Tasks of the computation by lane and time, and whether they run on hosts."""
    graph = tape.graph
    tasks = graph.tasks
    free = ~tasks.fixed & (tasks.step >= 0)
    rows = boundary_rows(graph.boundaries, tasks.rank[free], tasks.step[free])
    free[free] = tasks.ts_ns[free] < _step_ends_ns(graph)[rows]
    kernels = free & (tasks.kind == TaskKind.KERNEL)
    on_host = not kernels.any()
    wanted = free & (tasks.kind == TaskKind.HOST_WORK) if on_host else kernels
    main = _busiest(graph, wanted, LaneKind.THREAD if on_host else LaneKind.STREAM)
    line = np.flatnonzero(wanted & np.isin(tasks.lane, main))
    order = np.lexsort((line, tasks.ts_ns[line], tasks.lane[line]))
    return line[order], on_host


def _step_ends_ns(graph: TaskGraph) -> Int64:
    """When each boundary was recorded: what begins later belongs to no step."""
    tasks, bounds = graph.tasks, graph.boundaries
    row = np.repeat(np.arange(len(bounds.start) - 1), np.diff(bounds.start))
    ends_ns = np.full(len(bounds.start) - 1, np.iinfo(np.int64).min)
    np.maximum.at(ends_ns, row, tasks.ts_ns[bounds.task] + tasks.dur_ns[bounds.task])
    return np.where(ends_ns == np.iinfo(np.int64).min, np.iinfo(np.int64).max, ends_ns)


def _busiest(graph: TaskGraph, wanted: Bool, kind: LaneKind) -> Int64:
    """Per rank the lane that has most of the wanted tasks' time."""
    tasks = graph.tasks
    ids = np.flatnonzero(wanted & (tasks.lane >= 0))
    busy_ns = np.bincount(tasks.lane[ids], tasks.dur_ns[ids], minlength=len(graph.lanes))
    best: dict[int, int] = {}
    for number, lane in enumerate(graph.lanes):
        if lane.kind != kind or not busy_ns[number]:
            continue
        if lane.rank not in best or busy_ns[number] > busy_ns[best[lane.rank]]:
            best[lane.rank] = number
    return np.array(sorted(best.values()), np.int64)
