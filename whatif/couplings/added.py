"""Transfers that a scenario added to the recorded ones."""

import numpy as np

from ingest.vocab import TaskKind
from replay.graph.arrays import Int64, TaskGraph


def added_transfers(plain: TaskGraph, recorded: Int64) -> tuple[Int64, Int64]:
    """Added transfers, and for each the place in `recorded` of the one that it stands for.

    Added tasks follow after the recorded ones and keep the row of the store of what they are like
    (buckets cut anew have the row of the bucket in which they end).

    Args:
        plain: a variant of the run.
        recorded: some transfers of the unchanged run.
    """
    tasks = plain.tasks
    behind = int(recorded.max()) + 1 if len(recorded) else plain.n_tasks
    added = behind + np.flatnonzero(tasks.kind[behind:] == TaskKind.TRANSFER)
    if not len(added):
        return added, added
    order = np.argsort(tasks.slice_id[recorded], kind="stable")
    known = tasks.slice_id[recorded[order]]
    place = np.minimum(np.searchsorted(known, tasks.slice_id[added]), len(known) - 1)
    same = known[place] == tasks.slice_id[added]
    return added[same], order[place[same]]
