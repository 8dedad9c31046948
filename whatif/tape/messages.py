"""Messages between pipeline stages: sends and receives that no recorded segment has."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ingest.vocab import CollectiveKind, EdgeKind, Evidence, KernelClass, Phase, TaskKind
from replay.graph import thresholds
from replay.graph.arrays import NEVER_RELEASED_NS, NONE, Collectives, Group, Int64, TaskGraph
from replay.graph.csr import EdgeList, concatenate
from replay.graph.rules.base import edge_list
from whatif.tape.instances import Instances
from whatif.tape.lanes import NewLanes, Stretches
from whatif.tape.meetings import Meetings
from whatif.tape.reel import Reel, is_host
from whatif.tape.spans import numbered

SEND, RECEIVE, BOTH = 1, 2, 3
ENDS = 2
NAME_ON_DEVICE, NAME_ON_HOST = "ncclDevKernel_SendRecv", "gloo:send_recv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Columns with one row per end of a message, by instance."""

    instance: Int64
    kind: Int64
    peer: Int64
    size_bytes: Int64
    transfer_ns: Int64
    number: Int64
    """Message that it is an end of."""
    count: int
    """Messages."""
    on_host: bool

    @property
    def name(self) -> str:
        """What kernels and calls that carry them are named."""
        return NAME_ON_HOST if self.on_host else NAME_ON_DEVICE

    @property
    def way(self) -> Int64:
        """Which of the two streams of its rank each is on."""
        way: Int64 = (self.kind == RECEIVE).astype(np.int64)
        return way

    @property
    def receives(self) -> Int64:
        """Rows that something waits for."""
        return np.flatnonzero(self.kind != SEND)


def messages_of(reel: Reel, made: Instances) -> Messages:
    """Collect the messages of all programs."""
    instance = np.flatnonzero(made.segment < 0)
    row = made.row[instance]
    program = made.program[instance]
    columns = {name: np.zeros(len(instance), np.int64) for name in _COLUMNS}
    for number, one in enumerate(made.programs):
        mine = program == number
        if one.p2p is not None and mine.any():
            for name, column in columns.items():
                column[mine] = getattr(one.p2p, name)[row[mine]]
    assert (columns["kind"] > 0).all(), "an instance is a segment or a message"
    number_of, count = numbered([columns.pop("key")])
    on_host = not bool((reel.tape.graph.tasks.kind == TaskKind.KERNEL).any())
    return Messages(instance=instance, number=number_of, count=count, on_host=on_host, **columns)


_COLUMNS = ("kind", "peer", "key", "size_bytes", "transfer_ns")


def message_tasks(
    made: Instances, messages: Messages, lanes: NewLanes, meetings: Meetings, callers: Int64
) -> dict[str, tuple[Int64, Any]]:
    """Columns of the tasks of messages: per name the ids, and the values there."""
    first_meet, first_call = meetings.n_before(made), len(meetings)
    arrive = made.base[messages.instance]
    pair = np.concatenate([arrive, arrive + 1])
    meet = first_meet + np.arange(messages.count)
    every = np.concatenate([pair, meet])
    lane = np.tile(lanes.streams[made.program[messages.instance], messages.way], ENDS)
    call = first_call + messages.number
    step = np.zeros(messages.count, np.int64)
    step[messages.number] = made.step[messages.instance]
    kinds = np.repeat([TaskKind.ARRIVE, TaskKind.TRANSFER, TaskKind.MEET], _thrice(messages))
    nothing = np.zeros(len(arrive), np.int64)
    return {
        "kind": (every, kinds),
        "lane": (pair, lane),
        "step": (every, np.concatenate([np.tile(made.step[messages.instance], ENDS), step])),
        "caller": (every, np.concatenate([callers, callers, np.full(messages.count, NONE)])),
        "dur_ns": (
            every,
            np.concatenate([nothing, messages.transfer_ns, np.zeros(messages.count, np.int64)]),
        ),
        "collective": (
            every,
            np.concatenate([call, call, first_call + np.arange(messages.count)]),
        ),
        **{name: (every, value) for name, value in _SAME.items()},
    }


def _thrice(messages: Messages) -> list[int]:
    return [len(messages.instance), len(messages.instance), messages.count]


_SAME = {
    "op": NONE,
    "module": NONE,
    "slice_id": NONE,
    "geometry": NONE,
    "phase": Phase.UNKNOWN,
    "kernel_class": KernelClass.COLLECTIVE,
    "release_ns": NEVER_RELEASED_NS,
    "residual_ns": 0,
    "unexplained_ns": 0,
    "fixed": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEdges:
    """What holds messages back, and what waits for them."""

    edges: EdgeList
    caller: Int64
    """Per end, the host task behind which its rank issues it; -1."""
    posting: EdgeList
    """Receives are posted where they stand in their program: without these edges, when the sender
    is ready. Two ranks that receive each other's messages in another order than they send them
    would wait for each other for ever."""


def message_edges(
    reel: Reel, made: Instances, stretches: Stretches, messages: Messages, first_meet: int
) -> MessageEdges:
    """Both ends follow what their rank runs before; the next compute follows the receive."""
    lags = _Lags.of(reel.tape.graph, messages)
    arrive = made.base[messages.instance]
    transfer, meet = arrive + 1, first_meet + messages.number
    around = _Around.of(reel, made, stretches, messages)
    posted = concatenate(
        [
            _edges(around.host_before, arrive, lags.launch_ns, EdgeKind.LAUNCH),
            _edges(around.work_before, arrive, lags.event_ns, EdgeKind.EVENT_WAIT),
            _edges(_before_on_lane(made, messages), arrive, lags.order_ns, EdgeKind.STREAM_ORDER),
        ]
    )
    receives = np.zeros(made.n_tasks, bool)
    receives[arrive[messages.kind == RECEIVE]] = True
    waiting = messages.receives
    certain = concatenate(
        [
            posted.select(~receives[posted.dst]),
            _edges(arrive, meet, 0, EdgeKind.P2P),
            _edges(meet, transfer, 0, EdgeKind.P2P),
            _edges(transfer[waiting], around.next[waiting], lags.wake_ns, lags.wake),
        ]
    )
    return MessageEdges(
        edges=certain, caller=around.host_before, posting=posted.select(receives[posted.dst])
    )


def _edges(src: Int64, dst: Int64, lag_ns: int, kind: EdgeKind) -> EdgeList:
    return edge_list(src, dst, lag_ns=lag_ns, kind=kind, evidence=Evidence.INFERRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lags:
    launch_ns: int
    event_ns: int
    order_ns: int
    wake_ns: int
    wake: EdgeKind

    @classmethod
    def of(cls, graph: TaskGraph, messages: Messages) -> "_Lags":
        """Medians of the run; documented defaults where it has none."""
        event_ns = _median(graph, EdgeKind.EVENT_WAIT, thresholds.DEFAULT_EVENT_NS)
        sync_ns = _median(graph, EdgeKind.HOST_SYNC, thresholds.DEFAULT_SYNC_NS)
        order_ns = thresholds.DEFAULT_LINK_NS if messages.on_host else thresholds.DEFAULT_STREAM_NS
        return cls(
            launch_ns=_median(graph, EdgeKind.LAUNCH, thresholds.DEFAULT_LAUNCH_NS),
            event_ns=event_ns,
            order_ns=_median(graph, EdgeKind.STREAM_ORDER, order_ns),
            wake_ns=sync_ns if messages.on_host else event_ns,
            wake=EdgeKind.HOST_SYNC if messages.on_host else EdgeKind.EVENT_WAIT,
        )


def _median(graph: TaskGraph, kind: EdgeKind, default_ns: int) -> int:
    chosen = (graph.edges.kind == kind) & ~graph.edges.from_start & (graph.edges.lag_ns >= 0)
    return int(np.median(graph.edges.lag_ns[chosen])) if chosen.any() else default_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """New tasks beside each end of a message; -1 for none."""

    host_before: Int64
    """Last host task of the program before it."""
    work_before: Int64
    """Last task before it on the lane that computes; of CPU runs none."""
    next: Int64
    """First task behind it on that lane; of CPU runs the next host task."""

    @classmethod
    def of(cls, reel: Reel, made: Instances, stretches: Stretches, messages: Messages) -> "_Around":
        """Look around."""
        host = np.flatnonzero(is_host(reel.tape.graph)[made.task[stretches.first]])
        works = _computing(reel, made, stretches)
        ending = _by_moment(reel, made, stretches, host, stretches.last)
        waits = _by_moment(reel, made, stretches, host, stretches.first)
        waits = waits if messages.on_host else works
        nothing = np.full(len(messages.instance), NONE, np.int64)
        work = nothing if messages.on_host else _beside(made, stretches, messages, works, -1)
        return cls(
            host_before=_beside(made, stretches, messages, ending, -1),
            work_before=work,
            next=_beside(made, stretches, messages, waits, 1),
        )


def _computing(reel: Reel, made: Instances, stretches: Stretches) -> Int64:
    """Rows of the lane of each program whose kernels take longest."""
    tasks = reel.tape.graph.tasks
    lane = tasks.lane[made.task[stretches.first]].astype(np.int64)
    kernel = tasks.kind == TaskKind.KERNEL
    spent_ns = np.bincount(tasks.lane[kernel], tasks.dur_ns[kernel], len(reel.tape.graph.lanes))
    n_lanes = int(stretches.lane.max(initial=0)) + 1
    whole = np.bincount(stretches.lane, spent_ns[lane], n_lanes)
    program = np.full(n_lanes, NONE, np.int64)
    program[stretches.lane] = made.program[stretches.instance]
    order = np.lexsort((np.arange(n_lanes), -whole, program))
    order = order[whole[order] > 0]
    first = np.ones(len(order), bool)
    first[1:] = np.diff(program[order]) != 0
    chosen = np.zeros(n_lanes, bool)
    chosen[order[first]] = True
    rows = np.flatnonzero(chosen[stretches.lane])
    return rows[np.argsort(stretches.instance[rows], kind="stable")]


def _by_moment(
    reel: Reel, made: Instances, stretches: Stretches, rows: Int64, task: Int64
) -> Int64:
    """Rows by instance, those of one instance by when a task of theirs began in the recording."""
    moment = reel.moment[made.task[task[rows]]]
    return rows[np.lexsort((moment, stretches.instance[rows]))]


def _beside(
    made: Instances, stretches: Stretches, messages: Messages, rows: Int64, way: int
) -> Int64:
    """The last task of a row before each message (`way` -1), or the first of one behind it."""
    if not len(rows):
        return np.full(len(messages.instance), NONE, np.int64)
    instance = stretches.instance[rows]
    at = np.searchsorted(instance, messages.instance) + min(way, 0)
    inside = (at >= 0) & (at < len(rows))
    at = np.where(inside, at, 0)
    inside &= made.program[instance[at]] == made.program[messages.instance]
    task = (stretches.last if way < 0 else stretches.first)[rows[at]]
    return np.where(inside, task, NONE)


def _before_on_lane(made: Instances, messages: Messages) -> Int64:
    """Transfer before each message in its direction on its rank; -1."""
    lane = made.program[messages.instance] * ENDS + messages.way
    order = np.lexsort((messages.instance, lane))
    before = np.full(len(order), NONE, np.int64)
    same = lane[order[1:]] == lane[order[:-1]]
    before[order[1:][same]] = made.base[messages.instance[order[:-1][same]]] + 1
    return before


def with_messages(
    made: Instances, messages: Messages, calls: Collectives, groups: tuple[Group, ...]
) -> tuple[Collectives, tuple[Group, ...]]:
    """The collectives and groups with those of messages behind them."""
    if not messages.count:
        return calls, groups
    columns, more = _calls(messages, len(groups)), _groups(made, messages)
    for field in fields(calls):
        column = getattr(calls, field.name)
        columns[field.name] = np.concatenate([column, columns[field.name].astype(column.dtype)])
    columns["group"][len(calls.kind) :] += more.of_message
    return Collectives(**columns), (*groups, *more.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Groups:
    of_message: Int64
    """Place among the groups."""
    groups: tuple[Group, ...]
    """Pairs of ranks."""


def _groups(made: Instances, messages: Messages) -> _Groups:
    rank = np.array([program.rank for program in made.programs], np.int64)
    here = rank[made.program[messages.instance]]
    low, high = np.minimum(here, messages.peer), np.maximum(here, messages.peer)
    pair, _ = numbered([low, high])
    of_message = np.zeros(messages.count, np.int64)
    of_message[messages.number] = pair
    _, first = np.unique(pair, return_index=True)
    return _Groups(
        of_message=of_message,
        groups=tuple(
            Group(
                name=f"stages of ranks {one} and {other}",
                ranks=(one, other),
                size=ENDS,
                backend="cpu:gloo" if messages.on_host else "nccl",
            )
            for one, other in zip(low[first].tolist(), high[first].tolist(), strict=True)
        ),
    )


def _calls(messages: Messages, first_group: int) -> dict[str, Any]:
    seen = np.bincount(messages.number, minlength=messages.count)
    size, transfer_ns = (np.zeros(messages.count, np.int64) for _ in range(2))
    np.maximum.at(size, messages.number, messages.size_bytes)
    np.maximum.at(transfer_ns, messages.number, messages.transfer_ns)
    return {
        "kind": np.full(messages.count, CollectiveKind.SEND_RECV),
        "group": np.full(messages.count, first_group),
        "size_bytes": size,
        "members_seen": seen,
        "members_expected": np.maximum(seen, ENDS),
        "transfer_ns": transfer_ns,
        "outside_wait_low_ns": transfer_ns,
        "outside_wait_high_ns": transfer_ns,
        "on_host": np.full(messages.count, messages.on_host),
        "item_bytes": np.full(messages.count, NONE),
        "latency_ns": np.zeros(messages.count, np.int64),
    }
