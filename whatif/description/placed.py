"""Strokes and products by their place."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from replay.graph.arrays import Int8, Int64
from whatif.description.doing import Doing
from whatif.description.parts import Parts
from whatif.description.strokes import Strokes
from whatif.models.places import Pass, Place

Ranks = list[tuple[Strokes, Parts, Int8]]
"""Of each rank its strokes, where they belong, and their places."""
Product = tuple[int, int, int, int]
"""Batch, m, n, k."""


def strokes_at(ranks: Ranks, place: Place) -> Iterator[tuple[Strokes, Parts, Int64]]:
    """Forward strokes at a place, by rank."""
    for strokes, parts, places in ranks:
        rows = np.flatnonzero((places == place) & (parts.direction == Pass.FORWARD))
        yield strokes, parts, rows


def products_at(ranks: Ranks, place: Place) -> dict[Product, int]:
    """Products of forward at a place with how often they are computed, the most frequent first."""
    counts: Counter[Product] = Counter()
    for strokes, _, rows in strokes_at(ranks, place):
        rows = rows[(strokes.doing[rows] == Doing.PRODUCT) & strokes.product[rows].all(axis=1)]
        found, number = np.unique(strokes.product[rows], axis=0, return_counts=True)
        for (batch, m, n, k), count in zip(found.tolist(), number.tolist(), strict=True):
            counts[batch, m, n, k] += count
    return dict(counts.most_common())


def usual_product(ranks: Ranks, place: Place) -> Product | None:
    """The one that is computed most often."""
    return next(iter(products_at(ranks, place)), None)
