"""Which host row holds which: parent, depth and own time of the rows of each thread."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.compiled import compiled

Int64 = NDArray[np.int64]

BLEED_NS = 1_000
"""A row that outlives the row around it by no more than this still belongs to it."""


class Nesting(NamedTuple):
    """Columns with one row per host row."""

    parent: Int64
    """Row number; -1 at the top."""
    depth: Int64
    self_dur: Int64
    """Duration without that of the direct children, never below 0."""
    crosses: NDArray[np.bool_]
    """Outlives the row around it by more than `BLEED_NS`: taken for its sibling."""


def nest(thread: Int64, ts: Int64, dur: Int64) -> Nesting:
    """Nest rows sorted by (thread, start, longest first)."""
    parent, depth, child_dur, crosses = walk(thread, ts, ts + dur, BLEED_NS)
    return Nesting(parent, depth, np.maximum(dur - child_dur, 0), crosses)


@compiled
def walk(thread, ts, end, bleed):
    """Stack walk; a row leaves the stack when a later one starts at or after its end."""
    n = len(thread)
    parent = np.full(n, -1, np.int64)
    depth = np.zeros(n, np.int64)
    child_dur = np.zeros(n, np.int64)
    stack = np.empty(n + 1, np.int64)
    height = 0
    crosses = np.zeros(n, np.bool_)
    for row in range(n):
        if row > 0 and thread[row] != thread[row - 1]:
            height = 0
        while height > 0 and end[stack[height - 1]] <= ts[row]:
            height -= 1
        level = height
        while level > 0 and end[row] > end[stack[level - 1]] + bleed:
            level -= 1
        if level < height:
            crosses[row] = True
        if level > 0:
            parent[row] = stack[level - 1]
            child_dur[stack[level - 1]] += end[row] - ts[row]
        depth[row] = level
        stack[height] = row
        height += 1
    return parent, depth, child_dur, crosses
