"""Tracks of threads: operators, calls, frames, and what the thread waits for."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ingest.vocab import EdgeKind, LaneKind, TaskKind
from replay.engine.schedule import Schedule
from replay.graph.arrays import NONE, Int64, Lane, TaskGraph
from replay.results.timeline.events import Args, Slices, Texts, joined, slices
from replay.results.timeline.moved import Moved, moved
from replay.results.timeline.rows import TimelineRows
from replay.results.timeline.told import (
    NO_CAUSE,
    Lanes,
    Told,
    copy_args,
    labels_of,
    only_replay,
    row_args,
)

_WAITS: Mapping[int, str] = {
    EdgeKind.HOST_SYNC: "wait for device",
    EdgeKind.HAND_OVER: "wait for another thread",
    EdgeKind.COLLECTIVE: "wait for collective",
    EdgeKind.P2P: "wait for collective",
    EdgeKind.QUEUE_FULL: "wait for a place in the launch queue",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A thread of the recording: its rows, and what became of its tasks."""

    utid: int
    lane: Lane | None
    """None where it has no tasks."""
    rows: Int64
    """Places in the columns of `TimelineRows.host`."""
    tasks: Int64


def threads(rows: TimelineRows, lanes: Lanes, rank: int, graph: TaskGraph) -> list[Thread]:
    """Threads of a rank in the order of its lanes; those without tasks come last."""
    mine = rows.host_of_rank(rank)
    utid = rows.host["utid"][mine]
    found: list[Thread] = []
    for lane, ids in lanes.of_rank(rank):
        if lane.kind != LaneKind.THREAD:
            continue
        stands_for = graph.tasks.slice_id[ids]
        at = rows.host_places(stands_for[stands_for >= 0])
        number = int(rows.host["utid"][at[0]]) if len(at) else NONE
        of_thread = mine[utid == number] if len(at) else mine[:0]
        found.append(Thread(utid=number, lane=lane, rows=of_thread, tasks=ids))
    known = {thread.utid for thread in found}
    for number in sorted(set(utid.tolist()) - known):
        nothing = np.zeros(0, np.int64)
        found.append(Thread(utid=number, lane=None, rows=mine[utid == number], tasks=nothing))
    return found


def host_slices(
    thread: Thread, rows: TimelineRows, told: Told, recorded: TaskGraph, *, with_waits: bool
) -> Slices | None:
    """Operators, calls, frames and waits of a thread; None where the version does not move it.

    Rows keep their place among the tasks of their thread: where these move, rows are stretched and
    shifted with them.

    Args:
        thread: whose rows they are; its tasks are those of the recorded graph.
        rows: the recording.
        told: of the version.
        recorded: the graph as it was read.
        with_waits: also slices for what the thread waits for.
    """
    host = rows.host
    chosen = thread.rows[~np.isin(host["slice_id"][thread.rows], _on_links(recorded))]
    start_ns, end_ns = host["ts_ns"][chosen], host["end_ns"][chosen]
    if not told.version.is_recorded:
        if not len(thread.tasks):
            return None
        moves = _moves(thread, told.version.schedule, recorded)
        start_ns, end_ns = moves.starts(start_ns), moves.ends(end_ns)
        end_ns = np.maximum(start_ns, end_ns)
    task = _calls(thread, recorded, host["slice_id"][chosen])
    parts = [
        slices(
            start_ns,
            end_ns,
            rows.names[host["name_id"][chosen]],
            host["cat"][chosen],
            rank=host["depth"][chosen],
            task=task,
            marked=(task >= 0) & told.critical[task],
            args=lambda places: row_args(
                rows, told, host["slice_id"][chosen[places]], task[places], None
            ),
        )
    ]
    if with_waits and len(thread.tasks):
        parts.append(_waits(thread.tasks, told))
    return joined(parts)


def added_host_slices(ids: Int64, told: Told) -> Slices:
    """Host tasks of a lane that a what-if has added."""
    added = _shown(ids[told.recorded_task[ids] < 0], told)
    return _task_slices(added, told, "added", lambda places: only_replay(told.texts(added[places])))


def copied_host_slices(
    lane: Lane, ids: Int64, rows: TimelineRows, told: Told, *, with_waits: bool
) -> Slices:
    """Host tasks of a lane that a what-if put together anew, its steps and its waits.

    The rows inside them, operators in operators, stand for no one copy and are not drawn.
    """
    tasks = told.version.graph.tasks
    shown = _shown(ids, told)
    category = rows.categories(tasks.slice_id[shown], np.full(len(shown), "cpu_op", object))
    args = lambda places: copy_args(told, shown[places], None)  # noqa: E731  (one line of it)
    parts = [_task_slices(shown, told, category, args)]
    if lane.steps:
        parts.append(_steps(ids, told))
    if with_waits and len(ids):
        parts.append(_waits(ids, told))
    return joined(parts)


def _steps(ids: Int64, told: Told) -> Slices:
    """The steps as the profiler marks them: around what a thread did for each."""
    graph, schedule = told.version.graph, told.version.schedule
    step = graph.tasks.step[ids]
    known = [number for number in range(len(graph.steps)) if (step == number).any()]
    mine = [ids[step == number] for number in known] if graph.steps_recorded else []
    return slices(
        np.array([schedule.start_ns[one].min() for one in mine], np.int64),
        np.array([schedule.end_ns[one].max() for one in mine], np.int64),
        np.array([f"ProfilerStep#{graph.steps[known[at]]}" for at in range(len(mine))], object),
        "user_annotation",
        rank=np.full(len(mine), NONE, np.int64),
        args=lambda places: [""] * len(places),
    )


def _shown(ids: Int64, told: Told) -> Int64:
    schedule = told.version.schedule
    return ids[schedule.end_ns[ids] > schedule.start_ns[ids]]


def _task_slices(shown: Int64, told: Told, category: Texts | str, args: Args) -> Slices:
    schedule, critical = told.version.schedule, told.critical
    return slices(
        schedule.start_ns[shown],
        schedule.end_ns[shown],
        labels_of(told, shown),
        category,
        task=shown,
        marked=critical[shown],
        args=args,
    )


def _on_links(recorded: TaskGraph) -> Int64:
    """Rows of members that run on host links: those are drawn there."""
    is_link = np.array([lane.kind == LaneKind.LINK for lane in recorded.lanes] + [False], bool)
    rows: Int64 = recorded.tasks.slice_id[is_link[recorded.tasks.lane]]
    return rows


def _moves(thread: Thread, schedule: Schedule, recorded: TaskGraph) -> Moved:
    ids = thread.tasks
    return moved(
        recorded.tasks.ts_ns[ids],
        recorded.tasks.dur_ns[ids],
        schedule.start_ns[ids],
        schedule.end_ns[ids],
    )


def _calls(thread: Thread, recorded: TaskGraph, slice_id: Int64) -> Int64:
    """The task of the call that each row is; -1 for operators and frames."""
    ids = thread.tasks[recorded.tasks.kind[thread.tasks] == TaskKind.HOST_CALL]
    ids = ids[recorded.tasks.slice_id[ids] >= 0]
    stands_for, first = np.unique(recorded.tasks.slice_id[ids], return_index=True)
    if not len(stands_for):
        return np.full(len(slice_id), NONE, np.int64)
    at = np.minimum(np.searchsorted(stands_for, slice_id), len(stands_for) - 1)
    return np.where(stands_for[at] == slice_id, ids[first][at], NONE)


def _waits(ids: Int64, told: Told) -> Slices:
    """Time between neighbouring tasks of a thread, by what ends it."""
    graph, schedule = told.version.graph, told.version.schedule
    start_ns, end_ns = schedule.end_ns[ids[:-1]], schedule.start_ns[ids[1:]]
    waiting = np.flatnonzero(end_ns > start_ns)
    ends = ids[1:][waiting]
    edge = schedule.blocked_by[ends]
    kind = np.where(edge >= 0, graph.edges.kind[edge], NONE)
    label = np.array([_WAITS.get(number, NO_CAUSE) for number in kind.tolist()], object)
    return slices(
        start_ns[waiting],
        end_ns[waiting],
        label,
        "wait",
        rank=np.full(len(waiting), np.iinfo(np.int64).max),
        args=lambda places: only_replay(told.texts(ends[places])),
    )
