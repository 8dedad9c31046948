"""Backward in two halves: gradients of inputs first, those of weights later (zero-bubble)."""

import numpy as np

from replay.graph.arrays import Bool, Int8, Int32, Int64
from whatif.description.strokes import Strokes
from whatif.models.places import Part, Pass

_LEAST_FRAC = 0.9
"""Part of the layers whose halves must not mix for a run to be taken as split."""


def with_halves(
    strokes: Strokes,
    direction: Int8,
    part: Int8,
    layer: Int32,
    micro_batch: Int32,
    of_forward: Int64,
) -> Int8:
    """Directions with both halves named, where every layer computes one after the other.

    Of y = x w the gradient of x sums over columns, that of w over rows. Usual backward computes
    both for each product in turn, and stays as it is.
    """
    back = np.flatnonzero(
        (direction == Pass.BACKWARD) & np.isin(part, (Part.EMBEDDING, Part.LAYER, Part.HEAD))
    )
    if not len(back):
        return direction
    keys = (strokes.step[back], part[back], layer[back], micro_batch[back])
    order = np.lexsort((back, *keys[::-1]))
    changes = np.zeros(len(order) - 1, bool)
    for key in keys:
        changes |= np.diff(key[order].astype(np.int64)) != 0
    groups = np.split(back[order], np.flatnonzero(changes) + 1)
    weights, inputs = _halves(strokes, of_forward)
    first = [_first_weight(group, weights, inputs) for group in groups]
    counted = [
        at for group, at in zip(groups, first, strict=True) if _mixes(group, weights, inputs)
    ]
    if not counted or sum(at >= 0 for at in counted) < _LEAST_FRAC * len(counted):
        return direction
    found = direction.copy()
    for group, at in zip(groups, first, strict=True):
        if at >= 0:
            found[group[:at]] = Pass.BACKWARD_INPUT
            found[group[at:]] = Pass.BACKWARD_WEIGHT
    return found


def _halves(strokes: Strokes, of_forward: Int64) -> tuple[Bool, Bool]:
    """Strokes that compute gradients of weights, and of inputs, by the dims of their forward."""
    forward = strokes.product[of_forward]
    known = (of_forward >= 0) & strokes.product.all(axis=1) & forward.all(axis=1)
    _, rows, columns, _ = strokes.product.T
    _, m, n, k = forward.T
    across = np.minimum(rows, columns), np.maximum(rows, columns)
    weights = known & (across[0] == np.minimum(n, k)) & (across[1] == np.maximum(n, k))
    inputs = known & (rows == m) & (columns == k)
    both = weights & inputs
    return weights & ~both, inputs & ~both


def _mixes(group: Int64, weights: Bool, inputs: Bool) -> bool:
    """It has several products of both kinds, so that their order tells."""
    return min(int(weights[group].sum()), int(inputs[group].sum())) > 1


def _first_weight(group: Int64, weights: Bool, inputs: Bool) -> int:
    """Position of the first gradient of a weight, if all those of inputs lie before; -1.

    Other work between the halves shows better than dims where the second one begins.
    """
    at = np.flatnonzero(weights[group])
    before = np.flatnonzero(inputs[group])
    if not len(at) or (len(before) and before[-1] > at[0]):
        return -1
    last = int(before[-1]) if len(before) else -1
    gaps = np.flatnonzero(np.diff(group[: at[0] + 1]) > 1) + 1
    gaps = gaps[gaps > last]
    return int(gaps[0]) if len(gaps) else int(at[0])
