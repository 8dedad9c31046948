"""What the graph of another layout rests on: which times were measured, scaled, made."""

import numpy as np

from ingest.vocab import DEVICE_KINDS
from replay.graph.arrays import Bool, Int64, TaskGraph
from replay.graph.hosts import host_tasks
from whatif.models.coverage import Coverage


def coverage(recorded: TaskGraph, made: TaskGraph) -> Coverage:
    """Shares of the work of the new graph, by what became of the recorded times.

    Of runs on devices device work and transfers count, of others all of it. Tasks of which nothing
    was recorded are made; those with another time than their original are scaled.

    Args:
        recorded: the run that the new graph was made of.
        made: of the new layout; `origin` tells what its tasks are copies of.
    """
    counted = _counted(made)
    dur_ns = made.tasks.dur_ns
    is_made, was_ns = _were(recorded, made)
    is_scaled = ~is_made & (was_ns != dur_ns)
    whole = max(int(dur_ns[counted].sum()), 1)
    scaled = int(dur_ns[counted & is_scaled].sum()) / whole
    new = int(dur_ns[counted & is_made].sum()) / whole
    return Coverage(measured_frac=1.0 - scaled - new, scaled_frac=scaled, made_frac=new)


def _were(recorded: TaskGraph, made: TaskGraph) -> tuple[Bool, Int64]:
    """Per new task, whether it has no original, and how long its original took."""
    if made.origin is None:
        return np.zeros(made.n_tasks, np.bool_), recorded.tasks.dur_ns
    numbers = np.arange(recorded.n_tasks) if recorded.origin is None else recorded.origin
    dur_ns = np.zeros(int(max(numbers.max(initial=0), made.origin.max(initial=0))) + 1, np.int64)
    dur_ns[numbers[numbers >= 0]] = recorded.tasks.dur_ns[numbers >= 0]
    return made.origin < 0, dur_ns[np.maximum(made.origin, 0)]


def _counted(graph: TaskGraph) -> Bool:
    on_device: Bool = np.isin(graph.tasks.kind, list(DEVICE_KINDS))
    if on_device.any() and any(info.gpu for info in graph.ranks):
        return on_device
    works: Bool = on_device | host_tasks(graph)
    return works
