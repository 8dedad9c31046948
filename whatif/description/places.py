"""The place of every stroke in its part: which product of the layer it is, which norm."""

import numpy as np

from replay.graph.arrays import Int8, Int64
from whatif.description.doing import Doing
from whatif.description.layer_places import calls_of, layer_places
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


def places_of(strokes: Strokes, parts: Parts) -> Int8:
    """Place of every stroke."""
    table = np.zeros(max(Doing) + 1, np.int8)
    for doing, usual in _BY_DOING.items():
        table[doing] = usual
    place: Int8 = table[strokes.doing]
    forward = parts.direction == Pass.FORWARD
    _in_layers(strokes, parts, place)
    head = (parts.part == Part.HEAD) & (strokes.doing == Doing.PRODUCT)
    place[head] = Place.LOGITS
    _around_logits(strokes, parts, place)
    embeds = (parts.part == Part.EMBEDDING) & ~np.isin(
        place, (Place.COMMUNICATION, Place.GRADIENT, Place.NORM)
    )
    place[embeds] = Place.EMBEDDING
    _repeated_by_dims(strokes, parts, place)
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


def _repeated_by_dims(strokes: Strokes, parts: Parts, place: Int8) -> None:
    """Products computed again have the dims of their forward, if only some of a layer are.

    Where several places have them the order in the layer chooses.
    """
    product = strokes.product
    inside = (parts.part == Part.LAYER) & (strokes.doing == Doing.PRODUCT) & product.all(axis=1)
    again = np.flatnonzero(inside & (parts.direction == Pass.RECOMPUTE))
    ahead = np.flatnonzero(inside & (parts.direction == Pass.FORWARD) & (place != Place.UNKNOWN))
    if not len(again) or not len(ahead):
        return
    meant: dict[tuple[int, ...], set[int]] = {}
    told = np.unique(np.column_stack([product[ahead], place[ahead]]), axis=0)
    for *dims, where in told.tolist():
        meant.setdefault(tuple(dims), set()).add(where)
    for at, dims in zip(again.tolist(), map(tuple, product[again].tolist()), strict=True):
        choice = meant.get(dims)
        if choice and int(place[at]) not in choice:
            place[at] = min(choice)


def _in_layers(strokes: Strokes, parts: Parts, place: Int8) -> None:
    """Name the strokes of every layer; equal layers are looked at once."""
    known: dict[bytes, Int8] = {}
    for group in _groups(strokes, parts):
        backward = bool(parts.direction[group[0]] == Pass.BACKWARD)
        if backward and (parts.of_forward[group] >= 0).any():
            # Those take the places of their forward.
            place[group[strokes.doing[group] == Doing.PRODUCT]] = Place.UNKNOWN
            continue
        rows = group[::-1] if backward else group
        call = calls_of(strokes.op_id[rows])
        key = bytes([backward]) + strokes.token[rows].tobytes() + call.tobytes()
        if key not in known:
            known[key] = layer_places(
                strokes.doing[rows], strokes.product[rows], call, place[rows], backward=backward
            )
        place[rows] = known[key]


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
