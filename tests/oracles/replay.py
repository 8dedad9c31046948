"""What the compiled pass means, in ten lines: slow, recursive, readable."""

from functools import cache

from replay.graph.arrays import TaskGraph


def starts(graph: TaskGraph, *, residuals: bool = True) -> list[int]:
    """Start of every task: the latest of its release and its edges, plus its residual."""
    tasks, edges = graph.tasks, graph.edges

    @cache
    def start(task: int) -> int:
        ready = [int(tasks.release_ns[task])]
        for edge in range(edges.start[task], edges.start[task + 1]):
            source = int(edges.src[edge])
            length = 0 if edges.from_start[edge] else int(tasks.dur_ns[source])
            ready.append(start(source) + length + int(edges.lag_ns[edge]))
        return max(ready) + (int(tasks.residual_ns[task]) if residuals else 0)

    return [start(task) for task in range(graph.n_tasks)]
