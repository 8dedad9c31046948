"""The best pairing of two sequences in order, near a pairing that is known: compiled."""

import numpy as np

from ingest.compiled import compiled

BEST = 1000
"""Worth of a pair that ends at the same moment."""
LEAST = 50
"""Worth of a pair whose ends say nothing."""

_SKIP_LEFT, _SKIP_RIGHT, _PAIR = 0, 1, 2


@compiled
def best_path(left, right, apart_ok, low, high, offset, tolerance, scale):
    """Pairs of the path of greatest worth through a band.

    Args:
        left: int64 rows kind, size, dtype, name, number, start, end; one column per call.
        right: the same of the other side.
        apart_ok: per left call, whether it may end long before its counterpart.
        low: per left call, the first right call that it may be.
        high: per left call, one past the last; both never fall.
        offset: how far the ends of the right side lie after those of the left, ns.
        tolerance: ends of one call lie no further apart than this, ns, unless the calls overlap.
        scale: a pair whose ends are this far apart is worth half, ns.

    Returns:
        Per left call the right call, -1 for none.
    """
    n, m = left.shape[1], right.shape[1]
    first = np.zeros(n + 1, np.int64)
    for i in range(n):
        first[i + 1] = first[i] + high[i] - low[i]
    choice = np.zeros(first[n], np.int8)
    value = np.zeros(m + 1, np.int64)
    reached = 0
    for i in range(n):
        for j in range(reached, high[i]):
            value[j + 1] = value[reached]
        reached = max(reached, high[i])
        diagonal = value[low[i]]
        for j in range(low[i], high[i]):
            above = value[j + 1]
            worth = _worth(left, i, right, j, apart_ok[i], offset, tolerance, scale)
            taken = _SKIP_LEFT
            best = above
            if value[j] > best:
                best = value[j]
                taken = _SKIP_RIGHT
            if worth > 0 and diagonal + worth >= best:
                best = diagonal + worth
                taken = _PAIR
            choice[first[i] + j - low[i]] = taken
            value[j + 1] = best
            diagonal = above
    return _walk_back(choice, first, low, high)


@compiled
def _walk_back(choice, first, low, high):
    n = len(low)
    found = np.full(n, -1, np.int64)
    i = n - 1
    j = high[i] - 1 if n > 0 else -1
    while i >= 0 and j >= 0:
        if j < low[i]:
            i -= 1
            continue
        j = min(j, high[i] - 1)
        taken = choice[first[i] + j - low[i]]
        if taken == _PAIR:
            found[i] = j
            i -= 1
            j -= 1
        elif taken == _SKIP_RIGHT:
            j -= 1
        else:
            i -= 1
    return found


@compiled
def _worth(left, i, right, j, apart_ok, offset, tolerance, scale):
    """0 where the calls cannot be one; else the more, the closer they end."""
    for label in range(5):
        a, b = left[label, i], right[label, j]
        if label == 0:
            if a != b and a != 0 and b != 0:
                return 0
        elif label == 3:
            unsized = left[1, i] == -1 or right[1, j] == -1
            if unsized and a != b:
                return 0
        elif a not in (b, -1) and b != -1:
            return 0
    end = right[6, j] - offset
    apart = abs(end - left[6, i])
    meet = min(left[6, i], end) - max(left[5, i], right[5, j] - offset)
    if apart > tolerance and meet <= tolerance and not apart_ok:
        return 0
    return max(BEST * scale // (scale + apart), LEAST if apart_ok else 1)
