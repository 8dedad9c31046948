"""What the edges leave unexplained at recorded times, task by task."""

import numpy as np

from replay.graph.arrays import Edges, Int64


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
