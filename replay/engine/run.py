"""Replay a task graph: arrays in, schedule out."""

import numpy as np

from replay.engine.kernel import forward_pass
from replay.engine.schedule import Schedule
from replay.graph.arrays import Int64, TaskGraph


def replay(graph: TaskGraph, *, residuals: bool = True) -> Schedule:
    """Run every task as early as its edges allow.

    With `residuals` the unchanged graph reproduces the recording to the nanosecond (calibrated);
    without, nothing fitted to a single task enters (strict).
    """
    tasks, edges = graph.tasks, graph.edges
    lengths = {len(tasks.dur_ns), len(tasks.release_ns), len(tasks.residual_ns), len(graph.order)}
    assert lengths == {graph.n_tasks}, "the compiled pass trusts the lengths of the columns"
    residual_ns = tasks.residual_ns if residuals else _zeros(graph.n_tasks)
    # numpy asks for huge pages, which a compiled function's own arrays would lack.
    start_ns, end_ns, blocked_by = (np.empty(graph.n_tasks, np.int64) for _ in range(3))
    forward_pass(
        graph.order,
        edges.start,
        edges.src,
        edges.lag_ns,
        edges.from_start,
        tasks.dur_ns,
        tasks.release_ns,
        residual_ns,
        start_ns,
        end_ns,
        blocked_by,
    )
    return Schedule(start_ns=start_ns, end_ns=end_ns, blocked_by=blocked_by)


def _zeros(length: int) -> Int64:
    """Read-only as the columns of a graph, or the pass would be compiled a second time."""
    zeros = np.zeros(length, np.int64)
    zeros.flags.writeable = False
    return zeros
