"""Collectives of context parallelism: a ring (arXiv:2310.01889) or all-to-all (2309.14509)."""

from collections.abc import Iterator
from dataclasses import replace

from ingest.vocab import CollectiveKind
from whatif.models.exchanges.volume import (
    PAIR,
    UNKNOWN,
    Along,
    Of,
    Spot,
    Volume,
    Way,
    bytes_of,
    tokens,
)
from whatif.models.shape import ContextKind, RunShape


def context(shape: RunShape) -> Iterator[Volume]:
    """Blocks of keys and values round the ring, or heads against sequence before and after."""
    degrees, model = shape.degrees, shape.model
    if degrees.cp == 1:
        return
    common = Volume(
        along=Along.CONTEXT,
        kind=CollectiveKind.SEND_RECV,
        size_bytes=bytes_of(PAIR, _kept_heads_bytes(shape, model.kv_heads or model.heads)),
        members=degrees.cp,
        spot=Spot.ATTENTION,
        of=Of.LAYER,
        way=Way.FORWARD,
        count=degrees.cp - 1,
        beside=True,
        what="keys and values round the context ring",
    )
    if degrees.cp_kind is ContextKind.RING:
        yield common
        gradients = bytes_of(PAIR, common.size_bytes) if common.size_bytes >= 0 else UNKNOWN
        yield replace(
            common,
            way=Way.BACKWARD,
            size_bytes=gradients,
            what="keys, values and their gradients round the context ring",
        )
        return
    queries = _kept_heads_bytes(shape, model.heads)
    keys = _kept_heads_bytes(shape, model.kv_heads or model.heads)
    for way in (Way.FORWARD, Way.BACKWARD):
        exchange = replace(
            common,
            kind=CollectiveKind.ALL_TO_ALL,
            way=way,
            beside=False,
            count=PAIR,
            what="heads against sequence",
        )
        yield replace(exchange, size_bytes=bytes_of(queries))
        yield replace(exchange, size_bytes=bytes_of(keys))


def _kept_heads_bytes(shape: RunShape, heads: int | None) -> float | None:
    """Of one of queries, keys and values of a context rank, with that many heads."""
    model = shape.model
    width = model.head_dim
    if width is None and model.hidden is not None and model.heads:
        width = model.hidden // model.heads
    rows = tokens(shape)
    if rows is None or width is None or heads is None:
        return None
    return rows * heads * width / min(shape.degrees.tp, heads) * shape.elements.activation
