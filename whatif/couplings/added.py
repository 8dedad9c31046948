"""Transfers that a scenario added to the recorded ones."""

import numpy as np

from ingest.vocab import TaskKind
from replay.graph.arrays import Int64, TaskGraph
from whatif.couplings.copies import found_in


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
    origin = np.arange(plain.n_tasks) if plain.origin is None else plain.origin
    is_added = ((origin < 0) | (origin >= behind)) & (tasks.kind == TaskKind.TRANSFER)
    added = np.flatnonzero(is_added)
    if not len(added) or not len(recorded):
        added = added[:0]
        return added, added
    found = found_in(plain, recorded)
    order = np.argsort(tasks.slice_id[found.task], kind="stable")
    known = tasks.slice_id[found.task[order]]
    place = np.minimum(np.searchsorted(known, tasks.slice_id[added]), max(len(known) - 1, 0))
    same = known[place] == tasks.slice_id[added] if len(known) else np.zeros(len(added), bool)
    return added[same], found.row[order[place[same]]]
