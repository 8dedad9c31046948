"""The range of times that stand for more than they were recorded as."""

import numpy as np

from ingest.vocab import TaskKind
from replay.graph.arrays import Bool, Float64, TaskGraph
from whatif.description.labels import Labels, Pass
from whatif.models.bound import Bound
from whatif.transforms.base import with_durations
from whatif.transforms.relayout.parts import DEVICE_WORK

MOST_SPREAD_FRAC = 0.5
"""Layers further apart differ in kind: their spread says nothing of what a copy may take."""


def with_spread(made: TaskGraph, recorded: TaskGraph, labels: Labels, bound: Bound) -> TaskGraph:
    """Copies of passes of layers are as far off as the recorded instances are apart.

    Where recorded work runs several times (recomputation, more layers, more micro-batches), the
    others than the first may take a standard deviation of the recorded passes less (LOW) or more
    (HIGH), all of them together: what makes one slow may hold for all.

    Args:
        made: graph of the new layout.
        recorded: what it was made of.
        labels: of the recorded tasks.
        bound: NOMINAL leaves all as it is.
    """
    if bound is Bound.NOMINAL or made.origin is None or recorded.origin is not None:
        return made
    works = _works(recorded) & (labels.layer >= 0) & (labels.direction > 0)
    spread_frac = _spread_frac(recorded, labels, works)
    is_copy = (made.origin >= 0) & (made.origin < recorded.n_tasks)
    count = np.bincount(made.origin[is_copy], minlength=recorded.n_tasks)
    more_frac = np.where(works, spread_frac[labels.direction], 0.0)
    more_frac = more_frac * (1.0 - 1.0 / np.maximum(count, 1))
    of_task = np.zeros(made.n_tasks)
    of_task[is_copy] = more_frac[made.origin[is_copy]]
    if not of_task.any():
        return made
    sign = -1.0 if bound is Bound.LOW else 1.0
    dur_ns = np.rint(made.tasks.dur_ns * (1.0 + sign * of_task)).astype(np.int64)
    return with_durations(made, dur_ns)


def _works(graph: TaskGraph) -> Bool:
    tasks = graph.tasks
    free: Bool = ~tasks.fixed & (tasks.step >= 0)
    on_device: Bool = free & np.isin(tasks.kind, [int(kind) for kind in DEVICE_WORK])
    return on_device if on_device.any() else free & (tasks.kind == TaskKind.HOST_WORK)


def _spread_frac(graph: TaskGraph, labels: Labels, works: Bool) -> Float64:
    """Per pass, the standard deviation of the time of a layer over its mean, all instances."""
    found = np.zeros(len(Pass) + 1)
    mine = np.flatnonzero(works)
    keys = np.stack(
        [
            graph.tasks.rank[mine],
            graph.tasks.step[mine],
            labels.layer[mine],
            labels.micro_batch[mine],
            labels.direction[mine].astype(np.int32),
        ]
    )
    if not len(mine):
        return found
    kinds, number = np.unique(keys, axis=1, return_inverse=True)
    time_ns = np.bincount(number.ravel(), graph.tasks.dur_ns[mine])
    for way in np.unique(kinds[-1]).tolist():
        found[way] = _deviation(time_ns[kinds[-1] == way])
    return found


def _deviation(time_ns: Float64) -> float:
    mean = float(time_ns.mean())
    return min(float(time_ns.std()) / mean, MOST_SPREAD_FRAC) if mean else 0.0
