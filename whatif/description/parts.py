"""Layer, part and micro-batch of every stroke: forward from its passes, backward from forward."""

from dataclasses import dataclass

import numpy as np

from replay.graph.arrays import Bool, Int8, Int32, Int64
from whatif.description.doing import Doing
from whatif.description.halves import with_halves
from whatif.description.layers import Cut, cut_layers
from whatif.description.named import Named
from whatif.description.passes import Passes
from whatif.description.strokes import Strokes
from whatif.models.places import Part, Pass

_LEAST_TOLD = 0.5
"""Part of the time of backward whose forward operator must be known to follow those."""
_SHORT_FRAC = 0.05
_SOLID = (
    *(Doing.PRODUCT, Doing.ATTENTION, Doing.SOFTMAX, Doing.NORM, Doing.EMBEDDING, Doing.LOSS),
    *(Doing.ACTIVATION, Doing.SUM, Doing.ELEMENTS, Doing.ROUTING, Doing.OTHER),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Columns with one row per stroke of a rank."""

    direction: Int8
    part: Int8
    layer: Int32
    """In the count of the rank from 0, or as named over all; -1 outside."""
    micro_batch: Int32
    of_forward: Int64
    """Stroke of forward, or of its repetition, whose gradient it is; -1. Of what is computed again
    it is not told: the engine's node around it names but one operator of all that it repeats."""
    passes: int
    """Most forward passes in a step."""
    layers: tuple[int, ...]
    """Of the rank, in order; empty where none were told apart."""
    uneven: bool
    """Passes of forward and backward do not have the same number of layers."""


@dataclass(slots=True, kw_only=True)
class _Columns:
    direction: Int8
    part: Int8
    layer: Int32
    micro_batch: Int32
    of_forward: Int64


def parts_of(strokes: Strokes, passes: Passes, named: Named, *, stepped: bool = True) -> Parts:
    """Say of every stroke where it belongs.

    Args:
        strokes: of one rank.
        passes: in them.
        named: layers that names tell.
        stepped: steps are recorded; else what repeats without attention may be steps.
    """
    n = len(strokes)
    columns = _Columns(
        direction=passes.direction.copy(),
        part=passes.part.copy(),
        layer=np.full(n, -1, np.int32),
        micro_batch=np.full(n, -1, np.int32),
        of_forward=np.full(n, -1, np.int64),
    )
    counts = [_forward(strokes, piece, named, columns, stepped=stepped) for piece in passes.forward]
    _number(strokes, passes.forward, columns)
    told = _told_by_forward(strokes, columns, passes.backward)
    uneven = False
    if told is not None:
        _follow(strokes, passes, _behind_repetitions(told, columns), columns)
        back = columns.direction == Pass.BACKWARD
        followed = back & (told >= 0) & (strokes.step[told] == strokes.step)
        columns.of_forward[followed] = told[followed]
        columns.direction = with_halves(
            strokes,
            columns.direction,
            columns.part,
            columns.layer,
            columns.micro_batch,
            columns.of_forward,
        )
    elif passes.backward:
        uneven = _mirror(strokes, passes, columns)
    used = np.unique(columns.layer[columns.layer >= 0])
    return Parts(
        direction=columns.direction,
        part=columns.part,
        layer=columns.layer,
        micro_batch=columns.micro_batch,
        of_forward=columns.of_forward,
        passes=int(columns.micro_batch.max(initial=-1)) + 1,
        layers=tuple(used.tolist()) if any(counts) else (),
        uneven=uneven or len({one for one in counts if one}) > 1,
    )


def _forward(
    strokes: Strokes, piece: Int64, named: Named, columns: _Columns, *, stepped: bool
) -> int:
    """Label one forward pass; how many layers were told apart in it."""
    layer = named.layer[piece]
    if (layer >= 0).any():
        return _by_names(strokes, piece, layer, columns)
    cut = cut_layers(
        strokes.doing[piece],
        strokes.token[piece],
        strokes.product[piece],
        noise=_noise(strokes, piece),
    )
    attends = np.isin(strokes.doing[piece], (Doing.ATTENTION, Doing.SOFTMAX)).any()
    if cut is None or not (stepped or attends):
        columns.part[piece] = Part.LAYER
        columns.layer[piece] = 0
        return 0
    _put(strokes, piece, cut, np.arange(len(cut)), columns)
    return len(cut)


def _noise(strokes: Strokes, piece: Int64) -> Bool:
    """On the host: short things without a name that says what they do."""
    dur_ns = strokes.dur_ns[piece]
    short: Bool = dur_ns < _SHORT_FRAC * dur_ns.max(initial=0)
    return np.asarray(short & (strokes.doing[piece] == Doing.OTHER) & (not strokes.on_device))


def _by_names(strokes: Strokes, piece: Int64, layer: Int32, columns: _Columns) -> int:
    known = np.flatnonzero(layer >= 0)
    changes = np.flatnonzero(np.diff(layer[known]) != 0)
    # What lies between two layers prepares the next one.
    begins = np.concatenate([known[:1], known[changes] + 1])
    numbers = layer[known][np.concatenate([[0], changes + 1])]
    cut = Cut(start=begins.astype(np.int64), end=int(known[-1]) + 1)
    _put(strokes, piece, cut, numbers, columns)
    return len(np.unique(numbers))


def _put(
    strokes: Strokes, piece: Int64, cut: Cut, numbers: Int64 | Int32, columns: _Columns
) -> None:
    """Embedding before the first layer, head behind the last, where there is work there."""
    begin, end = int(cut.start[0]), cut.end
    doing = strokes.doing[piece]
    if not np.isin(doing[:begin], _SOLID).any():
        begin = 0
    if not np.isin(doing[end:], _SOLID).any():
        end = len(piece)
    place = np.searchsorted(cut.start, np.arange(len(piece)), side="right") - 1
    columns.part[piece] = Part.LAYER
    columns.layer[piece] = np.asarray(numbers)[np.maximum(place, 0)]
    columns.part[piece[:begin]] = Part.EMBEDDING
    columns.part[piece[end:]] = Part.HEAD
    columns.layer[piece[:begin]] = -1
    columns.layer[piece[end:]] = -1


def _number(strokes: Strokes, forward: tuple[Int64, ...], columns: _Columns) -> None:
    """Micro-batch of each pass: how many passes of the same layers the step had before."""
    seen: dict[tuple[int, int], int] = {}
    for piece in forward:
        first = int(columns.layer[piece].max(initial=-1))
        key = (int(strokes.step[piece[0]]), first)
        number = seen.get(key, 0)
        seen[key] = number + 1
        columns.micro_batch[piece] = number


def _told_by_forward(
    strokes: Strokes, columns: _Columns, backward: tuple[Int64, ...]
) -> Int64 | None:
    """Per stroke the stroke of its forward operator; None where those do not tell layers apart.

    Of a graph that was compiled as a whole every gradient names the same operator.
    """
    back = np.isin(columns.direction, (Pass.BACKWARD, Pass.RECOMPUTE))
    known = back & (strokes.forward_ns >= 0)
    whole_ns = strokes.dur_ns[back & ~np.isin(strokes.doing, (Doing.EXCHANGE, Doing.MESSAGE))].sum()
    if not known.any() or strokes.dur_ns[known].sum() < _LEAST_TOLD * whole_ns:
        return None
    stroke = np.full(len(strokes), -1, np.int64)
    ahead = np.isin(columns.direction, (Pass.FORWARD, Pass.RECOMPUTE))
    if strokes.on_device:
        ahead &= strokes.doing != Doing.NOTHING
    source = np.flatnonzero(ahead)
    stroke[known] = _lookup(strokes, source, strokes.forward_ns[known])
    hopped = _behind_repetitions(stroke, columns)
    several = [
        len(np.unique(hopped[piece][hopped[piece] >= 0])) >= _layers_behind(hopped[piece], columns)
        for piece in backward
    ]
    return stroke if np.mean(several) > _LEAST_TOLD else None


def _behind_repetitions(told: Int64, columns: _Columns) -> Int64:
    """What is computed again stands for the forward that it repeats: the same layer."""
    stroke = told.copy()
    for _ in range(2):
        hop = (stroke >= 0) & (columns.direction[stroke] == Pass.RECOMPUTE)
        stroke[hop] = stroke[stroke[hop]]
    return stroke


def _layers_behind(stroke: Int64, columns: _Columns) -> int:
    """Layers of the forward passes that strokes of backward name; two at least."""
    named = stroke[stroke >= 0]
    passes = np.unique(columns.micro_batch[named])
    of_passes = np.isin(columns.micro_batch, passes) & (columns.direction == Pass.FORWARD)
    layers = columns.layer[of_passes & (columns.layer >= 0)]
    return max(len(np.unique(layers)), 2)


def _lookup(strokes: Strokes, source: Int64, moment_ns: Int64) -> Int64:
    """On a device the first stroke issued from then on; on the host the one that runs then."""
    issue_ns = strokes.issue_ns[source]
    if strokes.on_device:
        at = np.searchsorted(issue_ns, moment_ns, side="left")
    else:
        at = np.searchsorted(issue_ns, moment_ns, side="right") - 1
    inside = (at >= 0) & (at < len(source))
    return np.where(inside, source[np.clip(at, 0, len(source) - 1)], -1)


def _follow(strokes: Strokes, passes: Passes, told: Int64, columns: _Columns) -> None:
    """Backward strokes take the part of their forward; others that of the stroke before."""
    for piece in passes.backward:
        stroke = told[piece]
        right = (stroke >= 0) & (strokes.step[stroke] == strokes.step[piece])
        right &= columns.direction[stroke] == Pass.FORWARD
        known = np.flatnonzero(right)
        if not len(known):
            continue
        at = np.searchsorted(known, np.arange(len(piece)), side="right") - 1
        # What is computed again serves the gradient behind it.
        ahead = columns.direction[piece] == Pass.RECOMPUTE
        at = np.where(ahead & ~right, np.minimum(at + 1, len(known) - 1), at)
        nearest = stroke[known[np.maximum(at, 0)]]
        columns.part[piece] = columns.part[nearest]
        columns.layer[piece] = columns.layer[nearest]
        columns.micro_batch[piece] = columns.micro_batch[nearest]


def _mirror(strokes: Strokes, passes: Passes, columns: _Columns) -> bool:
    """The k-th backward is of the k-th forward, its layers in reverse; True where they differ."""
    uneven = False
    by_step: dict[int, list[Int64]] = {}
    for piece in passes.forward:
        by_step.setdefault(int(strokes.step[piece[0]]), []).append(piece)
    for piece in passes.backward:
        forward = _taken(strokes, piece, by_step.get(int(strokes.step[piece[0]]), []))
        if forward is None:
            columns.part[piece] = Part.LAYER
            columns.layer[piece] = columns.micro_batch[piece] = 0
            continue
        layers = np.unique(columns.layer[forward][columns.layer[forward] >= 0])
        turned = piece[::-1]
        cut = cut_layers(
            strokes.doing[turned],
            strokes.token[turned],
            strokes.product[turned],
            noise=_noise(strokes, turned),
            count=len(layers),
        )
        columns.micro_batch[piece] = columns.micro_batch[forward[0]]
        if cut is None or len(layers) < 2:  # noqa: PLR2004  (one layer is all of it)
            columns.part[piece] = Part.LAYER
            columns.layer[piece] = layers[0] if len(layers) else 0
            uneven |= cut is None and len(layers) > 1
            continue
        uneven |= len(cut) != len(layers)
        numbers = layers[np.minimum(np.arange(len(cut)), len(layers) - 1)]
        _put(strokes, turned, cut, numbers, columns)
    return uneven


def _taken(strokes: Strokes, piece: Int64, ahead: list[Int64]) -> Int64 | None:
    """The forward pass of a backward, taken from those left in the step.

    The first that has an embedding and a loss where the backward has them: of a rank with several
    chunks of layers that tells the first chunk from the others.
    """
    if not ahead:
        return None
    ends = (Doing.EMBEDDING, Doing.LOSS)
    mine = np.isin(ends, strokes.doing[piece])
    alike = [
        at for at, one in enumerate(ahead) if (np.isin(ends, strokes.doing[one]) == mine).all()
    ]
    at = alike[0] if alike else 0
    return ahead.pop(at) if len(ahead) > 1 else ahead[0]
