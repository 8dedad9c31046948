"""Whether a target keeps the order of the recorded passes, and what stands for what where not."""

from collections.abc import Sequence

from msgspec.structs import replace

from whatif.models.pipeline.terms import effective
from whatif.models.shape import RunShape


def canonical(shape: RunShape) -> RunShape:
    """The shape with what does not matter in it left out: a schedule of one stage, and the like."""
    degrees, options = shape.degrees, shape.options
    chunks = degrees.virtual_stages if degrees.pp > 1 else 1
    schedule = effective(options.schedule, stages=degrees.pp, chunks=chunks)
    return replace(
        shape,
        degrees=replace(
            degrees,
            virtual_stages=chunks,
            sp=degrees.sp and degrees.tp > 1,
            shard=None if degrees.shard == degrees.dp or not degrees.zero else degrees.shard,
        ),
        batch=replace(shape.batch, samples=shape.batch.samples or 1.0),
        options=replace(options, schedule=schedule),
    )


def same_structure(before: RunShape, after: RunShape) -> bool:
    """Each rank runs the same passes in the same order."""
    one, other = (
        (
            shape.degrees.pp,
            shape.degrees.virtual_stages,
            shape.options.schedule,
            shape.options.recompute,
            shape.options.recompute_layers,
            shape.batch.micro_batches,
            shape.model.layers,
        )
        for shape in (canonical(before), canonical(after))
    )
    return one == other


def layer_sources(before: Sequence[int], after: int, *, dense: int = 0) -> tuple[int, ...]:
    """For each layer of the new model the recorded layer that stands for it.

    The first layers, those without experts among them, and the last stand for themselves; between
    them the recorded ones take turns, so that their spread stays.

    Args:
        before: numbers of the recorded layers, in order; at least one.
        after: layers of the new model.
        dense: first layers without experts.
    """
    last = len(before) - 1
    if after == last + 1:
        return tuple(before)
    first = min(max(dense, 1), last)
    turns = max(last - first, 1)
    places = [
        place if place < first else last if place == after - 1 else first + (place - first) % turns
        for place in range(after)
    ]
    return tuple(before[place] for place in places)


def micro_batch_source(micro_batch: int, after: int, before: int) -> int:
    """The recorded micro-batch that stands for one of the new step.

    The last, which exchanges gradients, stands for the last alone; the others take turns.
    """
    if micro_batch == after - 1:
        return before - 1
    return micro_batch % max(before - 1, 1)
