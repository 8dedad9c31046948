"""Collectives of gradients and parameters over replicas: DDP, ZeRO, FSDP, hybrid shards."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ingest.vocab import CollectiveKind
from whatif.models.exchanges.volume import UNKNOWN, Along, Of, Spot, Volume, Way, bytes_of
from whatif.models.shape import SHARDS_PARAMETERS, RunShape
from whatif.models.transformer.dims import is_known
from whatif.models.transformer.parameters import (
    Held,
    embedding_parameters,
    given_share,
    head_parameters,
    held_by_rank,
    layer_parameters,
)

NORM_BYTES = 4
BUCKET_BYTES = 25 * 2**20
"""Gradients that PyTorch's DDP reduces at once (`bucket_cap_mb`)."""
FIRST_BUCKET_BYTES = 2**20
"""The first is ready early (`torch.distributed._DEFAULT_FIRST_BUCKET_BYTES`)."""


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
            yield _whole(shape, held)
            continue
        yield from _sharded(shape, held, shards)
        if outer > 1:
            reduced = _gradients(shape, held, CollectiveKind.ALL_REDUCE, outer)
            size = reduced.size_bytes // shards if reduced.size_bytes > 0 else UNKNOWN
            yield replace(reduced, size_bytes=size)


def _whole(shape: RunShape, held: _Held) -> Volume:
    """Gradients of every step; with local SGD (arXiv:1805.09767) parameters of every Kth."""
    gradients = _gradients(shape, held, CollectiveKind.ALL_REDUCE, held.replicas)
    if shape.options.sync_every == 1:
        return gradients
    return replace(
        gradients,
        size_bytes=bytes_of(held.parameters, shape.elements.parameter),
        spot=Spot.UPDATED,
        way=Way.NONE,
        beside=False,
        what="parameters of replicas that went apart",
    )


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
    """ZeRO: gradients to their shards; parameters back after the update, or before each use.

    Those of stages 1 and 2 are back for the first forward (Megatron's overlap of the gather).
    """
    scatter = _gradients(shape, held, CollectiveKind.REDUCE_SCATTER, shards)
    gather = replace(
        scatter,
        kind=CollectiveKind.ALL_GATHER,
        size_bytes=bytes_of(held.parameters, shape.elements.parameter),
        spot=Spot.UPDATED,
        way=Way.NONE,
        each_micro_batch=False,
        beside=shape.options.overlap_params,
        what="parameters of other shards",
    )
    if shape.degrees.zero < SHARDS_PARAMETERS:
        early = replace(gather, spot=Spot.PARAMETERS, way=Way.FORWARD)
        yield scatter
        yield early if shape.options.overlap_params else replace(gather, beside=False)
        return
    use = replace(gather, spot=Spot.PARAMETERS, each_micro_batch=True)
    yield replace(use, way=Way.FORWARD)
    yield replace(use, way=Way.BACKWARD)
    yield scatter


def _held(shape: RunShape) -> Iterator[_Held]:
    """Parts of the model; of one of which nothing is known a layer of unknown size.

    They add up to the sum that is given, where one is.
    """
    model, degrees = shape.model, shape.degrees
    replicas = degrees.dp * degrees.cp
    if not is_known(model) and (model.parameters is None or not model.layers):
        yield _Held(of=Of.LAYER, parameters=None, replicas=replicas)
        return
    parts = [(Of.LAYER if model.experts is None else Of.DENSE, layer_parameters(model))]
    routed, share = Held(), given_share(model)
    if model.experts is not None and is_known(model):
        with_experts = layer_parameters(model, has_experts=True)
        routed = Held(routed=with_experts.routed)
        parts.append((Of.EXPERTS, replace(with_experts, routed=0.0)))
    parts += [(Of.EMBEDDING, embedding_parameters(model)), (Of.HEAD, head_parameters(model))]
    for of, held in parts:
        if held.total:
            yield _Held(of=of, parameters=share * held_by_rank(shape, held), replicas=replicas)
    if routed.total:
        apart = max(replicas // degrees.ep, 1)
        of_rank = share * held_by_rank(shape, routed)
        yield _Held(of=Of.EXPERTS, parameters=of_rank, replicas=apart)


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
