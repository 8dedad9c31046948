"""Which ranks of a matched sequence really meet: groups in lockstep told apart by their ends."""

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

_MAX_CALLS = 64
_MIN_CALLS = 8
_CLEARLY_APART = 10.0
_APART_FLOOR_NS = 50_000.0


def companies(end_ns: Float64) -> Int64:
    """Number of the company of each file, from ends of shape (files, calls); NaN where lacking.

    Files of one communicator end together up to a constant clock offset. Files that run the same
    program in another communicator (tensor-parallel groups, say) drift against them. The files
    are split only into companies of equal size that differ ten times more between than within.
    """
    n, calls = end_ns.shape
    complete = np.flatnonzero(np.isfinite(end_ns).all(axis=0))
    one = np.zeros(n, np.int64)
    if n < 4 or len(complete) < _MIN_CALLS:  # noqa: PLR2004  (two companies of two, at least)
        return one
    picked = complete[np.linspace(0, len(complete) - 1, min(_MAX_CALLS, calls)).astype(np.int64)]
    apart = end_ns[:, None, np.unique(picked)] - end_ns[None, :, np.unique(picked)]
    wobble = np.median(np.abs(apart - np.median(apart, axis=2, keepdims=True)), axis=2)
    joins = _spanning_tree(wobble)
    lengths = np.array([wobble[a, b] for a, b in joins])
    ranked = np.sort(lengths)
    ratio = ranked[1:] / np.maximum(ranked[:-1], 1.0)
    cut = int(np.argmax(ratio))
    if ratio[cut] < _CLEARLY_APART or ranked[cut + 1] < _APART_FLOOR_NS:
        return one
    label = np.arange(n)
    for (a, b), length in zip(joins, lengths.tolist(), strict=True):
        if length <= ranked[cut]:
            label[label == label[b]] = label[a]
    company = np.unique(label, return_inverse=True)[1].astype(np.int64)
    sizes = np.bincount(company)
    return company if sizes.min() == sizes.max() > 1 else one


def _spanning_tree(distance: Float64) -> list[tuple[int, int]]:
    """Edges of the shortest tree over all files (Prim)."""
    n = len(distance)
    inside = np.zeros(n, dtype=bool)
    inside[0] = True
    nearest, gap = np.zeros(n, np.int64), distance[0].copy()
    edges = []
    for _ in range(n - 1):
        gap[inside] = np.inf
        new = int(np.argmin(gap))
        edges.append((int(nearest[new]), new))
        inside[new] = True
        closer = distance[new] < gap
        nearest[closer], gap[closer] = new, distance[new][closer]
    return edges
