"""The places of one layer: products by their order around attention, the rest by what is next."""

import numpy as np

from replay.graph.arrays import Bool, Int8, Int64
from whatif.description.doing import Doing
from whatif.description.layers import anchors
from whatif.models.places import Place

_FEW = 4
"""A product of which the output is this many times narrower than the model chooses experts."""
_SMALL = 64
"""A product with weights so many times smaller than the largest of its layer is none of those that
make the layer: a gate of attention."""
_THREE_TWICE = 6
"""Products of a backward behind attention, if each is there for inputs and weights."""
_MOVES = (Doing.COPY, Doing.ELEMENTS, Doing.SUM, Doing.OTHER)
_CALLS = (Doing.EXCHANGE, Doing.MESSAGE)
_OF_EXPERTS = (Place.EXPERT, Place.DISPATCH, Place.COMBINE, Place.ROUTER)


def layer_places(doing: Int8, product: Int64, call: Int64, usual: Int8, *, backward: bool) -> Int8:
    """Place of each stroke of one layer.

    Args:
        doing: of the strokes in order (of a backward in reverse order).
        product: batch, m, n, k of each.
        call: number of the operator call of each: a product may have several kernels.
        usual: place that each has by what it does alone.
        backward: the layer is a reversed backward.
    """
    place = usual.copy()
    is_product = doing == Doing.PRODUCT
    first, last = anchors(doing, product)
    if not len(first):
        place[is_product] = Place.UNKNOWN
        return place
    at = np.arange(len(doing))
    core = (at >= first[0]) & (at <= last[-1])
    place[core & ~np.isin(doing, _CALLS)] = Place.ATTENTION
    _before(doing, place, at, int(first[0]))
    behind = np.flatnonzero(is_product & (at > last[-1]) & (product[:, 0] <= 1))
    behind = _without_gates(behind, product, place)
    if not len(behind):
        return place
    _, number = np.unique(call[behind], return_inverse=True)
    per = 2 if backward and number[-1] + 1 >= _THREE_TWICE else 1
    first_up = _feed_forward(product[behind], number, per, place, behind)
    _experts(doing, product, place, int(last[-1]))
    _between_products(doing, place, behind, first_up, int(last[-1]))
    return place


def calls_of(op_id: Int64) -> Int64:
    """Number of the operator call of each stroke, counted through."""
    fresh = (np.diff(op_id, prepend=-2) != 0) | (op_id < 0)
    return np.cumsum(fresh) - 1


def _before(doing: Int8, place: Int8, at: Int64, first: int) -> None:
    """Products to queries, keys and values, and behind the first of them rotary and copies."""
    products = (doing == Doing.PRODUCT) & (at < first)
    place[products] = Place.QKV
    if products.any():
        middle = (at > int(np.argmax(products))) & (at < first)
        place[middle & np.isin(doing, (*_MOVES, Doing.NORM))] = Place.ATTENTION


def _without_gates(behind: Int64, product: Int64, place: Int8) -> Int64:
    """Products behind attention without small ones right behind it."""
    weights = product[behind, 2] * product[behind, 3]
    large = weights * _SMALL >= weights.max(initial=0)
    begin = int(np.argmax(large)) if large.any() else 0
    place[behind[:begin]] = Place.ATTENTION
    return behind[begin:]


def _feed_forward(product: Int64, number: Int64, per: int, place: Int8, behind: Int64) -> int:
    """Name the products behind attention; which of them is the first that goes up."""
    place[behind[number < per]] = Place.PROJECTION
    rest = number >= per
    width = int(product[0, 2])
    routes = np.zeros(len(behind), bool)
    known = per == 1 and width > 0 and bool(product[:, 2].all())
    if known:
        routes = rest & (product[:, 2] * _FEW < width) & (product[:, 3] == width)
    down: Bool = rest & (product[:, 2] == width) & (product[:, 3] != width) & known
    if not down.any():
        down = rest & ~routes & (number >= int(number[-1]) + 1 - per)
    place[behind[rest]] = Place.UP
    place[behind[down]] = Place.DOWN
    place[behind[routes & ~down]] = Place.ROUTER
    up = np.flatnonzero(rest & ~routes)
    return int(up[0]) if len(up) else len(behind)


def _experts(doing: Int8, product: Int64, place: Int8, last: int) -> None:
    """Grouped products are experts; tokens are moved to them before and back behind them."""
    at = np.arange(len(doing))
    grouped = (doing == Doing.PRODUCT) & (product[:, 0] > 1) & (at > last)
    if not grouped.any():
        return
    first, end = int(np.argmax(grouped)), len(doing) - int(np.argmax(grouped[::-1]))
    place[(at >= first) & (at < end) & ~np.isin(doing, _CALLS)] = Place.EXPERT
    moves = np.isin(doing, (Doing.ELEMENTS, Doing.COPY, Doing.ROUTING, Doing.OTHER))
    routes = np.flatnonzero((place == Place.ROUTER) & (at < first))
    begin = int(routes[-1]) if len(routes) else last
    place[moves & (at > begin) & (at < first)] = Place.DISPATCH
    stops = np.flatnonzero(np.isin(doing[end:], (Doing.SUM, Doing.PRODUCT, Doing.NORM)))
    stop = end + int(stops[0]) if len(stops) else len(doing)
    place[moves & (at >= end) & (at < stop)] = Place.COMBINE


def _between_products(doing: Int8, place: Int8, behind: Int64, first_up: int, last: int) -> None:
    """Copies before the projection are attention's; what lies between up and down activates."""
    loose = np.isin(doing, _MOVES)
    at = np.arange(len(doing))
    place[loose & (at > last) & (at < behind[0])] = Place.ATTENTION
    if first_up < len(behind):
        downs = behind[place[behind] == Place.DOWN]
        end = int(downs[0]) if len(downs) else int(behind[-1])
        inner = (at > behind[first_up]) & (at < end) & ~np.isin(place, _OF_EXPERTS)
        place[loose & inner] = Place.ACTIVATION
    place[(doing == Doing.SOFTMAX) & (at > behind[0])] = Place.ROUTER
