"""Edge list to CSR by destination, and the order in which tasks can be visited."""

from dataclasses import dataclass

import numpy as np

from ingest.compiled import compiled
from replay.graph.arrays import Bool, Edges, Int8, Int32, Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeList:
    """Edges as a rule found them: parallel columns, in any order."""

    src: Int32
    dst: Int32
    lag_ns: Int64
    kind: Int8
    evidence: Int8
    from_start: Bool

    def __len__(self) -> int:
        return len(self.src)

    def select(self, mask: Bool) -> "EdgeList":
        """The edges where `mask` is true."""
        return EdgeList(
            src=self.src[mask],
            dst=self.dst[mask],
            lag_ns=self.lag_ns[mask],
            kind=self.kind[mask],
            evidence=self.evidence[mask],
            from_start=self.from_start[mask],
        )


def concatenate(lists: list[EdgeList]) -> EdgeList:
    """All edges of `lists`, in their order."""
    return EdgeList(
        src=np.concatenate([edges.src for edges in lists]),
        dst=np.concatenate([edges.dst for edges in lists]),
        lag_ns=np.concatenate([edges.lag_ns for edges in lists]),
        kind=np.concatenate([edges.kind for edges in lists]),
        evidence=np.concatenate([edges.evidence for edges in lists]),
        from_start=np.concatenate([edges.from_start for edges in lists]),
    )


def by_destination(edges: EdgeList, n_tasks: int) -> Edges:
    """CSR of the incoming edges; edges of one task keep their order in the list."""
    order = np.argsort(edges.dst, kind="stable")
    count = np.bincount(edges.dst, minlength=n_tasks)
    return Edges(
        start=np.concatenate([np.zeros(1, np.int64), np.cumsum(count, dtype=np.int64)]),
        src=edges.src[order],
        lag_ns=edges.lag_ns[order],
        kind=edges.kind[order],
        evidence=edges.evidence[order],
        from_start=edges.from_start[order],
    )


def topological_order(edges: Edges) -> Int32:
    """Task ids, every source before its destination.

    The graph is acyclic by construction: an order that misses tasks is a bug of ours, and the
    assertion names the tasks on the cycle.
    """
    order = kahn(edges.start, edges.src)
    n_tasks = len(edges.start) - 1
    if len(order) < n_tasks:
        left = np.setdiff1d(np.arange(n_tasks), order)[:8]
        raise AssertionError(f"cycle through or above tasks {left.tolist()}")
    return order


@compiled
def kahn(edge_start, src):
    """Task ids with every source before its destination; shorter than the task count on a cycle.

    Kahn's algorithm over the outgoing lists, first in first out, smallest id first at the start.
    """
    n = len(edge_start) - 1
    out_count = np.zeros(n + 1, np.int64)
    for edge in range(len(src)):
        out_count[src[edge] + 1] += 1
    out_start = np.cumsum(out_count)
    fill = out_start[:-1].copy()
    destination = np.empty(len(src), np.int32)
    missing = np.empty(n, np.int64)
    for task in range(n):
        missing[task] = edge_start[task + 1] - edge_start[task]
        for edge in range(edge_start[task], edge_start[task + 1]):
            source = src[edge]
            destination[fill[source]] = task
            fill[source] += 1
    order = np.empty(n, np.int32)
    tail = 0
    for task in range(n):
        if missing[task] == 0:
            order[tail] = task
            tail += 1
    head = 0
    while head < tail:
        task = order[head]
        head += 1
        for position in range(out_start[task], out_start[task + 1]):
            following = destination[position]
            missing[following] -= 1
            if missing[following] == 0:
                order[tail] = following
                tail += 1
    return order[:tail]
