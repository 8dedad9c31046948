"""Where the tasks of the unchanged run are in a variant of it."""

from typing import NamedTuple

import numpy as np

from replay.graph.arrays import NONE, Int64, TaskGraph


class Found(NamedTuple):
    """Tasks of a variant that some recorded ones became: columns with one row each."""

    task: Int64
    """Of the variant, ascending by row unless put together anew."""
    row: Int64
    """Place of the recorded one among those that were looked for."""


def found_in(plain: TaskGraph, recorded: Int64) -> Found:
    """The recorded tasks in a variant: the same ids, or all copies where it was put together anew.

    Args:
        plain: the variant.
        recorded: ids of the unchanged run, each once.
    """
    if plain.origin is None:
        return Found(task=recorded, row=np.arange(len(recorded)))
    n_known = int(recorded.max(initial=NONE)) + 1
    place = np.full(n_known + 1, NONE, np.int64)
    place[recorded] = np.arange(len(recorded))
    origin = plain.origin
    row = place[np.where((origin >= 0) & (origin < n_known), origin, n_known)]
    task = np.flatnonzero(row >= 0)
    return Found(task=task, row=row[task])
