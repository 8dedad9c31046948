"""What the replay could not explain, by place: residuals of tasks and silence of host threads."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ingest.vocab import EdgeKind, LaneKind, TaskKind
from replay.engine.schedule import Schedule
from replay.graph import thresholds
from replay.graph.arrays import Bool, Int64, TaskGraph
from replay.results.critical_path import CriticalPath

RESIDUAL, SILENCE = "residual", "silence"
_MOST_STREAMS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Equal tasks of the same kind of lane, over all ranks and steps; times in ns."""

    what: str
    """`residual` or `silence`."""
    name: str
    """Of the task; of a wait the call that holds it or the work that follows it."""
    op: str
    """Innermost op around it; empty when there is none, or when it is the name."""
    lane_role: str
    """Role of a thread; of streams their recorded numbers, which may differ by rank."""
    edge: str
    """Kind of the edge that bound the start; `release` where none did, empty for silence."""
    ranks: tuple[int, ...]
    steps: tuple[int, ...]
    """As recorded; without those outside all steps."""
    count: int
    total_ns: int
    """Sum of the absolute values."""
    on_path_ns: int
    """Part of it on the critical path."""
    largest_ns: int
    """Signed: a negative residual began before its causes allow."""
    example_task: int
    """The task with the largest."""
    example_rank: int
    example_ts_ns: int
    """Its recorded start after the run's origin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """One row per task with something unexplained."""

    task: Int64
    value_ns: Int64
    on_path_ns: Int64
    edge: Int64
    """EdgeKind; -1 for a release, -2 where no edge is asked for."""


def places(graph: TaskGraph, schedule: Schedule, path: CriticalPath) -> tuple[Place, ...]:
    """Everything unexplained, what is on the critical path first, then by size.

    Args:
        graph: the unchanged run.
        schedule: its calibrated replay.
        path: of that schedule.
    """
    found = [
        *_grouped(graph, _residuals(graph, schedule, path), RESIDUAL),
        *_grouped(graph, _silence(graph, path), SILENCE),
    ]
    return tuple(sorted(found, key=lambda place: (-place.on_path_ns, -place.total_ns)))


def path_unexplained_ns(graph: TaskGraph, path: CriticalPath) -> Int64:
    """Per task of the path: residual (absolute) and silence, no more than the path has there.

    What a CUDA graph does without rows counts too, as it is only presumed; so does the time until
    the path begins, where nothing but its release holds its first task back.
    """
    residual_ns = np.abs(graph.tasks.residual_ns[path.task])
    silent_ns = np.minimum(graph.tasks.unexplained_ns[path.task], path.span_ns)
    total_ns: Int64 = residual_ns + silent_ns + presumed_work_ns(graph, path)
    total_ns[:1] += path.lag_ns[:1] * (path.edge[:1] < 0)
    return total_ns


def presumed_work_ns(graph: TaskGraph, path: CriticalPath) -> Int64:
    """Per task of the path the work of a CUDA graph without rows before it."""
    found_ns = np.zeros_like(path.lag_ns)
    bound = path.edge >= 0
    found_ns[bound] = path.lag_ns[bound] * is_unrecorded_work(graph)[path.edge[bound]]
    return found_ns


def is_unrecorded_work(graph: TaskGraph) -> Bool:
    """Per edge whether its lag is work of a CUDA graph that no row stands for."""
    edges = graph.edges
    presumed: Bool = np.isin(edges.kind, [EdgeKind.STREAM_ORDER, EdgeKind.GRAPH_LAUNCH])
    return presumed & (edges.lag_ns > thresholds.LONGEST_LAG_NS)


def _residuals(graph: TaskGraph, schedule: Schedule, path: CriticalPath) -> _Parts:
    tasks = graph.tasks
    task = np.flatnonzero(tasks.residual_ns)
    bound = schedule.blocked_by[task]
    edge = np.where(bound >= 0, graph.edges.kind[bound].astype(np.int64), -1)
    on_path = np.zeros(graph.n_tasks, bool)
    on_path[path.task] = True
    value_ns = tasks.residual_ns[task]
    return _Parts(
        task=task, value_ns=value_ns, on_path_ns=np.abs(value_ns) * on_path[task], edge=edge
    )


def _silence(graph: TaskGraph, path: CriticalPath) -> _Parts:
    task = np.flatnonzero(graph.tasks.unexplained_ns)
    value_ns = graph.tasks.unexplained_ns[task]
    on_path_ns = np.zeros(graph.n_tasks, np.int64)
    on_path_ns[path.task] = path.span_ns
    return _Parts(
        task=task,
        value_ns=value_ns,
        on_path_ns=np.minimum(value_ns, on_path_ns[task]),
        edge=np.full(len(task), -2),
    )


def _grouped(graph: TaskGraph, parts: _Parts, what: str) -> Iterator[Place]:
    tasks = graph.tasks
    if not len(parts.task):
        return
    name, waits = _names(graph, parts.task)
    roles = sorted({lane.role for lane in graph.lanes} | {""})
    role_of_lane = np.array([roles.index(lane.role) for lane in graph.lanes] + [roles.index("")])
    role = role_of_lane[tasks.lane[parts.task]]
    op = tasks.op[parts.task]
    order, cuts = _runs(name, op, role, parts.edge, waits)
    for first, last in pairwise(cuts):
        rows = order[first:last]
        top = rows[np.argmax(np.abs(parts.value_ns[rows]))]
        task = int(parts.task[top])
        shown, around = (_text(graph, number) for number in (name[top], op[top]))
        ids = parts.task[rows]
        yield Place(
            what=what,
            name=f"wait: {shown}" if waits[top] else shown,
            op=around if around != shown else "",
            lane_role=_lane_name(graph, roles[role[top]], ids),
            edge=_edge_name(int(parts.edge[top])),
            ranks=tuple(np.unique(tasks.rank[ids][tasks.rank[ids] >= 0]).tolist()),
            steps=tuple(graph.steps[at] for at in np.unique(tasks.step[ids]).tolist() if at >= 0),
            count=len(rows),
            total_ns=int(np.abs(parts.value_ns[rows]).sum()),
            on_path_ns=int(parts.on_path_ns[rows].sum()),
            largest_ns=int(parts.value_ns[top]),
            example_task=task,
            example_rank=int(tasks.rank[task]),
            example_ts_ns=int(tasks.ts_ns[task]),
        )


def _lane_name(graph: TaskGraph, role: str, ids: Int64) -> str:
    """Streams by their recorded numbers: roles count them from 0 on each rank."""
    lanes = [graph.lanes[at] for at in np.unique(graph.tasks.lane[ids]).tolist() if at >= 0]
    streams = sorted({lane.stream for lane in lanes if lane.kind == LaneKind.STREAM})
    if not streams:
        return role
    shown = ", ".join(map(str, streams[:_MOST_STREAMS]))
    more = " and others" if len(streams) > _MOST_STREAMS else ""
    return f"stream{'s' if len(streams) > 1 else ''} {shown}{more}"


def _runs(*columns: NDArray[np.integer] | Bool) -> tuple[Int64, list[int]]:
    """An order that brings equal rows together, and where each run of them begins; then the end."""
    order = np.lexsort(columns)
    changes = np.zeros(len(order) - 1, bool)
    for column in columns:
        changes |= column[order[1:]] != column[order[:-1]]
    return order, [0, *(np.flatnonzero(changes) + 1).tolist(), len(order)]


def _names(graph: TaskGraph, task: Int64) -> tuple[Int64, Bool]:
    """Name of each task, and whether it is a wait, which takes the name of what follows it."""
    tasks = graph.tasks
    waits: Bool = tasks.kind[task] == TaskKind.HOST_WAIT
    after = np.minimum(task + 1, graph.n_tasks - 1)
    after = np.where(waits & (tasks.lane[after] == tasks.lane[task]), after, task)
    return tasks.name[after].astype(np.int64), waits


def _text(graph: TaskGraph, number: int) -> str:
    return graph.names[number] if number >= 0 else ""


def _edge_name(edge: int) -> str:
    if edge >= 0:
        return EdgeKind(edge).name.lower()
    return "release" if edge == -1 else ""
