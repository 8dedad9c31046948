"""Collectives of gradients and parameters over replicas: DDP, ZeRO, FSDP, hybrid shards."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ingest.vocab import CollectiveKind
from whatif.models.exchanges.volume import PAIR, UNKNOWN, Along, Of, Spot, Volume, Way, bytes_of
from whatif.models.shape import ModelShape, RunShape

FULLY_SHARDED = 3
"""ZeRO stage in which parameters are shards too."""
NORM_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """Parameters of a part of the model on one rank, and the ranks that hold the same."""

    of: Of
    parameters: float | None
    replicas: int


def state(shape: RunShape) -> Iterator[Volume]:
    """Gradients and parameters over replicas (context ranks are replicas of parameters too)."""
    degrees = shape.degrees
    for held in _held(shape):
        shards = 1 if degrees.zero == 0 else min(held.replicas, degrees.shards)
        outer = held.replicas // shards
        if degrees.zero == 0:
            yield _gradients(shape, held, CollectiveKind.ALL_REDUCE, held.replicas)
            continue
        yield from _sharded(shape, held, shards)
        if outer > 1:
            reduced = _gradients(shape, held, CollectiveKind.ALL_REDUCE, outer)
            size = reduced.size_bytes // shards if reduced.size_bytes > 0 else UNKNOWN
            yield replace(reduced, size_bytes=size)


def _gradients(shape: RunShape, held: _Held, kind: CollectiveKind, members: int) -> Volume:
    elements, options = shape.elements, shape.options
    reduced = elements.gradient if elements.reduced is None else elements.reduced
    return Volume(
        along=Along.REPLICAS if kind is CollectiveKind.ALL_REDUCE else Along.SHARDS,
        kind=kind,
        size_bytes=bytes_of(held.parameters, reduced),
        members=members,
        spot=Spot.GRADIENTS,
        of=held.of,
        way=Way.BACKWARD,
        each_micro_batch=shape.degrees.zero > 1,
        beside=options.overlap_grads,
        what="gradients over replicas",
    )


def _sharded(shape: RunShape, held: _Held, shards: int) -> Iterator[Volume]:
    """ZeRO: gradients to their shards; parameters back after the update, or before each use."""
    scatter = _gradients(shape, held, CollectiveKind.REDUCE_SCATTER, shards)
    gather = replace(
        scatter,
        kind=CollectiveKind.ALL_GATHER,
        size_bytes=bytes_of(held.parameters, shape.elements.parameter),
        spot=Spot.UPDATED,
        way=Way.NONE,
        each_micro_batch=False,
        beside=shape.options.overlap_params and shape.degrees.zero == FULLY_SHARDED,
        what="parameters of other shards",
    )
    if shape.degrees.zero < FULLY_SHARDED:
        yield scatter
        yield gather
        return
    use = replace(gather, spot=Spot.PARAMETERS, each_micro_batch=True)
    yield replace(use, way=Way.FORWARD)
    yield replace(use, way=Way.BACKWARD)
    yield scatter


def _held(shape: RunShape) -> Iterator[_Held]:
    model, degrees = shape.model, shape.degrees
    replicas = degrees.dp * degrees.cp
    table = None if model.vocab is None or model.hidden is None else model.vocab * model.hidden
    dense, routed = layer_parameters(model)
    yield _Held(of=Of.LAYER, parameters=_over(dense, degrees.tp), replicas=replicas)
    if model.experts is not None:
        apart = degrees.ep * (degrees.etp or (1 if degrees.ep > 1 else degrees.tp))
        yield _Held(
            of=Of.EXPERTS,
            parameters=_over(routed, apart),
            replicas=max(replicas // degrees.ep, 1),
        )
    if table is not None:
        yield _Held(of=Of.EMBEDDING, parameters=_over(table, degrees.tp), replicas=replicas)
        if not model.tied:
            yield _Held(of=Of.HEAD, parameters=_over(table, degrees.tp), replicas=replicas)


def _over(parameters: float | None, ranks: int) -> float | None:
    return None if parameters is None else parameters / ranks


def layer_parameters(model: ModelShape) -> tuple[float | None, float | None]:
    """Of one layer: those that every replica holds, and those of its routed experts.

    Of a model of which only the sum is told, an even share of it.
    """
    if model.hidden is None or model.heads is None or model.ffn is None:
        if model.parameters is None or not model.layers:
            return None, None
        return model.parameters / model.layers, None
    hidden, heads = model.hidden, model.heads
    width = model.head_dim or hidden // heads
    attention = hidden * width * (PAIR * heads + PAIR * (model.kv_heads or heads))
    products = PAIR + 1 if model.gated else PAIR
    norms_ = PAIR * hidden
    if model.experts is None:
        return attention + products * hidden * model.ffn + norms_, None
    one = products * hidden * (model.expert_ffn or model.ffn)
    router = hidden * model.experts
    return attention + norms_ + router + model.shared_experts * one, model.experts * one


def norms(shape: RunShape) -> Iterator[Volume]:
    """The norm of all gradients, for clipping: one number over the ranks of a replica."""
    degrees = shape.degrees
    ranks = degrees.tp * degrees.pp * (degrees.shards if degrees.zero else 1)
    yield Volume(
        along=Along.MODEL,
        kind=CollectiveKind.ALL_REDUCE,
        size_bytes=NORM_BYTES,
        members=ranks,
        spot=Spot.CLIP,
        of=Of.STEP,
        way=Way.NONE,
        each_micro_batch=False,
        what="norm of the gradients",
    )
