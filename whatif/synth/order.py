"""The order in which a part of a transformer runs its works, and where its collectives stand."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from whatif.models.exchanges.volume import Spot
from whatif.models.places import Part, Pass, Place
from whatif.models.shape import RunShape
from whatif.models.transformer.work import Work
from whatif.models.transformer.works import works_of

Step = Work | Spot
"""One kernel, or a place where collectives may stand."""
Line = tuple[Place | Spot, ...]

_ATTENTION: Line = (
    Place.NORM,
    Spot.ATTENTION_IN,
    Place.QKV,
    Spot.ATTENTION,
    Place.ATTENTION,
    Place.PROJECTION,
    Spot.ATTENTION_OUT,
    Place.RESIDUAL,
    Place.NORM,
    Spot.FFN_IN,
)
_FEED_FORWARD: Line = (Place.UP, Place.ACTIVATION, Place.DOWN)
_EXPERTS: Line = (
    Place.ROUTER,
    Place.DISPATCH,
    Spot.DISPATCH,
    Place.DISPATCH,
    Place.EXPERT,
    Place.COMBINE,
    Spot.COMBINE,
    Place.COMBINE,
)
_OUT: Line = (Spot.FFN_OUT, Place.RESIDUAL)
_DENSE_LAYER: Line = (*_ATTENTION, *_FEED_FORWARD, *_OUT)
_LAYER_WITH_EXPERTS: Line = (*_ATTENTION, *_EXPERTS, *_FEED_FORWARD, *_OUT)
_EMBEDDING: Line = (Place.EMBEDDING, Spot.EMBEDDING)
_HEAD: Line = (Place.NORM, Spot.HEAD, Place.LOGITS, Spot.LOSS, Place.LOSS)
_ONE_BY_ONE = frozenset({Place.NORM, Place.RESIDUAL, Place.DISPATCH, Place.COMBINE})
"""Places that a line has twice, with half of their kernels each."""
INTO = frozenset({Spot.ATTENTION_IN, Spot.FFN_IN, Spot.HEAD})
"""Spots before a product: in backward between its two gradients."""


def forward(shape: RunShape, part: Part, *, has_experts: bool = False) -> tuple[Step, ...]:
    """Kernels and spots of a part, forward."""
    rows = works_of(shape, part, Pass.FORWARD, has_experts=has_experts)
    return tuple(_in_line(_line(part, has_experts=has_experts), rows))


def recompute(shape: RunShape, part: Part, *, has_experts: bool = False) -> tuple[Step, ...]:
    """What backward of a part computes again."""
    rows = works_of(shape, part, Pass.RECOMPUTE, has_experts=has_experts)
    if not rows:
        return ()
    return tuple(_in_line(_line(part, has_experts=has_experts), rows))


def backward(
    shape: RunShape, part: Part, wanted: tuple[Pass, ...], *, has_experts: bool = False
) -> tuple[Step, ...]:
    """Kernels and spots of a part, backward.

    Args:
        shape: of the run.
        part: of the model.
        wanted: BACKWARD_INPUT, BACKWARD_WEIGHT or both.
        has_experts: of a layer.
    """
    line = _line(part, has_experts=has_experts)[::-1]
    inputs, weights = (
        _queues(works_of(shape, part, which, has_experts=has_experts)) if which in wanted else {}
        for which in (Pass.BACKWARD_INPUT, Pass.BACKWARD_WEIGHT)
    )
    steps: list[Step] = []
    late: list[Step] = []
    for step in line:
        if isinstance(step, Spot):
            steps.append(step)
            if step in INTO:
                steps += late
                late = []
            continue
        steps += late
        steps += _take(inputs, step)[::-1]
        late = list(_take(weights, step)[::-1])
    steps += late
    steps += [work for queue in weights.values() for work in queue]
    return tuple(steps)


def singles(rows: Iterable[Work]) -> Iterator[Work]:
    """Each kernel of the rows by itself."""
    for row in rows:
        each = replace(row, flops=row.flops / row.count, bytes=row.bytes / row.count, count=1.0)
        for _ in range(max(round(row.count), 1)):
            yield each


def _line(part: Part, *, has_experts: bool) -> Line:
    if part is Part.LAYER:
        return _LAYER_WITH_EXPERTS if has_experts else _DENSE_LAYER
    return _EMBEDDING if part is Part.EMBEDDING else _HEAD


def _in_line(line: Line, rows: Iterable[Work]) -> Iterator[Step]:
    queues = _queues(rows)
    for step in line:
        if isinstance(step, Spot):
            yield step
        else:
            yield from _take(queues, step)


def _queues(rows: Iterable[Work]) -> dict[Place, deque[Work]]:
    queues: dict[Place, deque[Work]] = {}
    for work in singles(rows):
        queues.setdefault(work.place, deque()).append(work)
    return queues


def _take(queues: dict[Place, deque[Work]], place: Place) -> tuple[Work, ...]:
    """The works of a place: one where the line comes to it twice, else all."""
    queue = queues.get(place, deque())
    if place in _ONE_BY_ONE:
        return (queue.popleft(),) if queue else ()
    taken = tuple(queue)
    queue.clear()
    return taken
