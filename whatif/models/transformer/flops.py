"""FLOPs of a whole step, as papers count them."""

from msgspec.structs import replace

from whatif.models.places import Part, Pass
from whatif.models.shape import Degrees, RunShape
from whatif.models.transformer.dims import required
from whatif.models.transformer.parameters import layers_with_experts
from whatif.models.transformer.work import Work, flops_of
from whatif.models.transformer.works import works_of

BACKWARD_PASSES = 2
"""Papers count backward as twice the forward, attention too."""


def model_flops(shape: RunShape) -> float:
    """Of one step of the whole job, forward and backward, without what is computed again.

    As in arXiv:2104.04473 (72 B s L h^2 (1 + s / 6h + V / 12 L h) of a dense GPT): all of the
    scores count, also those that a causal mask drops.

    Raises:
        UsageError: sizes of the model or of the batch are not known.
    """
    alone = replace(
        shape,
        model=replace(shape.model, causal=False),
        degrees=Degrees(),
        options=replace(shape.options, imbalance=1.0, capacity=None),
    )
    batches = shape.batch.micro_batches * shape.degrees.dp
    return batches * (1 + BACKWARD_PASSES) * _forward(alone)


def _forward(shape: RunShape) -> float:
    with_experts = layers_with_experts(shape.model)
    dense = required(shape.model.layers, "layers") - with_experts
    return (
        dense * flops_of(works_of(shape, Part.LAYER, Pass.FORWARD))
        + (with_experts and with_experts * flops_of(_with_experts(shape)))
        + flops_of(works_of(shape, Part.HEAD, Pass.FORWARD))
    )


def _with_experts(shape: RunShape) -> tuple[Work, ...]:
    return works_of(shape, Part.LAYER, Pass.FORWARD, has_experts=True)
