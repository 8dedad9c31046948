"""Work of each part of a transformer, by direction: the rows that a rank computes."""

from collections.abc import Callable

from whatif.models.places import Part, Pass, Place
from whatif.models.shape import Recompute, RunShape
from whatif.models.transformer.dims import dims_of
from whatif.models.transformer.maker import Maker, Rows
from whatif.models.transformer.parameters import state_parameters
from whatif.models.transformer.work import Work, WorkKind, moved_work

HALVES = (Pass.BACKWARD_INPUT, Pass.BACKWARD_WEIGHT)
MOMENTS_BYTES = 8
"""Of Adam's two moments of a parameter, in fp32."""


def works_of(
    shape: RunShape, part: Part, direction: Pass, *, has_experts: bool = False
) -> tuple[Work, ...]:
    """Rows of one part in one direction; empty where it does nothing.

    Args:
        shape: model, degrees and batch; sizes of the model must be known.
        part: EMBEDDING, LAYER, HEAD, SYNC or OPTIMIZER; of the latter two of all that a rank of the
            first stage holds (`optimizer_works` takes any number of parameters).
        direction: BACKWARD is both of its halves; RECOMPUTE what `shape.options` says.
        has_experts: of a layer: whether its feed-forward is one of experts.

    Raises:
        UsageError: sizes that this needs are not known.
    """
    if part is Part.OPTIMIZER:
        return optimizer_works(shape, state_parameters(shape))
    if part is Part.SYNC:
        return sync_works(shape, state_parameters(shape))
    make = _MAKERS.get(part)
    if make is None:
        return ()
    if direction is Pass.RECOMPUTE:
        return _recomputed(shape, part, has_experts=has_experts)
    wanted = HALVES if direction is Pass.BACKWARD else (direction,)
    rows = make(Maker(shape, dims_of(shape), has_experts=has_experts))
    return tuple(row for row in rows if row.direction in wanted)


def optimizer_works(shape: RunShape, parameters: float) -> tuple[Work, ...]:
    """Adam in one pass over the state of so many parameters.

    State is read and written, the gradient read, the parameter written (and read, where there is
    no master copy of it).
    """
    each = shape.elements
    has_master = each.optimizer > MOMENTS_BYTES
    moved = 2 * each.optimizer + each.gradient + each.parameter * (1 if has_master else 2)
    return (moved_work(Place.OPTIMIZER, Pass.NONE, moved * parameters),)


def sync_works(shape: RunShape, parameters: float) -> tuple[Work, ...]:
    """Clipping by the norm: gradients read for it, then read and written scaled."""
    each = shape.elements.gradient * parameters
    return (
        moved_work(Place.GRADIENT, Pass.NONE, each),
        moved_work(Place.GRADIENT, Pass.NONE, 2 * each),
    )


def _recomputed(shape: RunShape, part: Part, *, has_experts: bool) -> tuple[Work, ...]:
    if part is not Part.LAYER or shape.options.recompute is Recompute.NONE:
        return ()
    rows = works_of(shape, part, Pass.FORWARD, has_experts=has_experts)
    if shape.options.recompute is Recompute.SELECTIVE:
        written = shape.options.scores_written
        rows = tuple(
            row
            for row in rows
            if row.kind is WorkKind.ATTENTION or (written and row.place is Place.ATTENTION)
        )
    return tuple(_as_recomputed(row) for row in rows)


def _as_recomputed(row: Work) -> Work:
    values = {name: getattr(row, name) for name in Work.__slots__}
    return Work(**(values | {"direction": Pass.RECOMPUTE}))


_MAKERS: dict[Part, Callable[[Maker], Rows]] = {
    Part.EMBEDDING: Maker.embedding,
    Part.LAYER: Maker.layer,
    Part.HEAD: Maker.head,
}
