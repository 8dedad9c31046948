"""What runs on which device: kernels that compute, and collectives that wait or move data."""

import numpy as np

from ingest.vocab import KernelClass, LaneKind, TaskKind
from replay.graph.arrays import NONE, Bool, Int64, TaskGraph
from whatif.transforms.select import is_compute


def device_of_lane(graph: TaskGraph) -> Int64:
    """Dense number of the device of each stream; -1 for threads and links, and for no lane."""
    known: dict[tuple[int, int], int] = {}
    numbers = [
        known.setdefault((lane.rank, lane.device), len(known))
        if lane.kind == LaneKind.STREAM
        else NONE
        for lane in graph.lanes
    ]
    return np.array([*numbers, NONE], np.int64)


def computing(graph: TaskGraph, devices: Int64) -> Int64:
    """Kernels of a known device that are no communication."""
    tasks = graph.tasks
    return np.flatnonzero(is_compute(graph) & (tasks.dur_ns > 0) & (devices[tasks.lane] >= 0))


def is_communication(graph: TaskGraph) -> Bool:
    """Members of collectives from their arrival on, and kernels of collectives without members."""
    tasks = graph.tasks
    lone = (tasks.kind == TaskKind.KERNEL) & (tasks.kernel_class == KernelClass.COLLECTIVE)
    found: Bool = np.isin(tasks.kind, (TaskKind.ARRIVE, TaskKind.TRANSFER)) | lone
    return found


def communication(graph: TaskGraph) -> Int64:
    """The same on known devices, as task ids."""
    return np.flatnonzero(is_communication(graph) & (device_of_lane(graph)[graph.tasks.lane] >= 0))
