"""Transfers of collectives on the host: what of a row is moving bytes.

The row of a send or receive over the host ends when somebody waited for it, not when the bytes
were there, so it can be as long as whatever its thread did in between. The receiver's row tells
when they arrived, and equal messages tell how long that takes.
"""

import numpy as np

from ingest.vocab import CollectiveKind, TaskKind
from replay.graph.arrays import Bool, Int64, TaskGraph

PAIRED = (CollectiveKind.SEND, CollectiveKind.RECV, CollectiveKind.SEND_RECV)
MOST_OF_TYPICAL = 2
"""Two messages at a time share the link, so one may take twice the typical time; what is longer
waits for its thread."""


def sends_seen_elsewhere(graph: TaskGraph, task: Int64) -> Bool:
    """Which transfers are sends over the host whose receiver is in the files."""
    is_send: Bool = _on_host_pairs(graph, task)
    if not is_send.any():
        return is_send
    is_send &= _sends(graph, task)
    every = np.flatnonzero(graph.tasks.kind == TaskKind.TRANSFER)
    receives = _on_host_pairs(graph, every) & ~_sends(graph, every)
    received = np.zeros(len(graph.collectives.kind) + 1, bool)
    received[graph.tasks.collective[every[receives]]] = True
    return is_send & received[graph.tasks.collective[task]]


def receivers_last(graph: TaskGraph) -> Bool:
    """Per collective: a message over the host whose receiver was not there before its sender."""
    tasks, calls = graph.tasks, graph.collectives
    arrive = np.flatnonzero(tasks.kind == TaskKind.ARRIVE)
    arrive = arrive[_on_host_pairs(graph, arrive)]
    last = np.zeros(len(calls.kind), bool)
    sends = _sends(graph, arrive)
    sent_ns = np.full(len(calls.kind), np.iinfo(np.int64).max)
    sent_ns[tasks.collective[arrive[sends]]] = tasks.ts_ns[arrive[sends]]
    received = arrive[~sends]
    last[tasks.collective[received]] = tasks.ts_ns[received] >= sent_ns[tasks.collective[received]]
    return last


def moving_ns(graph: TaskGraph, task: Int64) -> Int64:
    """Part of each transfer's duration in which its bytes moved, ns.

    All of it, but for sends and receives over the host: there no longer than the receiver's row,
    nor than `MOST_OF_TYPICAL` times the median of the messages of the same size.
    """
    tasks, calls = graph.tasks, graph.collectives
    dur_ns = tasks.dur_ns[task].copy()
    mine = np.flatnonzero(_on_host_pairs(graph, task))
    if not len(mine):
        return dur_ns
    every = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)
    every = every[_on_host_pairs(graph, every) & ~sends_seen_elsewhere(graph, every)]
    arrived_ns = np.full(len(calls.kind), np.iinfo(np.int64).max)
    np.minimum.at(arrived_ns, tasks.collective[every], tasks.dur_ns[every])
    size_bytes = calls.size_bytes[tasks.collective[every]]
    number = tasks.collective[task[mine]]
    for size in np.unique(calls.size_bytes[number]):
        same = calls.size_bytes[number] == size
        most_ns = arrived_ns[number[same]]
        equal_ns = tasks.dur_ns[every[size_bytes == size]]
        if len(equal_ns):
            most_ns = np.minimum(most_ns, int(MOST_OF_TYPICAL * np.median(equal_ns)))
        dur_ns[mine[same]] = np.minimum(dur_ns[mine[same]], most_ns)
    return dur_ns


def with_moving(measured_ns: Int64, moving_ns: Int64, new_moving_ns: Int64) -> Int64:
    """Durations whose moving part takes another time, ns.

    Slower bytes fill the time until somebody waited for them before they take longer; faster ones
    end as much earlier, and the thread's own order keeps what waited for them.
    """
    slower_ns = np.maximum(measured_ns, new_moving_ns)
    faster_ns = measured_ns - (moving_ns - new_moving_ns)
    return np.where(new_moving_ns >= moving_ns, slower_ns, faster_ns)


def _on_host_pairs(graph: TaskGraph, task: Int64) -> Bool:
    number = graph.tasks.collective[task]
    calls = graph.collectives
    pairs: Bool = calls.on_host[number] & np.isin(calls.kind[number], PAIRED)
    return pairs


def _sends(graph: TaskGraph, task: Int64) -> Bool:
    """Which tasks are sends by their name."""
    sent = np.array([*("send" in name.lower() for name in graph.names), False], bool)
    return sent[graph.tasks.name[task]]
