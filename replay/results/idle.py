"""When each stream and each device did nothing inside the steps, and what it waited for."""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import DEVICE_KINDS, HOST_KINDS, EdgeKind, LaneKind, TaskKind
from replay.engine.schedule import Schedule
from replay.graph import thresholds
from replay.graph.arrays import NONE, Bool, Int8, Int64, TaskGraph
from replay.results import walks
from replay.results.metrics import step_times
from replay.results.unexplained import is_unrecorded_work

CAUSES = (
    "unknown",
    "launch_overhead",
    "host_late",
    "sync_drain",
    "event_wait",
    "comm_wait",
    "no_more_work",
    "short",
)
"""Why nothing ran, by code; docs/sql.md tells each in a sentence. The first six are those of
`walks`, the last two are gaps that no task follows and gaps too short to be looked at."""
NO_MORE_WORK, SHORT = CAUSES.index("no_more_work"), CAUSES.index("short")


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Gaps by stream or device and time, cut at the boundaries of the steps.

    The gaps of a lane and step, with the short ones that are summed in one row, and the time in
    which it was busy are the step.
    """

    rank: Int64
    device: Int64
    stream: Int64
    """-1 in gaps of a whole device."""
    step: Int64
    """Ordinal of the step, from 0."""
    ts_ns: Int64
    """Start; of the row of short gaps the start of the first."""
    dur_ns: Int64
    gaps: Int64
    """1; of the row of short gaps their number."""
    cause: Int64
    """Code in `CAUSES`: what took the largest share of the gap; `sync_drain` instead of `host_late`
    where the host came out of a wait for the device in it and had waited half as long or more."""
    shares_ns: Int64
    """Shape (rows, 6): the gap, shared out over the first six causes; 0 for the last two."""
    next_task: Int64
    """The task that ended the gap; -1 for none (and for short gaps)."""
    culprit: Int64
    """The task that took the longest part of the gap; -1 for none."""

    def __len__(self) -> int:
        return len(self.rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lanes:
    """What occupies each stream (or device): intervals by lane and start."""

    rank: Int64
    device: Int64
    stream: Int64
    first: Int64
    start_ns: Int64
    end_ns: Int64
    task: Int64


def stream_idle(graph: TaskGraph, schedule: Schedule) -> Idle:
    """Gaps of every stream inside the run's steps, each with its cause."""
    return _idle(graph, schedule, _occupied(graph, schedule, by_stream=True))


def device_idle(graph: TaskGraph, schedule: Schedule) -> Idle:
    """The same of whole devices: nothing ran on any of their streams."""
    return _idle(graph, schedule, _occupied(graph, schedule, by_stream=False))


def _occupied(graph: TaskGraph, schedule: Schedule, *, by_stream: bool) -> _Lanes:
    """A member of a collective occupies its stream from its arrival on."""
    tasks = graph.tasks
    on_stream = np.array([lane.kind == LaneKind.STREAM for lane in graph.lanes] + [False], bool)
    chosen = np.isin(tasks.kind, [int(kind) for kind in DEVICE_KINDS - {TaskKind.TRANSFER}])
    ids = np.flatnonzero(chosen & on_stream[tasks.lane])
    places = [(lane.rank, lane.device, lane.stream) for lane in graph.lanes]
    keys = np.array(places or [(NONE, NONE, NONE)], np.int64)
    if not by_stream:
        keys[:, 2] = NONE
    used = np.flatnonzero(np.bincount(tasks.lane[ids], minlength=len(keys)))
    lanes, place = np.unique(keys[used], axis=0, return_inverse=True)
    number_of_lane = np.zeros(len(keys), np.int64)
    number_of_lane[used] = place.reshape(-1)
    number = number_of_lane[tasks.lane[ids]]
    member = tasks.kind[ids] == TaskKind.ARRIVE
    start_ns = schedule.start_ns[ids]
    end_ns = schedule.end_ns[np.where(member, np.minimum(ids + 1, graph.n_tasks - 1), ids)]
    order = np.lexsort((end_ns, start_ns, number))
    return _Lanes(
        rank=lanes[:, 0],
        device=lanes[:, 1],
        stream=lanes[:, 2],
        first=np.searchsorted(number[order], np.arange(len(lanes) + 1)),
        start_ns=start_ns[order],
        end_ns=end_ns[order],
        task=ids[order],
    )


def _idle(graph: TaskGraph, schedule: Schedule, lanes: _Lanes) -> Idle:
    boundary_ns = step_times(graph, schedule).boundary_ns
    lane, lo_ns, hi_ns, task = walks.gaps(
        lanes.first,
        lanes.start_ns,
        lanes.end_ns,
        lanes.task,
        int(boundary_ns[0]),
        int(boundary_ns[-1]),
    )
    whole_ns = hi_ns - lo_ns
    lane, lo_ns, hi_ns, task, step, whole_ns = _cut(lane, lo_ns, hi_ns, task, whole_ns, boundary_ns)
    is_short = whole_ns < thresholds.SHORT_GAP_NS
    long = np.flatnonzero(~is_short)
    shares_ns, culprit, drained_ns = _blamed(graph, schedule, task[long], lo_ns[long], hi_ns[long])
    cause = shares_ns.argmax(axis=1)
    drained = 2 * drained_ns >= (hi_ns - lo_ns)[long]
    cause[drained & (drained_ns > 0) & (cause == walks.HOST_LATE)] = walks.SYNC_DRAIN
    cause[task[long] < 0] = NO_MORE_WORK
    each = Idle(
        rank=lanes.rank[lane[long]],
        device=lanes.device[lane[long]],
        stream=lanes.stream[lane[long]],
        step=step[long],
        ts_ns=lo_ns[long],
        dur_ns=(hi_ns - lo_ns)[long],
        gaps=np.ones(len(long), np.int64),
        cause=cause,
        shares_ns=shares_ns,
        next_task=task[long],
        culprit=culprit,
    )
    return _in_order(
        each, _short(lanes, lane[is_short], step[is_short], lo_ns[is_short], hi_ns[is_short])
    )


def _cut(
    lane: Int64, lo_ns: Int64, hi_ns: Int64, task: Int64, whole_ns: Int64, boundary_ns: Int64
) -> tuple[Int64, Int64, Int64, Int64, Int64, Int64]:
    """One piece per gap and step that it touches."""
    first = np.searchsorted(boundary_ns, lo_ns, side="right") - 1
    last = np.searchsorted(boundary_ns, hi_ns, side="left") - 1
    count = last - first + 1
    gap = np.repeat(np.arange(len(lane)), count)
    step = first[gap] + np.arange(len(gap)) - np.repeat(np.cumsum(count) - count, count)
    return (
        lane[gap],
        np.maximum(lo_ns[gap], boundary_ns[step]),
        np.minimum(hi_ns[gap], boundary_ns[step + 1]),
        task[gap],
        step,
        whole_ns[gap],
    )


def _blamed(
    graph: TaskGraph, schedule: Schedule, task: Int64, lo_ns: Int64, hi_ns: Int64
) -> tuple[Int64, Int64, Int64]:
    """Shares by cause, the culprit, and the wait that the host came out of, per gap."""
    edges = graph.edges
    return walks.blame_all(  # type: ignore[no-any-return]  # compiled
        task,
        lo_ns,
        hi_ns,
        schedule.start_ns,
        schedule.end_ns,
        graph.tasks.residual_ns,
        schedule.blocked_by,
        edges.start,
        edges.src,
        edges.lag_ns,
        edges.from_start,
        np.where(is_unrecorded_work(graph), walks.NO_CAUSE, _cause_of_lag(edges.kind)),
        _parts(graph),
        graph.tasks.rank,
    )


def _cause_of_lag(kind: Int8) -> Int64:
    """A wait of the host costs its return, a hand-over the time of two threads; else launching."""
    of_kind = np.full(max(EdgeKind) + 1, walks.LAUNCHING, np.int64)
    of_kind[EdgeKind.HOST_SYNC] = walks.SYNC_DRAIN
    of_kind[[EdgeKind.HAND_OVER, EdgeKind.PROGRAM_ORDER]] = walks.HOST_LATE
    of_kind[[EdgeKind.COLLECTIVE, EdgeKind.P2P]] = walks.COMM_WAIT
    return of_kind[kind]


def _parts(graph: TaskGraph) -> Int64:
    of_kind = np.full(max(TaskKind) + 1, walks.DEVICE, np.int64)
    of_kind[[int(kind) for kind in HOST_KINDS]] = walks.HOST
    of_kind[[TaskKind.ARRIVE, TaskKind.TRANSFER]] = walks.COMMUNICATION
    of_kind[TaskKind.MEET] = walks.MEETING
    return of_kind[graph.tasks.kind]


def _short(lanes: _Lanes, lane: Int64, step: Int64, lo_ns: Int64, hi_ns: Int64) -> Idle:
    """One row per lane and step for all gaps that are too short to be looked at."""
    n_steps = int(step.max()) + 1 if len(step) else 1
    codes, first, place = np.unique(lane * n_steps + step, return_index=True, return_inverse=True)
    dur_ns = np.zeros(len(codes), np.int64)
    np.add.at(dur_ns, place, hi_ns - lo_ns)
    number = codes // n_steps
    nothing = np.full(len(codes), NONE, np.int64)
    return Idle(
        rank=lanes.rank[number],
        device=lanes.device[number],
        stream=lanes.stream[number],
        step=codes % n_steps,
        ts_ns=lo_ns[first],
        dur_ns=dur_ns,
        gaps=np.bincount(place, minlength=len(codes)).astype(np.int64),
        cause=np.full(len(codes), SHORT, np.int64),
        shares_ns=np.zeros((len(codes), walks.N_CAUSES), np.int64),
        next_task=nothing,
        culprit=nothing,
    )


def _in_order(each: Idle, short: Idle) -> Idle:
    """Rows of both by rank, device, stream, step and start."""

    def joined(name: str) -> Int64:
        return np.concatenate([getattr(each, name), getattr(short, name)])

    columns = {name: joined(name) for name in Idle.__slots__}
    keys = ("ts_ns", "step", "stream", "device", "rank")
    order = np.lexsort(tuple(columns[key] for key in keys))
    return Idle(**{name: values[order] for name, values in columns.items()})


def idle_by_cause(idle: Idle) -> dict[str, int]:
    """Idle time by cause over all rows, ns, the most first."""
    total_ns = np.zeros(len(CAUSES), np.int64)
    np.add.at(total_ns, idle.cause, idle.dur_ns)
    order = np.argsort(-total_ns, kind="stable")
    return {CAUSES[code]: int(total_ns[code]) for code in order if total_ns[code]}


def idle_of(idle: Idle, mask: Bool) -> Idle:
    """The rows where `mask` is true."""
    return Idle(**{name: getattr(idle, name)[mask] for name in Idle.__slots__})


def n_devices(graph: TaskGraph) -> int:
    """Devices that the run has work on."""
    return len({(lane.rank, lane.device) for lane in graph.lanes if lane.kind == LaneKind.STREAM})
