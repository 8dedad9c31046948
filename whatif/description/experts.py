"""What the work of experts tells of their number and sizes."""

import numpy as np

from whatif.description.placed import Ranks, products_at
from whatif.models.places import Part, Pass, Place


def is_gated_expert(ranks: Ranks) -> bool:
    """The products up of an expert are twice as wide as the one down is long."""
    found = products_at(ranks, Place.EXPERT)
    return any(n == 2 * k for (_, _, n, _) in found for (_, _, _, k) in found)


def expert_width(ranks: Ranks, hidden: int | None) -> int | None:
    """Length of the sums of the products that come back to the width of the model."""
    found = products_at(ranks, Place.EXPERT)
    return next((k for (_, _, n, k) in found if n == hidden and k != hidden), None)


def chosen(ranks: Ranks, tokens: int) -> int:
    """Experts of a token: rows of all experts of a rank over its tokens, in balance."""
    found = next(iter(products_at(ranks, Place.EXPERT)), None)
    return max(round(found[0] * found[1] / tokens), 1) if found and tokens else 1


def shared_experts(ranks: Ranks, hidden: int | None) -> int:
    """Width of the feed-forward beside the experts, in experts."""
    expert = expert_width(ranks, hidden)
    beside = 0
    for strokes, parts, places in ranks:
        layers = np.unique(parts.layer[places == Place.EXPERT])
        rows = np.flatnonzero(
            (places == Place.DOWN)
            & (parts.direction == Pass.FORWARD)
            & np.isin(parts.layer, layers[layers >= 0])
        )
        beside = max(beside, int(strokes.product[rows, 3].max(initial=0)))
    return round(beside / expert) if expert else 0


def dense_layers(ranks: Ranks) -> int:
    """First layers without experts, of the rank that has the first ones."""
    for _, parts, places in ranks:
        if (parts.part == Part.EMBEDDING).any():
            layers = parts.layer[(places == Place.EXPERT) & (parts.layer >= 0)]
            return int(layers.min()) if len(layers) else 0
    return 0


def without_experts(ranks: Ranks) -> Ranks:
    """The same without the places of layers that have experts."""
    found: Ranks = []
    for strokes, parts, places in ranks:
        mixed = np.unique(parts.layer[places == Place.EXPERT])
        kept = np.where(np.isin(parts.layer, mixed), np.int8(0), places) if len(mixed) else places
        found.append((strokes, parts, kept))
    return found
