"""A graph and its labels -> its segments."""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import LaneKind, TaskKind
from replay.engine.places import places
from replay.graph.arrays import NONE, Bool, Int64, TaskGraph
from replay.graph.hosts import host_tasks
from whatif.description.labels import Labels, Part
from whatif.tape.segments import OUTSIDE, Segments, Tape

CRUMB_FRAC = 0.001
"""A run of labels that issues nothing and takes less of its rank's host time in the step is a
crumb: what a profiler's gap or a helper's call leaves between two operators. Chosen, not fitted."""


def cut(graph: TaskGraph, labels: Labels) -> Tape:
    """Cut the threads of every rank where the labels change, and give device work to its callers.

    The threads that issue device work or carry the steps are followed together, in one order that
    all edges agree with; a run of equal labels there is a segment. A crumb whose part is not
    understood joins what runs before it (at the start of a step: after it), and one between two
    runs with the same labels joins these. Tasks of other threads belong to the segment that runs
    when they begin. Device work without a caller belongs to what precedes it on its lane.

    Args:
        graph: of a run.
        labels: of its tasks.
    """
    assert len(labels) == graph.n_tasks, "one label per task"
    place = places(graph)
    inside = _inside(graph)
    lead = _leading(graph, labels, inside)
    runs = _without_crumbs(graph, _runs(graph, labels, lead, place))
    segment = np.full(graph.n_tasks, OUTSIDE, np.int64)
    segment[runs.task] = runs.of_task
    rest = np.flatnonzero(inside & ~lead & host_tasks(graph))
    segment[rest] = _running(graph, runs, place, rest)
    _give_device_work(graph, runs, place, inside, segment)
    _give_meetings(graph, segment)
    first = runs.task[runs.first]
    return Tape(
        graph=graph,
        labels=labels,
        segments=Segments(
            rank=graph.tasks.rank[first],
            step=graph.tasks.step[first],
            part=runs.key[:, 0].astype(np.int8),
            direction=runs.key[:, 1].astype(np.int8),
            layer=runs.key[:, 2].astype(np.int32),
            micro_batch=runs.key[:, 3].astype(np.int32),
        ),
        segment=segment.astype(np.int32),
    )


def _inside(graph: TaskGraph) -> Bool:
    """Tasks of the steps that a scenario may move; the rest lies outside."""
    inside: Bool = (
        (graph.tasks.step >= 0) & ~graph.tasks.fixed & (graph.tasks.kind != TaskKind.MEET)
    )
    return inside


def _leading(graph: TaskGraph, labels: Labels, inside: Bool) -> Bool:
    """Tasks whose labels cut: of the threads that matter; of ranks without threads all."""
    tasks, host = graph.tasks, host_tasks(graph)
    n_lanes = len(graph.lanes)
    leads = np.array([lane.steps for lane in graph.lanes], bool)
    callers = tasks.caller[tasks.caller >= 0]
    leads[tasks.lane[callers]] = True
    leads &= np.array([lane.kind == LaneKind.THREAD for lane in graph.lanes], bool)
    of_lane = tasks.lane[host & inside]
    told = np.bincount(of_lane, labels.part[host & inside] != Part.OTHER, n_lanes) > 0
    filled = np.bincount(of_lane, minlength=n_lanes) > 0
    chosen = np.zeros(n_lanes + 1, bool)
    rank = np.array([lane.rank for lane in graph.lanes], np.int64)
    for info in graph.ranks:
        mine = (rank == info.rank) & filled
        for wanted in (mine & leads & told, mine & leads, mine):
            if wanted.any():
                chosen[:-1] |= wanted
                break
    with_host = np.isin(tasks.rank, np.unique(tasks.rank[host & inside]))
    lead: Bool = inside & np.where(with_host, host & chosen[tasks.lane], ~host)
    return lead


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runs:
    """Runs of equal labels, by rank and step in the order of their tasks."""

    task: Int64
    """Leading tasks in that order."""
    of_task: Int64
    """Run of each of them."""
    first: Int64
    """Per run: the place of its first in `task`."""
    key: Int64
    """Per run: part, direction, layer, micro-batch; shape (runs, 4)."""


def _runs(graph: TaskGraph, labels: Labels, lead: Bool, place: Int64) -> _Runs:
    tasks = graph.tasks
    task = np.flatnonzero(lead)
    order = {info.rank: position for position, info in enumerate(graph.ranks)}
    last = len(order)
    known, inverse = np.unique(tasks.rank[task], return_inverse=True)
    position = np.array([order.get(int(rank), last) for rank in known], np.int64)[inverse]
    task = task[np.lexsort((place[task], tasks.step[task], position))]
    columns = (labels.part, labels.direction, labels.layer, labels.micro_batch)
    key = np.stack([column[task] for column in columns], axis=1).astype(np.int64)
    return _merged(graph, task, key)


def _merged(graph: TaskGraph, task: Int64, key: Int64) -> _Runs:
    """Runs of neighbours with equal keys on one rank in one step."""
    tasks = graph.tasks
    differs = np.ones(len(task), bool)
    differs[1:] = (key[1:] != key[:-1]).any(axis=1)
    for column in (tasks.rank[task], tasks.step[task]):
        differs[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(differs)
    return _Runs(task=task, of_task=np.cumsum(differs) - 1, first=first, key=key[first])


def _without_crumbs(graph: TaskGraph, runs: _Runs) -> _Runs:
    """The runs with crumbs joined to their neighbours."""
    if not len(runs.first):
        return runs
    tasks = graph.tasks
    head = runs.task[runs.first]
    stretch = np.zeros(len(head), np.int64)  # of runs on one rank in one step
    stretch[1:] = np.cumsum(
        (np.diff(tasks.rank[head]) != 0) | (np.diff(tasks.step[head]) != 0), dtype=np.int64
    )
    spent_ns = np.add.reduceat(tasks.dur_ns[runs.task], runs.first)
    whole_ns = np.bincount(stretch, spent_ns)[stretch]
    issued = np.bincount(tasks.caller[tasks.caller >= 0], minlength=graph.n_tasks)
    on_host = host_tasks(graph)[head]
    crumb = on_host & (np.add.reduceat(issued[runs.task], runs.first) == 0)
    crumb &= spent_ns < CRUMB_FRAC * whole_ns
    before, after = _solid_neighbours(~crumb, stretch)
    key = runs.key.copy()
    unclear = crumb & (key[:, 0] == Part.OTHER)
    joins = np.where(before >= 0, before, after)
    between = crumb & (before >= 0) & (after >= 0)
    between &= (key[before] == key[after]).all(axis=1)
    chosen = (unclear & (joins >= 0)) | between
    key[chosen] = runs.key[joins[chosen]]
    return _merged(graph, runs.task, key[runs.of_task])


def _solid_neighbours(solid: Bool, stretch: Int64) -> tuple[Int64, Int64]:
    """Per run the last solid one before it and the first after it, of its stretch; -1 for none."""
    n_runs = len(solid)
    rows = np.arange(n_runs)
    before = np.maximum.accumulate(np.where(solid, rows, NONE))
    after = np.minimum.accumulate(np.where(solid, rows, n_runs)[::-1])[::-1]
    before = np.where((before >= 0) & (stretch[before] == stretch), before, NONE)
    within = after < n_runs
    after = np.where(within, after, 0)
    after = np.where(within & (stretch[after] == stretch), after, NONE)
    return before, after


def _running(graph: TaskGraph, runs: _Runs, place: Int64, task: Int64) -> Int64:
    """The run that goes on when each task begins: the last that began before; else the first."""
    found = np.full(len(task), OUTSIDE, np.int64)
    run_rank = graph.tasks.rank[runs.task[runs.first]]
    began = place[runs.task[runs.first]]
    for rank in np.unique(run_rank).tolist():
        mine = np.flatnonzero(graph.tasks.rank[task] == rank)
        numbers = np.flatnonzero(run_rank == rank)
        rising = np.maximum.accumulate(began[numbers])
        at = np.searchsorted(rising, place[task[mine]], side="right") - 1
        found[mine] = numbers[np.maximum(at, 0)]
    return found


def _give_device_work(
    graph: TaskGraph, runs: _Runs, place: Int64, inside: Bool, segment: Int64
) -> None:
    """Write the segments of device tasks: of their callers, else of what they follow."""
    tasks = graph.tasks
    device = ~host_tasks(graph) & (tasks.kind != TaskKind.MEET)
    called = np.flatnonzero(device & (tasks.caller >= 0))
    segment[called] = segment[tasks.caller[called]]
    loose = np.flatnonzero(device & (tasks.caller < 0) & inside & (segment == OUTSIDE))
    if len(loose):
        segment[loose] = _running(graph, runs, place, loose)
        _follow_lane(graph, place, np.flatnonzero(device), loose, segment)
    transfer = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)
    segment[transfer] = segment[transfer - 1]


def _follow_lane(
    graph: TaskGraph, place: Int64, device: Int64, loose: Int64, segment: Int64
) -> None:
    """Write the segments of loose tasks that follow others on their lane."""
    is_loose = np.zeros(graph.n_tasks, bool)
    is_loose[loose] = True
    ordered = device[np.lexsort((place[device], graph.tasks.lane[device]))]
    known = ~is_loose[ordered] & (segment[ordered] != OUTSIDE)
    latest = np.maximum.accumulate(np.where(known, np.arange(len(ordered)), NONE))
    lane = graph.tasks.lane[ordered]
    follows = is_loose[ordered] & (latest >= 0) & (lane[latest] == lane)
    segment[ordered[follows]] = segment[ordered[latest[follows]]]


def _give_meetings(graph: TaskGraph, segment: Int64) -> None:
    """Write the segments of meetings: that of the first of their members."""
    tasks = graph.tasks
    arrive = np.flatnonzero((tasks.kind == TaskKind.ARRIVE) & (segment != OUTSIDE))
    first = np.full(len(graph.collectives.kind) + 1, len(segment), np.int64)
    np.minimum.at(first, tasks.collective[arrive], segment[arrive])
    meet = np.flatnonzero(tasks.kind == TaskKind.MEET)
    found = first[tasks.collective[meet]]
    segment[meet] = np.where(found < len(segment), found, OUTSIDE)
