"""The place of every stroke in its part: which product of the layer it is, which norm."""

import numpy as np

from replay.graph.arrays import Int8, Int64
from whatif.description.doing import Doing
from whatif.description.layers import anchors
from whatif.description.parts import Parts
from whatif.description.strokes import Strokes
from whatif.models.places import Part, Pass, Place

_BY_DOING = {
    Doing.NORM: Place.NORM,
    Doing.ATTENTION: Place.ATTENTION,
    Doing.SOFTMAX: Place.ATTENTION,
    Doing.ROTARY: Place.ATTENTION,
    Doing.ACTIVATION: Place.ACTIVATION,
    Doing.EMBEDDING: Place.EMBEDDING,
    Doing.LOSS: Place.LOSS,
    Doing.GRADIENT: Place.GRADIENT,
    Doing.OPTIMIZER: Place.OPTIMIZER,
    Doing.EXCHANGE: Place.COMMUNICATION,
    Doing.MESSAGE: Place.COMMUNICATION,
    Doing.ROUTING: Place.ROUTER,
    Doing.SUM: Place.RESIDUAL,
    Doing.COPY: Place.RESIDUAL,
    Doing.ELEMENTS: Place.RESIDUAL,
}
_SURE = (Doing.NORM, Doing.ATTENTION, Doing.ACTIVATION, Doing.LOSS, Doing.EMBEDDING)
"""What names alone tell, in either direction."""
_OF_EXPERTS = (Place.EXPERT, Place.DISPATCH, Place.COMBINE, Place.ROUTER)
_FEW = 4
"""A product of which the output is this many times narrower than the model chooses experts."""


def places_of(strokes: Strokes, parts: Parts) -> Int8:
    """Place of every stroke."""
    table = np.zeros(max(Doing) + 1, np.int8)
    for doing, usual in _BY_DOING.items():
        table[doing] = usual
    place: Int8 = table[strokes.doing]
    forward = parts.direction == Pass.FORWARD
    for group in _groups(strokes, parts):
        _in_layer(strokes, group, place, backward=parts.direction[group[0]] == Pass.BACKWARD)
    head = (parts.part == Part.HEAD) & (strokes.doing == Doing.PRODUCT)
    place[head] = Place.LOGITS
    _around_logits(strokes, parts, place)
    embeds = (parts.part == Part.EMBEDDING) & ~np.isin(
        place, (Place.COMMUNICATION, Place.GRADIENT, Place.NORM)
    )
    place[embeds] = Place.EMBEDDING
    follows = (parts.of_forward >= 0) & ~forward
    follows &= ~np.isin(place, (Place.COMMUNICATION, Place.GRADIENT))
    follows &= ~np.isin(strokes.doing, _SURE) & (place[parts.of_forward] != Place.UNKNOWN)
    place[follows] = place[parts.of_forward[follows]]
    _by_dims(strokes, parts, place)
    outside = parts.part == Part.OPTIMIZER
    place[outside & (place != Place.COMMUNICATION)] = Place.OPTIMIZER
    late = np.isin(parts.part, (Part.SYNC, Part.ENTRY, Part.EXIT, Part.OTHER))
    place[late & ~np.isin(place, (Place.COMMUNICATION, Place.GRADIENT))] = Place.UNKNOWN
    place[(parts.part == Part.SYNC) & (place == Place.UNKNOWN)] = Place.GRADIENT
    # Memory that a kernel wants cleared is cleared just before it.
    clears = np.flatnonzero((strokes.doing[:-1] == Doing.NOTHING) & strokes.on_device)
    for at in clears[::-1]:
        place[at] = place[at + 1]
    return place


def _by_dims(strokes: Strokes, parts: Parts, place: Int8) -> None:
    """Products of a backward without recorded forward: by the forward product of those dims.

    Of y = x w, (m, n, k), the gradient of x is (m, k, n) and that of w (n, k, m) or (k, n, m).
    Where two places have such dims it is the one of the product before it.
    """
    product = strokes.product
    inside = np.isin(parts.part, (Part.LAYER, Part.HEAD)) & (strokes.doing == Doing.PRODUCT)
    inside &= product.all(axis=1)
    ahead = np.flatnonzero(inside & (parts.direction == Pass.FORWARD) & (place != Place.UNKNOWN))
    back = np.flatnonzero(inside & (parts.direction == Pass.BACKWARD) & (parts.of_forward < 0))
    if not len(ahead) or not len(back):
        return
    told = np.unique(np.column_stack([product[ahead], place[ahead]]), axis=0)
    meant: dict[tuple[int, ...], set[int]] = {}
    for batch, m, n, k, where in told.tolist():
        for dims in ((batch, m, k, n), (batch, n, k, m), (batch, k, n, m)):
            meant.setdefault(dims, set()).add(where)
    before = int(Place.UNKNOWN)
    for at, dims in zip(back.tolist(), map(tuple, product[back].tolist()), strict=True):
        choice = meant.get(dims)
        if choice:
            before = before if before in choice else min(choice)
            place[at] = before


def _groups(strokes: Strokes, parts: Parts) -> list[Int64]:
    """Strokes of each (step, micro-batch, layer, direction)."""
    mine = np.flatnonzero(parts.part == Part.LAYER)
    direction = parts.direction[mine]
    keys = (strokes.step[mine], parts.micro_batch[mine], parts.layer[mine], direction)
    order = np.lexsort((mine, *keys[::-1]))
    if not len(order):
        return []
    changes = np.zeros(len(order) - 1, bool)
    for key in keys:
        changes |= np.diff(key[order].astype(np.int64)) != 0
    return np.split(mine[order], np.flatnonzero(changes) + 1)


def _in_layer(strokes: Strokes, group: Int64, place: Int8, *, backward: bool) -> None:
    """By the place before or behind the core of attention; a backward is read from its end."""
    rows = group[::-1] if backward else group
    doing, product = strokes.doing[rows], strokes.product[rows]
    first, last = anchors(doing, product)
    if not len(first):
        place[rows[doing == Doing.PRODUCT]] = Place.UNKNOWN
        return
    at = np.arange(len(rows))
    core = (at >= first[0]) & (at <= last[0])
    is_product = doing == Doing.PRODUCT
    place[rows[core & ~np.isin(doing, (Doing.EXCHANGE, Doing.MESSAGE))]] = Place.ATTENTION
    before = is_product & (at < first[0])
    place[rows[before]] = Place.QKV
    _prepare(doing, rows, place, before, int(first[0]))
    behind = np.flatnonzero(is_product & (at > last[-1]) & (product[:, 0] <= 1))
    number = _calls(strokes.op_id[rows[behind]])
    if not len(behind):
        return
    per = 2 if backward and number[-1] + 1 >= 6 else 1  # noqa: PLR2004  (three products, twice)
    first_up = _feed_forward(product[behind], number, per, place, rows[behind])
    _experts(doing, product, rows, place, int(last[-1]))
    _between_products(doing, rows, place, behind, first_up, last=int(last[-1]))


def _prepare(doing: Int8, rows: Int64, place: Int8, before: Int64, first: int) -> None:
    """What lies between the products to queries, keys and values and the core: rotary, copies."""
    ends = np.flatnonzero(before)
    if not len(ends):
        return
    middle = np.arange(ends[0] + 1, first)
    loose = np.isin(doing[middle], (Doing.COPY, Doing.ELEMENTS, Doing.SUM, Doing.NORM, Doing.OTHER))
    place[rows[middle[loose]]] = Place.ATTENTION


def _calls(op_id: Int64) -> Int64:
    """Number of the operator call of each stroke: a product may have several kernels."""
    fresh = (np.diff(op_id, prepend=-2) != 0) | (op_id < 0)
    return np.cumsum(fresh) - 1


def _feed_forward(product: Int64, number: Int64, per: int, place: Int8, rows: Int64) -> int:
    """Name the products behind attention; position of the first that goes up."""
    place[rows[number < per]] = Place.PROJECTION
    rest = number >= per
    width = int(product[0, 2])
    routes = np.zeros(len(rows), bool)
    known = per == 1 and width > 0 and bool(product[:, 2].all())
    if known:
        routes = rest & (product[:, 2] * _FEW < width) & (product[:, 3] == width)
    down = rest & (product[:, 2] == width) & (product[:, 3] != width) & known
    if not down.any():
        down = rest & ~routes & (number >= int(number[-1]) + 1 - per)
    place[rows[rest]] = Place.UP
    place[rows[down]] = Place.DOWN
    place[rows[routes & ~down]] = Place.ROUTER
    up = np.flatnonzero(rest & ~routes)
    return int(up[0]) if len(up) else len(rows)


def _experts(doing: Int8, product: Int64, rows: Int64, place: Int8, last: int) -> None:
    """Grouped products are experts; tokens are moved to them before and back behind them."""
    at = np.arange(len(rows))
    grouped = (doing == Doing.PRODUCT) & (product[:, 0] > 1) & (at > last)
    if not grouped.any():
        return
    first, end = int(np.argmax(grouped)), len(rows) - int(np.argmax(grouped[::-1]))
    inside = (at >= first) & (at < end)
    place[rows[inside & ~np.isin(doing, (Doing.EXCHANGE, Doing.MESSAGE))]] = Place.EXPERT
    moves = np.isin(doing, (Doing.ELEMENTS, Doing.COPY, Doing.ROUTING, Doing.OTHER))
    routes = np.flatnonzero((place[rows] == Place.ROUTER) & (at < first))
    begin = int(routes[-1]) if len(routes) else last
    place[rows[moves & (at > begin) & (at < first)]] = Place.DISPATCH
    stops = np.flatnonzero(np.isin(doing[end:], (Doing.SUM, Doing.PRODUCT, Doing.NORM)))
    stop = end + int(stops[0]) if len(stops) else len(rows)
    place[rows[moves & (at >= end) & (at < stop)]] = Place.COMBINE


def _between_products(
    doing: Int8, rows: Int64, place: Int8, behind: Int64, first_up: int, *, last: int
) -> None:
    """Copies before the projection are attention's; what lies between up and down activates."""
    loose = np.isin(doing, (Doing.COPY, Doing.ELEMENTS, Doing.SUM, Doing.OTHER))
    at = np.arange(len(rows))
    place[rows[loose & (at > last) & (at < behind[0])]] = Place.ATTENTION
    if first_up < len(behind):
        downs = behind[place[rows[behind]] == Place.DOWN]
        end = int(downs[0]) if len(downs) else int(behind[-1])
        inner = (at > behind[first_up]) & (at < end) & ~np.isin(place[rows], _OF_EXPERTS)
        place[rows[loose & inner]] = Place.ACTIVATION
        soft = (doing == Doing.SOFTMAX) & (at > behind[0])
        place[rows[soft]] = Place.ROUTER


def _around_logits(strokes: Strokes, parts: Parts, place: Int8) -> None:
    """In the head: what comes behind the logits makes the loss, what before them the norm."""
    head = np.flatnonzero(parts.part == Part.HEAD)
    if not len(head):
        return
    loose = np.isin(place[head], (Place.RESIDUAL, Place.UNKNOWN, Place.ATTENTION))
    forward = parts.direction[head] == Pass.FORWARD
    logits = np.flatnonzero((place[head] == Place.LOGITS) & forward)
    at = np.searchsorted(logits, np.arange(len(head)))
    begun = np.zeros(len(head), bool)
    if len(logits):
        before = logits[np.maximum(at - 1, 0)]
        same = strokes.step[head[before]] == strokes.step[head]
        same &= parts.micro_batch[head[before]] == parts.micro_batch[head]
        begun = (at > 0) & same
    place[head[loose & (begun | ~forward)]] = Place.LOSS
    place[head[loose & forward & ~begun]] = Place.NORM
