"""The loops of the nesting that depend on what came before: compiled, over plain arrays."""

import numpy as np

from ingest.compiled import compiled


@compiled
def walk(thread, ts, end, bleed):
    """Stack walk; a row leaves the stack when a later one starts at or after its end."""
    n = len(thread)
    parent = np.full(n, -1, np.int32)
    depth = np.zeros(n, np.int16)
    child_dur = np.zeros(n, np.int64)
    stack = np.empty(n + 1, np.int32)
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
            depth[row] = depth[stack[level - 1]] + 1
        stack[height] = row
        height += 1
    return parent, depth, child_dur, crosses


@compiled
def innermost(parent, wanted):
    """Per row: itself where wanted, else the nearest wanted row around it; -1 for none.

    A row comes behind the row around it.
    """
    found = np.full(len(parent), -1, np.int32)
    for row in range(len(parent)):
        if wanted[row]:
            found[row] = row
        elif parent[row] >= 0:
            found[row] = found[parent[row]]
    return found
