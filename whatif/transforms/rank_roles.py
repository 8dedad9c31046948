"""Which ranks do the same work: only they can be compared task by task."""

import numpy as np

from ingest.vocab import DEVICE_KINDS, HOST_KINDS
from replay.graph.arrays import Int64, TaskGraph

ALIKE = 0.9
"""Ranks of one role have this part of their tasks in common. Data-parallel and tensor-parallel
ranks have all of them (Megatron, torchtitan: equal counts); ranks that hold other embedding tables
or another pipeline stage differ (DLRM: 245 to 315 kernels)."""


def rank_roles(graph: TaskGraph) -> Int64:
    """Role of each rank, in the order of `graph.ranks`, numbered from 0.

    Work is compared as the multiset of names of device tasks in the steps (of host tasks where no
    rank has device tasks): common part = sum of the lesser counts / sum of the greater ones. A rank
    takes the role of the first rank before it that is alike.
    """
    counts = _name_counts(graph)
    roles = np.zeros(len(counts), np.int64)
    founders: list[int] = []
    for position, own in enumerate(counts):
        alike = [role for role, first in enumerate(founders) if _common(counts[first], own)]
        roles[position] = alike[0] if alike else len(founders)
        if not alike:
            founders.append(position)
    return roles


def _common(one: Int64, other: Int64) -> bool:
    return bool(np.minimum(one, other).sum() >= ALIKE * np.maximum(one, other).sum())


def _name_counts(graph: TaskGraph) -> Int64:
    """Shape (ranks, names)."""
    tasks = graph.tasks
    counted = np.isin(tasks.kind, [int(kind) for kind in DEVICE_KINDS])
    if not counted.any():
        counted = np.isin(tasks.kind, [int(kind) for kind in HOST_KINDS])
    counted &= (tasks.step >= 0) & (tasks.name >= 0)
    numbers = np.array([info.rank for info in graph.ranks], np.int64)
    # A what-if may have left ranks out whose tasks are still there.
    counted &= np.isin(tasks.rank, numbers)
    order = np.argsort(numbers)
    position = order[np.searchsorted(numbers, tasks.rank[counted], sorter=order)]
    place = position * len(graph.names) + tasks.name[counted]
    shape = (len(numbers), len(graph.names))
    return np.bincount(place, minlength=shape[0] * shape[1]).reshape(shape)
