"""What collectives that are put in wait for, and what waits for them."""

from dataclasses import dataclass, replace

import numpy as np

from ingest.vocab import EdgeKind, Evidence
from replay.graph import thresholds
from replay.graph.arrays import NONE, Bool, Boundaries, Int64, TaskGraph
from replay.graph.csr import EdgeList
from replay.graph.hosts import host_tasks
from replay.graph.rules.base import edge_list
from whatif.tape.inserting.rows import OTHERWISE, Rows, Waits
from whatif.tape.inserting.tasks import Made
from whatif.tape.lags import usual_ns
from whatif.tape.splice import boundary_rows, edges_of, ends_with, with_edges, with_ends

_ORDER = (EdgeKind.PROGRAM_ORDER, EdgeKind.HAND_OVER)
_AFTER_KERNEL = (EdgeKind.STREAM_ORDER, EdgeKind.EVENT_WAIT, EdgeKind.HOST_SYNC)


def wired(made: Made, rows: Rows, waits: Waits) -> TaskGraph:
    """The graph with the edges of the new tasks, and the cost of their launches."""
    graph, new_id = made.tape.graph, made.new_id
    old = edges_of(graph)
    on_lane = np.where(rows.on_host, made.own_wait, made.transfer)
    before = np.where(rows.previous >= 0, on_lane[rows.previous], new_id[rows.after])
    before = np.where(waits.ahead != OTHERWISE, np.append(new_id, NONE)[waits.ahead], before)
    held = np.flatnonzero(~rows.beside)
    last = new_id.copy()  # of every old task: the last on its lane that stands for its end
    last[rows.after[held]] = on_lane[held]
    shared_before = last[waits.behind]
    last[waits.behind] = made.shared_wait
    graph = _costing(graph, rows, new_id)
    old = _redirected(graph, old, new_id, last)
    lag = _Lags.of(old)
    added = [
        *_arrivals(graph, made, rows, before, lag),
        *_meetings(made, rows),
        _in_turn(graph, made, rows, lag),
        *_waited(made, waits, before, shared_before, lag),
    ]
    graph = replace(graph, boundaries=_ends(graph, made, rows, waits, last))
    return with_edges(graph, old, added)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lags:
    """Typical lags of the run."""

    stream_ns: int
    event_ns: int

    @classmethod
    def of(cls, edges: EdgeList) -> "_Lags":
        return cls(
            stream_ns=usual_ns(edges, EdgeKind.STREAM_ORDER, thresholds.DEFAULT_STREAM_NS),
            event_ns=usual_ns(edges, EdgeKind.EVENT_WAIT, thresholds.DEFAULT_EVENT_NS),
        )


def _costing(graph: TaskGraph, rows: Rows, new_id: Int64) -> TaskGraph:
    """Calls, or host tasks, that also launch a collective take longer."""
    tasks = graph.tasks
    caller = np.where(rows.on_host, new_id[rows.after], tasks.caller[new_id[rows.after]])
    known = (caller >= 0) & (rows.host_ns > 0)
    dur_ns = tasks.dur_ns.copy()
    np.add.at(dur_ns, caller[known], rows.host_ns[known])
    return replace(graph, tasks=replace(tasks, dur_ns=dur_ns))


def _redirected(graph: TaskGraph, old: EdgeList, new_id: Int64, last: Int64) -> EdgeList:
    """What followed a task follows what was put behind it."""
    moved = np.arange(graph.n_tasks)
    moved[new_id] = last
    on_host = host_tasks(graph)[old.src]
    follows = np.where(on_host, np.isin(old.kind, _ORDER), np.isin(old.kind, _AFTER_KERNEL))
    follows &= ~old.from_start
    return replace(old, src=np.where(follows, moved[old.src], old.src).astype(np.int32))


def _arrivals(
    graph: TaskGraph, made: Made, rows: Rows, before: Int64, lag: _Lags
) -> list[EdgeList]:
    """A member arrives when it is launched, and what stands before it is done."""
    on_device = ~rows.on_host
    inside = rows.on_host & (rows.offset_ns >= 0)
    at_end = rows.on_host & ~inside
    caller = graph.tasks.caller[made.arrive].astype(np.int64)
    return [
        _edges(before, made.arrive, EdgeKind.STREAM_ORDER, lag.stream_ns, on_device & ~rows.beside),
        _edges(before, made.arrive, EdgeKind.EVENT_WAIT, lag.event_ns, on_device & rows.beside),
        _edges(caller, made.arrive, EdgeKind.LAUNCH, 0, on_device),
        _edges(before, made.arrive, EdgeKind.LAUNCH, 0, at_end),
        _edges(
            made.new_id[rows.after],
            made.arrive,
            EdgeKind.LAUNCH,
            rows.offset_ns,
            inside,
            from_start=True,
        ),
    ]


def _meetings(made: Made, rows: Rows) -> list[EdgeList]:
    meet, everyone = made.meet[rows.call], np.ones(len(rows), bool)
    return [
        _edges(made.arrive, meet, EdgeKind.COLLECTIVE, 0, everyone),
        _edges(meet, made.transfer, EdgeKind.COLLECTIVE, 0, everyone),
    ]


def _in_turn(graph: TaskGraph, made: Made, rows: Rows, lag: _Lags) -> EdgeList:
    """On a stream or link of their own they run one after another, as they are issued."""
    apart = np.flatnonzero(rows.beside | rows.on_host)
    issued_ns = graph.tasks.ts_ns[made.new_id[rows.after]] + np.maximum(rows.offset_ns, 0)
    order = apart[np.lexsort((apart, issued_ns[apart], made.lane[apart]))]
    same = made.lane[order][1:] == made.lane[order][:-1]
    return _edges(
        made.transfer[order[:-1]],
        made.arrive[order[1:]],
        EdgeKind.STREAM_ORDER,
        lag.stream_ns,
        same,
    )


def _waited(
    made: Made, waits: Waits, before: Int64, shared_before: Int64, lag: _Lags
) -> list[EdgeList]:
    """Threads wait in a task of their own, streams by event."""
    shared = waits.of_row >= 0
    on_device = waits.next_task >= 0
    return [
        _edges(before, made.own_wait, EdgeKind.PROGRAM_ORDER, 0, made.own_wait >= 0),
        _edges(
            made.transfer,
            made.own_wait,
            EdgeKind.HOST_SYNC,
            thresholds.DEFAULT_SYNC_NS,
            made.own_wait >= 0,
        ),
        _edges(
            shared_before,
            made.shared_wait,
            EdgeKind.PROGRAM_ORDER,
            0,
            np.ones(len(shared_before), bool),
        ),
        _edges(
            made.transfer,
            np.append(made.shared_wait, NONE)[waits.of_row],
            EdgeKind.HOST_SYNC,
            thresholds.DEFAULT_SYNC_NS,
            shared,
        ),
        _edges(
            made.transfer,
            made.new_id[waits.next_task],
            EdgeKind.EVENT_WAIT,
            lag.event_ns,
            on_device,
        ),
    ]


def _edges(
    src: Int64,
    dst: Int64,
    kind: EdgeKind,
    lag_ns: Int64 | int,
    rows: Bool,
    *,
    from_start: bool = False,
) -> EdgeList:
    lags = np.broadcast_to(np.asarray(lag_ns, np.int64), len(src))
    return edge_list(
        src[rows],
        dst[rows],
        lag_ns=lags[rows],
        kind=kind,
        evidence=Evidence.INFERRED,
        from_start=from_start,
    )


def _ends(graph: TaskGraph, made: Made, rows: Rows, waits: Waits, last: Int64) -> Boundaries:
    """Steps end with what now follows their last tasks, and with what nobody waits for."""
    bounds = graph.boundaries
    changed = np.flatnonzero(last != made.new_id)
    row, place = ends_with(bounds, made.new_id[changed])
    ends = last[changed][place]
    loose = np.flatnonzero(rows.beside & ~rows.on_host & (waits.next_task < 0))
    transfer = made.transfer[loose]
    transfer = transfer[graph.tasks.step[transfer] >= 0]
    loose_row = boundary_rows(bounds, graph.tasks.rank[transfer], graph.tasks.step[transfer])
    return with_ends(bounds, np.concatenate([row, loose_row]), np.concatenate([ends, transfer]))
