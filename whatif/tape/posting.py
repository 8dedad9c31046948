"""What messages between stages wait for, and what waits for them."""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import EdgeKind, Evidence, TaskKind
from replay.graph import thresholds
from replay.graph.arrays import NONE, Int64, TaskGraph
from replay.graph.csr import EdgeList, concatenate
from replay.graph.hosts import host_tasks
from replay.graph.rules.base import edge_list
from whatif.tape.instances import Instances
from whatif.tape.lags import usual_ns
from whatif.tape.lanes import Stretches
from whatif.tape.messages import ENDS, Messages
from whatif.tape.reel import Reel
from whatif.tape.segments import RECEIVE


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
        event_ns = usual_ns(graph.edges, EdgeKind.EVENT_WAIT, thresholds.DEFAULT_EVENT_NS)
        sync_ns = usual_ns(graph.edges, EdgeKind.HOST_SYNC, thresholds.DEFAULT_SYNC_NS)
        order_ns = thresholds.DEFAULT_LINK_NS if messages.on_host else thresholds.DEFAULT_STREAM_NS
        return cls(
            launch_ns=usual_ns(graph.edges, EdgeKind.LAUNCH, thresholds.DEFAULT_LAUNCH_NS),
            event_ns=event_ns,
            order_ns=usual_ns(graph.edges, EdgeKind.STREAM_ORDER, order_ns),
            wake_ns=sync_ns if messages.on_host else event_ns,
            wake=EdgeKind.HOST_SYNC if messages.on_host else EdgeKind.EVENT_WAIT,
        )


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
        host = np.flatnonzero(host_tasks(reel.tape.graph)[made.task[stretches.first]])
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
