"""Collectives of tensor parallelism, with and without sequence parallelism."""

from collections.abc import Iterator
from dataclasses import replace

from ingest.vocab import CollectiveKind
from whatif.models.exchanges.volume import (
    Along,
    Of,
    Spot,
    Volume,
    Way,
    activation_bytes,
    bytes_of,
    tokens,
)
from whatif.models.shape import RunShape

LOSS_BYTES = 4
"""Of each token's maximum, logit of the target and sum: single precision, as Megatron's loss."""
LOSS_CALLS = 3


def tensor(shape: RunShape) -> Iterator[Volume]:
    """Sums after what is divided by rows, and of input gradients of what is by columns.

    With sequence parallelism a reduce-scatter and an all-gather stand for each all-reduce, and
    backward gathers inputs again for the weight gradients, beside the input gradients.
    """
    tp = shape.degrees.tp
    common = Volume(
        along=Along.TENSOR,
        kind=CollectiveKind.ALL_REDUCE,
        size_bytes=activation_bytes(shape),
        members=tp,
        spot=Spot.ATTENTION_OUT,
        of=Of.LAYER,
        way=Way.FORWARD,
        what="sums of tensor-parallel products",
    )
    if tp == 1:
        return
    feed_forward = _feed_forward(shape)
    if shape.degrees.sp:
        yield from _sequence_parallel(common, feed_forward)
    else:
        yield from _whole_rows(common, feed_forward)
    loss = bytes_of(tokens(shape), LOSS_BYTES)
    yield replace(
        common,
        size_bytes=loss,
        of=Of.HEAD,
        spot=Spot.LOSS,
        count=LOSS_CALLS,
        what="maxima and sums of the divided logits",
    )


def _feed_forward(shape: RunShape) -> Of:
    """Layers whose feed-forward is divided: of those with experts only where these are."""
    degrees = shape.degrees
    inside_experts = degrees.etp or (1 if degrees.ep > 1 else degrees.tp)
    return Of.LAYER if shape.model.experts is None or inside_experts > 1 else Of.DENSE


def _whole_rows(common: Volume, feed_forward: Of) -> Iterator[Volume]:
    backward = replace(common, way=Way.BACKWARD, what="sums of tensor-parallel input gradients")
    yield common
    yield replace(common, of=feed_forward, spot=Spot.FFN_OUT)
    yield replace(backward, of=feed_forward, spot=Spot.FFN_IN)
    yield replace(backward, spot=Spot.ATTENTION_IN)
    yield replace(
        common, of=Of.EMBEDDING, spot=Spot.EMBEDDING, what="rows of the divided vocabulary"
    )
    yield replace(backward, of=Of.HEAD, spot=Spot.HEAD)


def _sequence_parallel(common: Volume, feed_forward: Of) -> Iterator[Volume]:
    gather = replace(
        common, kind=CollectiveKind.ALL_GATHER, what="rows gathered before tensor-parallel products"
    )
    scatter = replace(common, kind=CollectiveKind.REDUCE_SCATTER)
    again = replace(gather, way=Way.BACKWARD, beside=True, what="rows gathered again in backward")
    for of, into, out in (
        (Of.LAYER, Spot.ATTENTION_IN, Spot.ATTENTION_OUT),
        (feed_forward, Spot.FFN_IN, Spot.FFN_OUT),
    ):
        yield replace(gather, of=of, spot=into)
        yield replace(scatter, of=of, spot=out)
        yield replace(gather, of=of, spot=out, way=Way.BACKWARD)
        yield replace(again, of=of, spot=into)
        yield replace(scatter, of=of, spot=into, way=Way.BACKWARD)
    yield replace(scatter, of=Of.EMBEDDING, spot=Spot.EMBEDDING)
    yield replace(gather, of=Of.EMBEDDING, spot=Spot.EMBEDDING, way=Way.BACKWARD)
    yield replace(gather, of=Of.HEAD, spot=Spot.HEAD)
    yield replace(scatter, of=Of.HEAD, spot=Spot.HEAD, way=Way.BACKWARD)
