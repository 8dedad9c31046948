"""What the edges leave unexplained at recorded times, task by task."""

from dataclasses import replace

import numpy as np

from ingest.vocab import EdgeKind
from replay.graph.arrays import Edges, Int64, TaskGraph


def residuals(edges: Edges, ts_ns: Int64, dur_ns: Int64, release_ns: Int64) -> Int64:
    """Recorded start minus the latest of its release and its edges with typical lags, signed."""
    source_ns = ts_ns[edges.src]
    ready_ns = np.where(edges.from_start, source_ns, source_ns + dur_ns[edges.src]) + edges.lag_ns
    explained_ns = release_ns.copy()
    count = np.diff(edges.start)
    has_edges = np.flatnonzero(count)
    if len(has_edges):
        latest_ns = np.maximum.reduceat(ready_ns, edges.start[has_edges])
        explained_ns[has_edges] = np.maximum(explained_ns[has_edges], latest_ns)
    return ts_ns - explained_ns


def without_edges(graph: TaskGraph, kind: EdgeKind) -> TaskGraph:
    """The graph without the edges of one kind; it reproduces the recording all the same.

    What those edges explained is residual, and a task without any edge left is released at its
    recorded start. `graph` must be as recorded: its times are those of the residuals.
    """
    tasks, edges = graph.tasks, graph.edges
    keep = edges.kind != kind
    kept_before = np.concatenate([[0], np.cumsum(keep)])
    fewer = Edges(
        start=kept_before[edges.start],
        src=edges.src[keep],
        lag_ns=edges.lag_ns[keep],
        kind=edges.kind[keep],
        evidence=edges.evidence[keep],
        from_start=edges.from_start[keep],
    )
    orphan = (np.diff(fewer.start) == 0) & (np.diff(edges.start) > 0)
    release_ns = np.where(orphan, tasks.ts_ns, tasks.release_ns)
    residual_ns = residuals(fewer, tasks.ts_ns, tasks.dur_ns, release_ns)
    return replace(
        graph,
        tasks=replace(tasks, release_ns=release_ns, residual_ns=residual_ns),
        edges=fewer,
    )
