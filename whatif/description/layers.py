"""Layers: where they begin in a pass, told from what repeats in it.

The core of attention is the anchor of a layer. What lies between two anchors is the end of one
layer and the begin of the next; before the first anchor lies the begin of a layer alone (behind the
embedding), and behind the last one the end of a layer (before the head). So what the stretch before
the first anchor has in common with those between, from behind, is the begin of a layer. Without
attention the shortest sequence that repeats is a layer.
"""

from dataclasses import dataclass

import numpy as np

from replay.graph.arrays import Bool, Int8, Int64
from whatif.description.doing import Doing

_LOOSE = (
    *(Doing.COPY, Doing.NOTHING, Doing.GRADIENT, Doing.EXCHANGE, Doing.MESSAGE),
    *(Doing.OPTIMIZER,),
)
"""What may lie anywhere in a layer, or not at all."""
_MOST_ANCHORS = 3
"""Attentions of one layer at most (decoders with cross-attention have two)."""
_LEAST_COVER = 0.6
"""Part of the strokes of a pass that a repeated sequence covers at least."""
_LONGEST_PERIOD = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Layers of a pass: layer k is `[start[k], start[k + 1])`, the last one ends at `end`."""

    start: Int64
    """Positions in the pass."""
    end: int

    def __len__(self) -> int:
        return len(self.start)


def cut_layers(
    doing: Int8, token: Int64, product: Int64, *, noise: Bool, count: int | None = None
) -> Cut | None:
    """Find the layers of a pass; None where nothing repeats.

    Args:
        doing: of the strokes of the pass in order (of a backward pass in reverse order).
        token: equal for strokes that do the same.
        product: batch, m, n, k of each.
        noise: strokes that may be there or not.
        count: layers that there must be, where they are known (of a backward).
    """
    solid = np.flatnonzero(~np.isin(doing, _LOOSE) & ~noise)
    if not len(solid):
        return None
    first, last = anchors(doing[solid], product[solid])
    first, last = _one_per_layer(token[solid], doing[solid] == Doing.PRODUCT, first, last, count)
    found: tuple[Int64, int] | None
    if len(first) > 1:
        found = _between(doing[solid], token[solid], first, last)
    elif len(first) == 1:
        found = _alone(doing[solid], product[solid], int(first[0]), int(last[0]))
    else:
        found = _repeated(token[solid])
    if found is None:
        return None
    starts, end = found
    # What is loose between two layers prepares the next one: gathered parameters, casts.
    begin = np.where(starts > 0, solid[np.maximum(starts - 1, 0)] + 1, 0)
    return Cut(start=begin, end=int(solid[end - 1]) + 1)


def anchors(doing: Int8, product: Int64) -> tuple[Int64, Int64]:
    """First and last stroke of each core of attention.

    Batched products around a softmax belong to it.
    """
    core = doing == Doing.ATTENTION
    batched = (doing == Doing.PRODUCT) & (product[:, 0] > 1)
    if not core.any():
        core = doing == Doing.SOFTMAX
        if (core & _near(batched)).any():  # else that of the loss would be one too
            core &= _near(batched)
    near = _near(core)
    inside = core | (batched & near)
    ends = (doing == Doing.PRODUCT) & ~inside
    number = np.cumsum(ends)
    at = np.flatnonzero(inside)
    if not len(at):
        return at, at
    fresh = np.diff(number[at], prepend=-1) > 0
    begins = np.flatnonzero(fresh)
    return at[begins], at[np.append(begins[1:], len(at)) - 1]


def _near(of: Bool) -> Bool:
    """Those, and up to three strokes before and behind each."""
    near = of.copy()
    for shift in (1, 2, 3):
        near[shift:] |= of[:-shift]
        near[:-shift] |= of[shift:]
    return near


def _one_per_layer(
    token: Int64, is_product: Bool, first: Int64, last: Int64, count: int | None
) -> tuple[Int64, Int64]:
    """Every second or third anchor where the products between them alternate."""
    n = len(first)
    if n and count and n % count == 0:
        stride = n // count
        return first[::stride], last[stride - 1 :: stride]
    between = [np.arange(last[k] + 1, first[k + 1]) for k in range(n - 1)]
    pieces = [tuple(token[one[is_product[one]]].tolist()) for one in between]
    for stride in range(1, _MOST_ANCHORS + 1):
        pairs = [(pieces[k], pieces[k + stride]) for k in range(len(pieces) - stride)]
        if pairs and sum(a == b for a, b in pairs) >= _LEAST_COVER * len(pairs):
            if stride > 1 and n % stride == 0:
                return first[::stride], last[stride - 1 :: stride]
            break
    return first, last


def _between(doing: Int8, token: Int64, first: Int64, last: Int64) -> tuple[Int64, int]:
    """Begins of the layers around at least two anchors, and the end of the last."""
    before = token[: first[0]]
    behind = token[last[-1] + 1 :]
    starts = [0] * len(first)
    for k in range(1, len(first)):
        middle = token[last[k - 1] + 1 : first[k]]
        begin = len(middle) - _common(before[::-1], middle[::-1])
        finish = _common(behind, middle)
        offset = int(last[k - 1]) + 1
        inside = doing[offset : int(first[k])]
        starts[k] = offset + _begin(inside, begin, finish)
    ahead = int(np.median([first[k] - starts[k] for k in range(1, len(first))]))
    after = int(np.median([starts[k + 1] - last[k] for k in range(len(first) - 1)]))
    starts[0] = max(int(first[0]) - ahead, 0)
    return np.array(starts, np.int64), min(int(last[-1]) + after, len(doing))


def _begin(doing: Int8, begin: int, finish: int) -> int:
    """Where the layer begins between two anchors.

    Args:
        doing: of the strokes between them.
        begin: from here on the strokes are those that lie before the first anchor.
        finish: up to here they are those that lie behind the last one.

    Where both agree on several positions, at the norm. Where they leave a gap (layers that differ)
    it is the last norm before the products that lead to attention.
    """
    is_norm = doing == Doing.NORM
    if begin <= finish:
        norms = np.flatnonzero(is_norm[begin : finish + 1])
        return begin + int(norms[0]) if len(norms) else finish
    products = np.flatnonzero(doing == Doing.PRODUCT)
    norms = np.flatnonzero(is_norm[: products[-1] if len(products) else len(doing)])
    return int(norms[-1]) if len(norms) else begin


def _common(left: Int64, right: Int64) -> int:
    """Length of what both begin with."""
    n = min(len(left), len(right))
    differs = np.flatnonzero(left[:n] != right[:n])
    return int(differs[0]) if len(differs) else n


def _alone(doing: Int8, product: Int64, first: int, last: int) -> tuple[Int64, int] | None:
    """The only layer of a pass: from the norm before its first product to its last product's sum.

    It must look like one: the products before attention start from the width that the first one
    behind it comes back to, where widths are recorded. Behind the last product of that width comes
    the head, or nothing.
    """
    is_product = doing == Doing.PRODUCT
    behind = np.flatnonzero(is_product & (np.arange(len(doing)) > last))
    ahead = np.flatnonzero(is_product[:first])
    if not len(behind) or not len(ahead):
        return None
    width = int(product[behind[0], 2])
    if width and product[ahead, 3].all() and width not in product[ahead, 3]:
        return None
    embeds = np.flatnonzero(doing[:first] == Doing.EMBEDDING)
    low = int(embeds[-1]) + 1 if len(embeds) else 0
    norms = np.flatnonzero(doing[low:first] == Doing.NORM)
    start = low + int(norms[0]) if len(norms) else low
    back = behind[(product[behind, 2] == width) & (width > 0)]
    end = int(back[-1]) + 1 if len(back) else len(doing)
    stops = np.isin(doing[end:], (Doing.NORM, Doing.PRODUCT, Doing.LOSS))
    end += int(np.argmax(stops)) if stops.any() else len(doing) - end
    return np.array([start], np.int64), end


def _repeated(token: Int64) -> tuple[Int64, int] | None:
    """The shortest sequence that, repeated, covers most of the pass."""
    n = len(token)
    for period in range(1, min(n // 2, _LONGEST_PERIOD) + 1):
        same = token[period:] == token[:-period]
        begin, length = _longest(same)
        if length < period or (length + period) < _LEAST_COVER * n:
            continue
        count = (length + period) // period
        starts = begin + period * np.arange(count)
        return starts.astype(np.int64), int(starts[-1]) + period
    return None


def _longest(same: Bool) -> tuple[int, int]:
    """Begin and length of the longest run of truth."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
    if not len(edges):
        return 0, 0
    begins, ends = edges[::2], edges[1::2]
    best = int(np.argmax(ends - begins))
    return int(begins[best]), int(ends[best] - begins[best])
