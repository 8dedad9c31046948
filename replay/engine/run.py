"""Replay a task graph: arrays in, schedule out."""

import numpy as np

from replay.engine.kernel import forward_pass
from replay.engine.schedule import Schedule
from replay.graph.arrays import TaskGraph


def replay(graph: TaskGraph, *, residuals: bool = True) -> Schedule:
    """Run every task as early as its edges allow.

    With `residuals` the unchanged graph reproduces the recording to the nanosecond (calibrated);
    without, nothing fitted to a single task enters (strict).
    """
    tasks, edges = graph.tasks, graph.edges
    residual_ns = tasks.residual_ns if residuals else np.zeros_like(tasks.residual_ns)
    start_ns, end_ns, blocked_by = forward_pass(
        graph.order,
        edges.start,
        edges.src,
        edges.lag_ns,
        edges.from_start,
        tasks.dur_ns,
        tasks.release_ns,
        residual_ns,
    )
    return Schedule(start_ns=start_ns, end_ns=end_ns, blocked_by=blocked_by)
