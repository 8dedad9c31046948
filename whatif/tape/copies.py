"""Columns of the new tasks, as copies of those of the recorded ones."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ingest.vocab import EdgeKind, Evidence
from replay.graph.arrays import (
    NEVER_RELEASED_NS,
    NO_GRADIENTS,
    NONE,
    Bool,
    Gradients,
    Int64,
    TaskGraph,
    Tasks,
)
from replay.graph.csr import EdgeList
from replay.graph.hosts import host_tasks
from whatif.description.labels import Labels, Part, Place, unlabelled
from whatif.tape.instances import Instances
from whatif.tape.lanes import NewLanes
from whatif.tape.meetings import Meetings
from whatif.tape.messages import Messages
from whatif.tape.reel import Reel
from whatif.tape.segments import OUTSIDE, Segments, Tape
from whatif.tape.spans import Grouped


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """What every new task is a copy of; meetings stand behind all others."""

    source: Int64
    """Recorded task; -1 for those of messages between stages."""
    instance: Int64
    """Of a meeting that of its first member."""

    @classmethod
    def of(cls, made: Instances, meetings: Meetings, messages: Messages) -> "Copies":
        """Put them together."""
        first = np.full(len(meetings), len(made), np.int64)
        np.minimum.at(first, meetings.of_member, made.of_task[meetings.member])
        of_message = np.full(messages.count, len(made), np.int64)
        np.minimum.at(of_message, messages.number, messages.instance)
        nothing = np.full(messages.count, NONE, np.int64)
        return cls(
            source=np.concatenate([made.task, meetings.meet_source, nothing]),
            instance=np.concatenate([made.of_task, first[meetings.meet >= 0], of_message]),
        )

    def __len__(self) -> int:
        return len(self.source)


def task_columns(
    reel: Reel, made: Instances, lanes: NewLanes, meetings: Meetings, copies: Copies
) -> Tasks:
    """All columns, with the times of the recording."""
    tasks = reel.tape.graph.tasks
    source, instance = np.maximum(copies.source, 0), copies.instance
    columns = {field.name: getattr(tasks, field.name)[source] for field in fields(tasks)}
    placed = np.arange(len(copies)) < made.n_tasks
    rank = np.array([program.rank for program in made.programs], np.int32)
    program = made.program[instance]
    columns["rank"] = np.where(placed, rank[program], NONE).astype(np.int32)
    lane = lanes.of[program, columns["lane"]]
    columns["lane"] = np.where(placed, lane, NONE).astype(np.int32)
    later = made.shift(reel, "step", instance)
    columns["step"] = np.where(columns["step"] >= 0, columns["step"] + later, NONE).astype(np.int32)
    caller = columns["caller"].astype(np.int64)
    known = (caller >= 0) & (reel.segment[caller] == reel.segment[source])
    copied = made.base[instance] + reel.local[caller]
    columns["caller"] = np.where(known, copied, NONE).astype(np.int32)
    collective = np.full(len(copies), NONE, np.int32)
    for after in (0, 1):
        collective[meetings.member + after] = meetings.of_member
    collective[meetings.meet[meetings.meet >= 0]] = np.flatnonzero(meetings.meet >= 0)
    columns["collective"] = collective
    return Tasks(**columns)


def with_values(tasks: Tasks, values: Mapping[str, tuple[Int64, Any]]) -> Tasks:
    """The columns with other values at some ids, by name."""
    columns = {name: getattr(tasks, name).copy() for name in values}
    for name, (ids, value) in values.items():
        columns[name][ids] = value
    return replace(tasks, **columns)


def releases(reel: Reel, made: Instances, copies: Copies) -> tuple[Int64, EdgeList]:
    """Releases of the new tasks, and edges in place of those that moved.

    A task that only a moment of the recording released starts as long after the first host task of
    its segment as it did there.
    """
    tasks = reel.tape.graph.tasks
    source = np.maximum(copies.source, 0)
    release_ns = np.where(copies.source >= 0, tasks.release_ns[source], NEVER_RELEASED_NS)
    task = np.flatnonzero(
        (release_ns != NEVER_RELEASED_NS)
        & ~made.as_recorded[copies.instance]
        & (np.arange(len(copies)) < made.n_tasks)
    )
    anchor = _host_ends(reel, last=False)[made.segment[copies.instance[task]]]
    anchored = (anchor >= 0) & (reel.moment[anchor] < reel.moment[source[task]])
    lag_ns = (release_ns[task] - reel.start_ns[anchor])[anchored]
    src = (made.base[copies.instance[task]] + reel.local[anchor])[anchored]
    release_ns[task] = NEVER_RELEASED_NS
    return release_ns, handed_over(src, task[anchored], lag_ns, from_start=True)


def handed_over(src: Int64, dst: Int64, lag_ns: Int64, *, from_start: bool) -> EdgeList:
    """Edges that stand for something else which held a task back."""
    n = len(src)
    return EdgeList(
        src=src.astype(np.int32),
        dst=dst.astype(np.int32),
        lag_ns=lag_ns.astype(np.int64),
        kind=np.full(n, EdgeKind.HAND_OVER, np.int8),
        evidence=np.full(n, Evidence.INFERRED, np.int8),
        from_start=np.full(n, from_start, bool),
    )


def _host_ends(reel: Reel, *, last: bool) -> Int64:
    """First or last host task of each segment; -1."""
    host = np.flatnonzero(host_tasks(reel.tape.graph) & (reel.segment >= 0))
    order = host[np.argsort(reel.moment[host], kind="stable")]
    found = np.full(reel.n_segments, NONE, np.int64)
    order = order if last else order[::-1]
    found[reel.segment[order]] = order  # of several the last assignment counts
    return found


def held(
    reel: Reel, made: Instances, copies: Copies, degree: Int64, release_ns: Int64
) -> tuple[EdgeList, Int64]:
    """Edges for tasks that nothing holds back: from the last host task of what comes before.

    Args:
        reel: of the recording.
        made: instances.
        copies: of the new tasks.
        degree: edges into each new task so far.
        release_ns: of each; a task without anything before it starts as its rank began its steps.
    """
    loose = np.flatnonzero((degree == 0) & (release_ns == NEVER_RELEASED_NS))
    last = _host_ends(reel, last=True)
    of_instance = np.where(made.segment >= 0, last[made.segment], NONE)
    numbers = np.where(of_instance >= 0, np.arange(len(made)), NONE)
    latest = np.concatenate([[NONE], np.maximum.accumulate(numbers)[:-1]])
    instance = copies.instance[loose]
    before = latest[instance]
    found = (before >= 0) & (made.program[before] == made.program[instance])
    src = (made.base[before] + reel.local[of_instance[before]])[found]
    released_ns = release_ns.copy()
    began_ns = {rank: _opening_ns(reel, rank) for rank in {one.like for one in made.programs}}
    opening_ns = np.array([began_ns[program.like] for program in made.programs], np.int64)
    released_ns[loose[~found]] = opening_ns[made.program[instance[~found]]]
    nothing = np.zeros(len(src), np.int64)
    return handed_over(src, loose[found], nothing, from_start=False), released_ns


def _opening_ns(reel: Reel, rank: int) -> int:
    """When a recorded rank began its steps."""
    mine = np.flatnonzero((reel.tape.graph.tasks.rank == rank) & (reel.segment < reel.n_own))
    mine = mine[reel.segment[mine] >= 0]
    if not len(mine):
        return 0
    return int(reel.start_ns[mine].min())


def residuals(reel: Reel, copies: Copies, disturbed: Bool) -> Int64:
    """As recorded, but where an edge that bound the start is not what it was."""
    source = copies.source
    residual_ns = np.where(source >= 0, reel.tape.graph.tasks.residual_ns[source], 0)
    binding = np.append(reel.binding, NONE)[source]
    edges = reel.edges
    outer = reel.meeting | (reel.segment[edges.src] != reel.segment[edges.dst])
    bound_outside = (binding >= 0) & np.append(outer, False)[binding]
    return np.where(disturbed & bound_outside, 0, residual_ns)


def origins(graph: TaskGraph, source: Int64) -> Int64:
    """Per new task, the task of the recorded run that it is a copy of; -1."""
    if graph.origin is None:
        return source
    return np.where(source >= 0, graph.origin[source], NONE)


def gradients_of(reel: Reel, made: Instances, start_ns: Int64) -> Gradients:
    """Gradients of every copy of the task in which they were ready, as late in it as recorded."""
    recorded = reel.tape.graph.gradients
    if not len(recorded):
        return NO_GRADIENTS
    wanted = np.zeros(reel.tape.graph.n_tasks + 1, bool)
    wanted[recorded.task] = True
    wanted[-1] = False
    new = np.flatnonzero(wanted[made.task])
    by_task = Grouped.of(made.task[new], reel.tape.graph.n_tasks)
    rows = np.flatnonzero(recorded.task >= 0)
    at, copy = by_task.gathered(recorded.task[rows])
    row, task = rows[at], new[copy]
    rank = np.array([program.rank for program in made.programs], np.int64)
    rank_of = rank[made.program[made.of_task[task]]]
    ready_ns = (
        recorded.ready_ns[row] + start_ns[task] - reel.tape.graph.tasks.ts_ns[made.task[task]]
    )
    order = np.lexsort((ready_ns, made.program[made.of_task[task]]))
    return Gradients(
        rank=rank_of[order],
        task=task[order],
        ready_ns=ready_ns[order],
        size_bytes=recorded.size_bytes[row[order]],
    )


def tape_of(reel: Reel, made: Instances, copies: Copies, graph: TaskGraph) -> Tape:
    """The new run as a tape: every instance inside the steps is a segment of it."""
    inside = made.row >= 0
    known = np.where(inside & (made.segment >= 0), made.segment, 0)
    is_message = made.segment < 0
    rank = np.array([program.rank for program in made.programs], np.int64)

    def label(of: Int64, of_message: int) -> Int64:
        return np.where(is_message, of_message, of[known])[inside]

    number = np.where(inside, np.cumsum(inside) - 1, OUTSIDE)
    return Tape(
        graph=graph,
        labels=_labels(reel, made, copies),
        segments=Segments(
            rank=rank[made.program[inside]].astype(np.int32),
            step=made.step[inside].astype(np.int32),
            part=label(reel.part, Part.OTHER).astype(np.int8),
            direction=made.direction[inside].astype(np.int8),
            layer=made.layer[inside].astype(np.int32),
            micro_batch=made.micro_batch[inside].astype(np.int32),
        ),
        segment=number[copies.instance].astype(np.int32),
    )


def _labels(reel: Reel, made: Instances, copies: Copies) -> Labels:
    labels = reel.tape.labels
    source = np.maximum(copies.source, 0)
    columns = {field.name: getattr(labels, field.name)[source] for field in fields(labels)}
    for name in ("layer", "micro_batch"):
        moved = columns[name] + made.shift(reel, name, copies.instance)
        columns[name] = np.where(columns[name] >= 0, moved, NONE).astype(np.int32)
    segment = made.segment[copies.instance]
    was = np.where(segment >= 0, reel.direction[segment], NONE)
    now = made.direction[copies.instance]
    turned = (segment >= 0) & (was != now) & (columns["direction"] == was)
    columns["direction"] = np.where(turned, now, columns["direction"]).astype(np.int8)
    message = copies.source < 0
    nothing = unlabelled(1)
    for field in fields(labels):
        columns[field.name][message] = getattr(nothing, field.name)[0]
    columns["place"][message] = Place.COMMUNICATION
    return Labels(**columns)
