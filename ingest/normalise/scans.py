"""The loops of the nesting that depend on what came before: compiled, over plain arrays."""

import numpy as np

from ingest.compiled import compiled


@compiled
def walk(order, thread, ts, dur, bleed, parent, depth, own):
    """Stack walk over rows in `order`: by thread, start, longest first.

    A row leaves the stack when a later one starts at or after its end. Fills `parent` (row; -1 at
    the top), `depth` and `own`, which comes in as the duration and goes out without that of the
    direct children, never below 0. Returns which places of `order` outlive the row around them by
    more than `bleed`.
    """
    n = len(order)
    stack = np.empty(n + 1, np.int32)
    height = 0
    crosses = np.zeros(n, np.bool_)
    for place in range(n):
        row = order[place]
        if place > 0 and thread[row] != thread[order[place - 1]]:
            height = 0
        while height > 0 and ts[stack[height - 1]] + dur[stack[height - 1]] <= ts[row]:
            height -= 1
        end = ts[row] + dur[row]
        level = height
        while level > 0:
            above = stack[level - 1]
            if end <= ts[above] + dur[above] + bleed:
                break
            level -= 1
        if level < height:
            crosses[place] = True
        if level > 0:
            above = stack[level - 1]
            parent[row] = above
            own[above] -= dur[row]
            depth[row] = depth[above] + 1
        stack[height] = row
        height += 1
    for place in range(n):
        row = order[place]
        own[row] = max(own[row], 0)
    return crosses


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
