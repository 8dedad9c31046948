"""Edge list to CSR by destination, and the order in which tasks can be visited."""

from dataclasses import dataclass

import numpy as np

from replay.graph.arrays import Bool, Edges, Int8, Int32, Int64
from replay.graph.scans import kahn


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
    order: Int32 = kahn(edges.start, edges.src)
    n_tasks = len(edges.start) - 1
    if len(order) < n_tasks:
        left = np.setdiff1d(np.arange(n_tasks), order)[:8]
        raise AssertionError(f"cycle through or above tasks {left.tolist()}")
    return order
