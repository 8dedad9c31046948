"""Change the edges of a graph: take some out, put others in, and keep it without cycles."""

from dataclasses import replace

import numpy as np

from ingest.vocab import EdgeKind, Evidence
from replay.graph.arrays import NONE, Bool, Int64, TaskGraph
from replay.graph.csr import (
    EdgeList,
    by_destination,
    concatenate,
    listed_edges,
    task_label,
    topological_order,
)

NO_EDGES = EdgeList(
    src=np.zeros(0, np.int32),
    dst=np.zeros(0, np.int32),
    lag_ns=np.zeros(0, np.int64),
    kind=np.zeros(0, np.int8),
    evidence=np.zeros(0, np.int8),
    from_start=np.zeros(0, bool),
)


def origin_with(graph: TaskGraph, n_added: int) -> Int64 | None:
    """Origins of the tasks of a graph and of more behind them, which have none."""
    if graph.origin is None:
        return None
    return np.concatenate([graph.origin, np.full(n_added, NONE, np.int64)])


def edges_between(src: Int64, dst: Int64, kind: EdgeKind, lag_ns: Int64 | int = 0) -> EdgeList:
    """Edges that a scenario adds, from the end of each source."""
    n = len(src)
    return EdgeList(
        src=src.astype(np.int32),
        dst=dst.astype(np.int32),
        lag_ns=np.broadcast_to(np.asarray(lag_ns, np.int64), n).copy(),
        kind=np.full(n, kind, np.int8),
        evidence=np.full(n, Evidence.INFERRED, np.int8),
        from_start=np.zeros(n, bool),
    )


def rewired(graph: TaskGraph, keep: Bool, added: EdgeList = NO_EDGES) -> TaskGraph:
    """The graph with the edges of `keep` and those added.

    A task that is left without edges starts as recorded.
    """
    kept = listed_edges(graph).select(keep)
    changed = by_destination(concatenate([kept, added]), graph.n_tasks)
    tasks = graph.tasks
    orphan = (np.diff(changed.start) == 0) & (np.diff(graph.edges.start) > 0)
    return replace(
        graph,
        edges=changed,
        order=topological_order(changed, task_label(tasks, graph.names)),
        tasks=replace(tasks, release_ns=np.where(orphan, tasks.ts_ns, tasks.release_ns)),
    )


def previous_in_lane(lane: Int64, place: Int64, marked: Bool) -> Int64:
    """For every row the last marked one before it in its lane; -1 for none.

    Args:
        lane: of each row.
        place: of each row in time.
        marked: rows that count.
    """
    order = np.lexsort((place, lane))
    rows = np.where(marked[order], np.arange(len(order)), NONE)
    latest = np.concatenate([[NONE], np.maximum.accumulate(rows)[:-1]]) if len(rows) else rows
    found = np.where(latest >= 0, order[latest], NONE) if len(order) else latest
    found = np.where((found >= 0) & (lane[found] == lane[order]), found, NONE)
    result = np.empty(len(order), np.int64)
    result[order] = found
    return result
