"""Timelines of a run on a schedule: the tracks and arrows of a Chrome trace."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ingest.vocab import EdgeKind, KernelClass, LaneKind, Phase, TaskKind
from replay.engine.schedule import Schedule
from replay.graph.arrays import NONE, Bool, Int64, Lane, TaskGraph
from replay.results.critical_path import (
    collective_label,
    critical_path,
    cut_at_steps,
    modules,
)
from replay.results.idle import CAUSES, SHORT, device_idle, idle_of
from replay.results.metrics import step_times
from replay.results.moved import Moved, moved
from replay.results.slack import slack
from replay.results.timeline_rows import TimelineRows
from replay.results.trace_events import (
    Flow,
    FlowPoint,
    Slices,
    Texts,
    joined,
    slices,
    text_of,
)
from replay.results.walks import UNBOUNDED

_SHORT_NAME = 80
"""Characters of a name that is told inside the arguments of another slice."""
_WAITS: Mapping[int, str] = {
    EdgeKind.HOST_SYNC: "wait for device",
    EdgeKind.HAND_OVER: "wait for another thread",
    EdgeKind.COLLECTIVE: "wait for collective",
    EdgeKind.P2P: "wait for collective",
    EdgeKind.QUEUE_FULL: "wait for a place in the launch queue",
}
NO_CAUSE = "gap without a known cause"
_CATEGORY: Mapping[int, str] = {
    TaskKind.KERNEL: "kernel",
    TaskKind.ARRIVE: "kernel",
    TaskKind.MEMCPY: "gpu_memcpy",
    TaskKind.MEMSET: "gpu_memset",
}
_HOST = (TaskKind.HOST_WORK, TaskKind.HOST_CALL, TaskKind.HOST_WAIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A run as one schedule has it."""

    label: str
    """`recorded`, `predicted`, `replayed`: one word."""
    graph: TaskGraph
    schedule: Schedule
    is_recorded: bool
    """The schedule is the recording itself."""


class Told:
    """What a version says of its tasks."""

    def __init__(self, version: Version, recorded: TaskGraph) -> None:
        """Look at a version once.

        Args:
            version: whose tasks are told of.
            recorded: the graph as it was read: its tasks are the first ones of the version.
        """
        graph = version.graph
        self.version = version
        self._recorded = recorded
        self._modules = modules(graph)
        self._slack_ns = slack(graph, version.schedule).run_ns
        self.path = critical_path(graph, version.schedule)
        self.idle = device_idle(graph, version.schedule)
        self.critical: Bool = np.zeros(graph.n_tasks, bool)
        self.critical[self.path.task] = True

    def name(self, task: int) -> str:
        """Of a task, as far as it has one."""
        graph = self.version.graph
        number = int(graph.tasks.name[task])
        kind = TaskKind(int(graph.tasks.kind[task]))
        return graph.names[number] if number >= 0 else kind.name.lower()

    def place(self, task: int) -> str:
        """Rank and lane of a task."""
        tasks = self.version.graph.tasks
        if tasks.lane[task] < 0:
            return "all members"
        lane = self.version.graph.lanes[int(tasks.lane[task])]
        return f"rank {lane.rank} {lane_name(lane)}"

    def texts(self, tasks: Int64) -> list[str]:
        """JSON of what is known of each task; empty for -1."""
        return [text_of(self.of(task)) if task >= 0 else "" for task in tasks.tolist()]

    def of(self, task: int) -> dict[str, object]:
        """What is known of a task: what it is, what decided its start, what changed."""
        graph, tasks = self.version.graph, self.version.graph.tasks
        named = (("op", tasks.op[task]), ("module", self._modules[task]))
        told: dict[str, object] = {"task": task}
        told |= {key: graph.names[number] for key, number in named if number >= 0}
        if tasks.phase[task]:
            told["phase"] = Phase(int(tasks.phase[task])).name.lower()
        if tasks.kind[task] not in _HOST:
            told["class"] = KernelClass(int(tasks.kernel_class[task])).name.lower()
        if tasks.collective[task] >= 0:
            told |= self._collective(int(tasks.collective[task]))
        told |= self._times(task)
        return told

    def _collective(self, number: int) -> dict[str, object]:
        graph = self.version.graph
        calls = graph.collectives
        label = collective_label(graph, int(calls.kind[number]), int(calls.group[number]))
        size = int(calls.size_bytes[number])
        return {"collective": label} | ({"bytes": size} if size >= 0 else {})

    def _times(self, task: int) -> dict[str, object]:
        graph, schedule = self.version.graph, self.version.schedule
        told: dict[str, object] = {}
        if self._slack_ns[task] != UNBOUNDED:
            told["slack_ns"] = int(self._slack_ns[task])
        if self.critical[task]:
            told["critical"] = True
        edge = int(schedule.blocked_by[task])
        if edge >= 0:
            source = int(graph.edges.src[edge])
            told["started_by"] = {
                "edge": EdgeKind(int(graph.edges.kind[edge])).name.lower(),
                "name": self.name(source)[:_SHORT_NAME],
                "at": self.place(source),
                "task": source,
            }
        if self.version.is_recorded:
            return told
        if task >= self._recorded.n_tasks:
            return told | {"added": True}
        before = self._recorded.tasks
        dur_ns = int(schedule.end_ns[task] - schedule.start_ns[task])
        return told | {
            "start_change_ns": int(schedule.start_ns[task] - before.ts_ns[task]),
            "dur_change_ns": dur_ns - int(before.dur_ns[task]),
        }


def lane_name(lane: Lane) -> str:
    """As a track is called."""
    if lane.kind == LaneKind.STREAM:
        return f"GPU {lane.device} stream {lane.stream}"
    return lane.role


class Lanes:
    """Tasks of a version by lane, in the order in which they run."""

    def __init__(self, version: Version) -> None:
        tasks = version.graph.tasks
        self.lanes = version.graph.lanes
        self._order = np.lexsort((np.arange(len(tasks.lane)), tasks.ts_ns, tasks.lane))
        numbers = np.arange(len(self.lanes) + 1)
        self._first = np.searchsorted(tasks.lane[self._order], numbers)

    def of_rank(self, rank: int) -> Iterator[tuple[Lane, Int64]]:
        """Lanes of a rank that have tasks, and these."""
        for number, lane in enumerate(self.lanes):
            ids = self._order[self._first[number] : self._first[number + 1]]
            if lane.rank == rank and len(ids):
                yield lane, ids


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
            args=lambda places: _row_args(
                rows, told, host["slice_id"][chosen[places]], task[places], None
            ),
        )
    ]
    if with_waits and len(thread.tasks):
        parts.append(_waits(thread.tasks, told))
    return joined(parts)


def added_host_slices(ids: Int64, told: Told, recorded: TaskGraph) -> Slices:
    """Host tasks of a lane that a what-if has added."""
    schedule = told.version.schedule
    added = ids[(ids >= recorded.n_tasks) & (schedule.end_ns[ids] > schedule.start_ns[ids])]
    return slices(
        schedule.start_ns[added],
        schedule.end_ns[added],
        _labels(told, added),
        "added",
        task=added,
        args=lambda places: _only_replay(told.texts(added[places])),
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
        args=lambda places: _only_replay(told.texts(ends[places])),
    )


def device_slices(
    lane: Lane, ids: Int64, rows: TimelineRows, told: Told, *, with_parts: bool
) -> Slices:
    """Work of a stream or link; members of collectives run from their arrival on.

    Args:
        lane: a stream or a link.
        ids: its tasks.
        rows: the recording.
        told: of the version.
        with_parts: also, inside members of collectives, what is waiting and what is transfer.
    """
    tasks, schedule = told.version.graph.tasks, told.version.schedule
    kind = tasks.kind[ids]
    whole = ids[(kind != TaskKind.TRANSFER) & np.isin(kind, list(_CATEGORY))]
    member = tasks.kind[whole] == TaskKind.ARRIVE
    start_ns = schedule.start_ns[whole]
    end_ns = schedule.end_ns[np.where(member, whole + 1, whole)]
    categories = [_CATEGORY[number] for number in tasks.kind[whole].tolist()]
    stands_for = tasks.slice_id[whole]
    parts = [
        slices(
            start_ns,
            end_ns,
            _labels(told, whole),
            rows.categories(stands_for, np.array(categories, object)),
            task=whole,
            marked=told.critical[whole] | (member & told.critical[whole + member]),
            args=lambda places: _row_args(rows, told, stands_for[places], whole[places], lane),
        )
    ]
    if with_parts:
        parts += _parts(whole[member], told)
    return joined(parts)


def _parts(arrive: Int64, told: Told) -> list[Slices]:
    """Waiting for the other members, then the transfer."""
    schedule = told.version.schedule
    began_ns, end_ns = schedule.start_ns[arrive], schedule.end_ns[arrive + 1]
    go_ns = np.clip(schedule.start_ns[arrive + 1], began_ns, end_ns)
    inner = np.ones(len(arrive), np.int64)
    found = []
    for label, lo_ns, hi_ns in (
        ("wait for members", began_ns, go_ns),
        ("transfer", go_ns, end_ns),
    ):
        keep = np.flatnonzero(hi_ns > lo_ns)
        found.append(
            slices(
                lo_ns[keep],
                hi_ns[keep],
                np.full(len(keep), label, object),
                "collective_part",
                rank=inner[keep],
                marked=told.critical[arrive[keep] + 1] & (label == "transfer"),
                args=lambda places, keep=keep: _only_replay(  # type: ignore[misc]
                    told.texts(arrive[keep[places]] + 1)
                ),
            )
        )
    return found


def idle_slices(told: Told, rank: int) -> dict[int, Slices]:
    """Gaps of each device of a rank inside the steps, by cause; short gaps are left out."""
    idle = told.idle
    found = {}
    for device in np.unique(idle.device[idle.rank == rank]).tolist():
        mine = idle_of(idle, (idle.rank == rank) & (idle.device == device) & (idle.cause != SHORT))

        def args(places: Int64, mine: Any = mine) -> list[str]:  # noqa: ANN401
            return [
                text_of(
                    {
                        "shares_ns": {
                            CAUSES[code]: int(share)
                            for code, share in enumerate(mine.shares_ns[place])
                            if share
                        },
                        "next": told.name(int(mine.next_task[place]))[:_SHORT_NAME]
                        if mine.next_task[place] >= 0
                        else None,
                        "longest": told.name(int(mine.culprit[place]))[:_SHORT_NAME]
                        if mine.culprit[place] >= 0
                        else None,
                    }
                )
                for place in places.tolist()
            ]

        label = np.array([CAUSES[code].replace("_", " ") for code in mine.cause.tolist()], object)
        found[device] = slices(mine.ts_ns, mine.ts_ns + mine.dur_ns, label, "idle", args=args)
    return found


def step_slices(version: Version) -> Slices:
    """The steps of the run."""
    boundary_ns = step_times(version.graph, version.schedule).boundary_ns
    names = [
        f"step {number}" if version.graph.steps_recorded else "the recording"
        for number in version.graph.steps
    ]
    return slices(
        boundary_ns[:-1],
        boundary_ns[1:],
        np.array(names, object),
        "step",
        args=lambda places: [""] * len(places),
    )


def path_slices(told: Told) -> Slices:
    """The critical path of the run's steps, without a hole: lags, what has no cause, and tasks."""
    version = told.version
    boundary_ns = step_times(version.graph, version.schedule).boundary_ns
    pieces = cut_at_steps(told.path, boundary_ns)
    lengths = np.stack([pieces.lag_ns, pieces.residual_ns, pieces.span_ns], axis=1)
    ends_ns = pieces.ts_ns[:, None] + np.cumsum(lengths, axis=1)
    starts_ns = ends_ns - lengths
    keep = np.flatnonzero(lengths.reshape(-1) > 0)
    piece, part = keep // 3, keep % 3
    task, edge = pieces.task[piece], pieces.edge[piece]
    labels = _labels(told, task)
    kind = np.where(edge >= 0, version.graph.edges.kind[edge], NONE)
    for at in np.flatnonzero(part == 0).tolist():
        known = kind[at] >= 0
        word = EdgeKind(int(kind[at])).name.lower() if known else "release"
        labels[at] = f"lag: {word}"
    labels[part == 1] = NO_CAUSE

    def args(places: Int64) -> list[str]:
        return [
            text_of({"at": told.place(one), "replay": told.of(one)})
            for one in task[places].tolist()
        ]

    return slices(
        starts_ns.reshape(-1)[keep],
        ends_ns.reshape(-1)[keep],
        labels,
        "critical_path",
        args=args,
    )


def _labels(told: Told, ids: Int64) -> Texts:
    label = np.empty(len(ids), object)
    label[:] = [told.name(task) for task in ids.tolist()]
    return label


def _only_replay(texts: list[str]) -> list[str]:
    return [f'{{"replay":{text}}}' if text else "" for text in texts]


def _row_args(
    rows: TimelineRows, told: Told, slice_id: Int64, task: Int64, lane: Lane | None
) -> list[str]:
    """Arguments of rows: as recorded, or for another schedule what still holds of them."""
    own = told.texts(task)
    is_recorded = told.version.is_recorded
    written = rows.arguments(slice_id) if is_recorded else rows.ties(slice_id, lane)
    return [_merged(text, replay) for text, replay in zip(written, own, strict=True)]


def _merged(written: str, replay: str) -> str:
    """Recorded arguments and those of the replay as one object."""
    if not replay:
        return written
    if not written or written == "{}":
        return f'{{"replay":{replay}}}'
    return f'{written[:-1]},"replay":{replay}}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the tasks of a version are drawn; track 0 is nowhere."""

    pid: Int64
    tid: Int64
    ts_ns: Int64


def arrows(told: Told, places: Places, first_number: int) -> Iterator[Flow]:
    """From launching calls to what they launched, and between members of collectives.

    Args:
        told: of the version.
        places: of its slices.
        first_number: of arrows that no other version uses.
    """
    number = first_number
    for category, name, tasks in _ends_of_arrows(told, places):
        points = tuple(
            FlowPoint(
                pid=int(places.pid[task]), tid=int(places.tid[task]), ts_ns=int(places.ts_ns[task])
            )
            for task in tasks
        )
        yield Flow(number=number, category=category, name=name, points=points)
        number += 1


def _ends_of_arrows(told: Told, places: Places) -> Iterator[tuple[str, str, list[int]]]:
    graph = told.version.graph
    tasks = graph.tasks
    shown = places.tid > 0
    launched = np.flatnonzero((tasks.caller >= 0) & shown & (tasks.kind != TaskKind.TRANSFER))
    launched = launched[shown[tasks.caller[launched]]]
    caller = tasks.caller[launched]
    for task, source in zip(launched.tolist(), caller.tolist(), strict=True):
        if places.ts_ns[source] <= places.ts_ns[task]:
            yield "launch", "launch", [source, task]
    members = np.flatnonzero((tasks.kind == TaskKind.ARRIVE) & shown)
    order = np.lexsort((places.ts_ns[members], tasks.collective[members]))
    members = members[order]
    _, first = np.unique(tasks.collective[members], return_index=True)
    for group in np.split(members, first[1:]):
        if len(group) > 1:
            number = int(tasks.collective[group[0]])
            kind, comm = graph.collectives.kind[number], graph.collectives.group[number]
            yield "collective", collective_label(graph, int(kind), int(comm)), group.tolist()
