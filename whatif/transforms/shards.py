"""Optimizer work on shards: each replica updates its part of the parameters."""

import numpy as np

from ingest.vocab import DEVICE_KINDS, Phase, TaskKind
from replay.graph.arrays import TaskGraph
from whatif.models.bound import Bound
from whatif.transforms.base import free, with_durations

SHORTEST_KERNEL_NS = 2_300
"""A kernel without work, from dispatch to end (clpeak, no-op kernels): it does not shrink below."""


def with_shards(graph: TaskGraph, factor: float, bound: Bound) -> TaskGraph:
    """The graph with a shard `factor` times as large in the hands of each replica's optimizer.

    Kernels of the optimizer scale by it above the time of an empty kernel; of runs without device
    the host's optimizer work does. One bound scales all of it, the other nothing.
    """
    tasks = graph.tasks
    on_device = bool(np.isin(tasks.kind, [int(kind) for kind in DEVICE_KINDS - _MEMBERS]).any())
    kind = TaskKind.KERNEL if on_device else TaskKind.HOST_WORK
    chosen = free(graph, (tasks.kind == kind) & (tasks.phase == Phase.OPTIMIZER))
    fixed_ns = SHORTEST_KERNEL_NS if on_device else 0
    least, most = sorted((1.0, factor))
    scaled_ns = {
        Bound.NOMINAL: fixed_ns + np.maximum(tasks.dur_ns - fixed_ns, 0) * factor,
        Bound.LOW: tasks.dur_ns * least,
        Bound.HIGH: tasks.dur_ns * most,
    }[bound]
    scaled_ns = np.where(
        (bound is Bound.NOMINAL) & (tasks.dur_ns <= fixed_ns), tasks.dur_ns, scaled_ns
    )
    dur_ns = np.where(chosen, np.rint(scaled_ns).astype(np.int64), tasks.dur_ns)
    return with_durations(graph, dur_ns)


_MEMBERS = frozenset({TaskKind.ARRIVE, TaskKind.TRANSFER})
