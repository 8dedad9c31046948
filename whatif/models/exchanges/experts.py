"""Collectives of expert parallelism (GShard, arXiv:2006.16668)."""

from collections.abc import Iterator

from ingest.vocab import CollectiveKind
from whatif.models.exchanges.volume import Along, Of, Spot, Volume, Way, bytes_of, tokens
from whatif.models.shape import RunShape
from whatif.models.transformer.dims import fullest_experts


def experts(shape: RunShape) -> Iterator[Volume]:
    """Tokens to the ranks of their experts and back, in both directions."""
    degrees, model = shape.degrees, shape.model
    if degrees.ep == 1 or model.experts is None:
        return
    # Inside a tensor-parallel group each rank sends its rows of the sequence only.
    divided = degrees.tp if degrees.sp or (degrees.etp or 1) == 1 else 1
    size = bytes_of(
        tokens(shape),
        model.top_k,
        model.hidden,
        shape.elements.activation,
        fullest_experts(shape),
        1 / divided,
    )
    for way in (Way.FORWARD, Way.BACKWARD):
        for spot in (Spot.DISPATCH, Spot.COMBINE):
            yield Volume(
                along=Along.EXPERT,
                kind=CollectiveKind.ALL_TO_ALL,
                size_bytes=size,
                members=degrees.ep,
                spot=spot,
                of=Of.EXPERTS,
                way=way,
                what="tokens to their experts and back",
            )
