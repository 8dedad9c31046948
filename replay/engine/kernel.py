"""The compiled pass: one visit of each task in topological order.

Its meaning is the recursive oracle in `tests/oracles/replay.py`.
"""

import numpy as np

from ingest.compiled import compiled


@compiled
def forward_pass(order, edge_start, src, lag_ns, from_start, dur_ns, release_ns, residual_ns):
    """Start of every task and the edge that bound it (-1: its release).

    start[t] = max(release[t], max over its edges of source end (or start) + lag) + residual[t];
    the first edge in CSR order wins a tie, so that the result does not depend on anything else.
    """
    n = len(dur_ns)
    start_ns = np.empty(n, np.int64)
    blocked_by = np.empty(n, np.int64)
    for position in range(len(order)):
        task = order[position]
        best = release_ns[task]
        binding = -1
        for edge in range(edge_start[task], edge_start[task + 1]):
            source = src[edge]
            ready = start_ns[source] + lag_ns[edge]
            if not from_start[edge]:
                ready += dur_ns[source]
            if ready > best or (binding < 0 and ready == best):
                best = ready
                binding = edge
        start_ns[task] = best + residual_ns[task]
        blocked_by[task] = binding
    return start_ns, blocked_by
