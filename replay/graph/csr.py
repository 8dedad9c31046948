"""Edge list to CSR by destination, and the order in which tasks can be visited."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ingest.vocab import EdgeKind, TaskKind
from replay.graph.arrays import NONE, Bool, Edges, Int8, Int32, Int64, TaskGraph, Tasks
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


def destinations(graph: TaskGraph) -> Int64:
    """Destination of every edge."""
    return np.repeat(np.arange(graph.n_tasks), np.diff(graph.edges.start))


def listed_edges(graph: TaskGraph) -> EdgeList:
    """All edges as a list, to be chosen from and put together with others."""
    edges = graph.edges
    return EdgeList(
        src=edges.src,
        dst=destinations(graph).astype(np.int32),
        lag_ns=edges.lag_ns,
        kind=edges.kind,
        evidence=edges.evidence,
        from_start=edges.from_start,
    )


def topological_order(edges: Edges, label: Callable[[int], str] = "task {}".format) -> Int32:
    """Task ids, every source before its destination.

    The graph is acyclic by construction: an order that misses tasks is a bug of ours, and the
    assertion names the tasks of a cycle by `label`, each with the kind of the edge to the next.
    """
    order: Int32 = kahn(edges.start, edges.src)
    if len(order) < len(edges.start) - 1:
        raise AssertionError("these tasks wait for each other: " + _round_trip(edges, order, label))
    return order


def task_label(tasks: Tasks, names: Sequence[str]) -> Callable[[int], str]:
    """How a message names a task: `gemm (kernel of rank 3, task 812)`."""

    def label(task: int) -> str:
        name = names[tasks.name[task]] if tasks.name[task] != NONE else "-"
        kind = TaskKind(int(tasks.kind[task])).name.lower()
        rank = f" of rank {tasks.rank[task]}" if tasks.rank[task] != NONE else ""
        return f"{name} ({kind}{rank}, task {task})"

    return label


def _round_trip(edges: Edges, order: Int32, label: Callable[[int], str]) -> str:
    """A cycle in words, beginning and ending with the same task."""
    trip = _cycle(edges, order)
    text = label(int(edges.src[trip[-1][1]]))
    for task, edge in reversed(trip):
        kind = EdgeKind(int(edges.kind[edge])).name.lower()
        text += f" -{kind}-> {label(task)}"
    return text


def _cycle(edges: Edges, order: Int32) -> list[tuple[int, int]]:
    """Tasks of a cycle against its direction, each with the edge from the one that follows here.

    What is not in `order` waits for at least one other task that is not, so walking from source
    to source comes back to a task seen before.
    """
    left = np.ones(len(edges.start) - 1, bool)
    left[order] = False
    task = int(np.flatnonzero(left)[0])
    seen: dict[int, int] = {}
    walked: list[tuple[int, int]] = []
    while task not in seen:
        seen[task] = len(walked)
        incoming = range(int(edges.start[task]), int(edges.start[task + 1]))
        edge = next(edge for edge in incoming if left[edges.src[edge]])
        walked.append((task, edge))
        task = int(edges.src[edge])
    return walked[seen[task] :]
