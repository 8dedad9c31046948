"""By which factor the sizes of a kernel change: by its place, its direction and its class.

Where the place is not known, the nominal factor is what most kernels of its class do, and the
range holds all that they may do.
"""

import math
from dataclasses import dataclass, replace
from enum import IntEnum

from ingest.vocab import KernelClass, Phase
from whatif.models.places import Part, Pass, Place
from whatif.transforms.relayout.sizes import Sizes

COLUMN_PLACES = (Place.QKV, Place.UP, Place.LOGITS)
ROW_PLACES = (Place.PROJECTION, Place.DOWN)
EXPERT_PLACES = (Place.EXPERT, Place.UP, Place.ACTIVATION, Place.DOWN)
"""In a layer whose feed-forward is one of experts, none of them shared by all tokens."""


class Scaling(IntEnum):
    """Which model tells the ratio of two times."""

    MOVED = 0
    """By bytes."""
    PRODUCT = 1
    CORE = 2
    """Attention in one kernel."""


class Divided(IntEnum):
    """What of a product tensor parallelism divides."""

    NOTHING = 0
    OUTPUT = 1
    INPUT = 2
    BY_SIZES = 3
    """Its place does not tell: of what does not count tokens, the side that is not the hidden
    width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What decides a factor; kernels that agree in it have the same."""

    part: Part
    direction: Pass
    place: Place
    kernel_class: KernelClass
    phase: Phase
    has_experts: bool
    """Of a layer."""
    shares_experts: bool
    """Some experts see every token: what is not labelled EXPERT there is theirs."""
    writes_scores: bool
    """The run's attention is not one kernel: its parts grow with queries x keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """New over old sizes of a kernel."""

    scaling: Scaling
    size: float = 1.0
    """Of bytes; of FLOPs where these are scaled."""
    low: float = 1.0
    high: float = 1.0
    """Ends of what `size` may be."""
    tokens: float = 1.0
    """Of the dimension of a product that counts tokens."""
    columns: float = 1.0
    """Of the dimension that is divided."""
    batch: float = 1.0
    """Of products alike in one kernel."""
    divided: Divided = Divided.NOTHING

    @property
    def is_same(self) -> bool:
        """Whether nothing changes, whatever the end of the range."""
        return self.size == self.low == self.high == 1.0 == self.tokens == self.batch


UNCHANGED = Factor(scaling=Scaling.MOVED)


def factor_of(where: Where, sizes: Sizes) -> Factor:
    """The factor of kernels there."""
    if where.part is Part.ENTRY and where.kernel_class is KernelClass.MEMCPY:
        return _moved(sizes.tokens)
    if where.part in (Part.ENTRY, Part.EXIT):
        return UNCHANGED
    if where.part in (Part.SYNC, Part.OPTIMIZER):
        return _of_state(where, sizes)
    if where.part is Part.OTHER:
        return _of_unlabelled(where, sizes)
    return _of_model(where, sizes)


def _moved(size: float, *others: float) -> Factor:
    ends = (size, *others)
    return Factor(scaling=Scaling.MOVED, size=size, low=min(ends), high=max(ends))


def _of_state(where: Where, sizes: Sizes) -> Factor:
    """Work on parameters: on all of a rank's gradients, or on the optimizer's shard."""
    if where.part is Part.SYNC and where.place is not Place.OPTIMIZER:
        return _moved(sizes.held, sizes.state)
    return _moved(sizes.state)


def _of_unlabelled(where: Where, sizes: Sizes) -> Factor:
    """Nothing is known but the phase: forward and backward follow the batch."""
    if where.phase is Phase.OPTIMIZER:
        return _moved(sizes.state)
    factor = _unknown(where, sizes)
    return replace(factor, low=min(factor.low, 1.0), high=max(factor.high, 1.0))


def _of_model(where: Where, sizes: Sizes) -> Factor:
    place = where.place
    if where.has_experts and place in EXPERT_PLACES[: 1 if where.shares_experts else None]:
        return _of_experts(where, sizes)
    if place in COLUMN_PLACES or place in ROW_PLACES:
        return _projection(where, sizes)
    if place is Place.ROUTER:
        return _product(where, sizes.whole, 1.0, Divided.NOTHING)
    if place is Place.ATTENTION:
        return _attention(where, sizes)
    if place is Place.UNKNOWN or where.kernel_class is KernelClass.GEMM:
        return _unknown(where, sizes)
    return _moved(_bytes_of(place, where, sizes))


def _bytes_of(place: Place, where: Where, sizes: Sizes) -> float:
    """Of places that are bound by memory; others (communication) stay."""
    factors = {
        Place.NORM: sizes.whole,
        Place.RESIDUAL: sizes.whole,
        Place.ACTIVATION: sizes.tokens * sizes.columns,
        Place.LOSS: sizes.tokens * sizes.columns,
        Place.EMBEDDING: sizes.tokens,
        Place.DISPATCH: sizes.routed,
        Place.COMBINE: sizes.routed,
        Place.GRADIENT: sizes.expert_held if where.has_experts else sizes.held,
        Place.OPTIMIZER: sizes.state,
    }
    return factors.get(place, 1.0)


def _projection(where: Where, sizes: Sizes) -> Factor:
    columns = sizes.qkv if where.place is Place.QKV else sizes.columns
    divided = Divided.OUTPUT if where.place in COLUMN_PLACES else Divided.INPUT
    return _product(where, sizes.tokens, columns, divided)


def _product(
    where: Where, tokens: float, columns: float, divided: Divided, batch: float = 1.0
) -> Factor:
    """A product; its biases, casts and sums move tokens x the divided width, or gradients of it."""
    size = tokens * columns * batch
    if where.kernel_class is not KernelClass.GEMM:
        output = tokens * (columns if divided is Divided.OUTPUT else 1.0)
        return _moved(output, size, tokens)
    return Factor(
        scaling=Scaling.PRODUCT,
        size=size,
        low=size,
        high=size,
        tokens=tokens,
        columns=columns,
        batch=batch,
        divided=divided,
    )


def _unplaced_product(sizes: Sizes) -> Factor:
    """A product whose sizes alone may tell what of it is divided."""
    divided = sizes.tokens * sizes.columns
    ends = (divided, sizes.tokens, sizes.whole)
    return Factor(
        scaling=Scaling.PRODUCT,
        size=divided,
        low=min(ends),
        high=max(ends),
        tokens=sizes.tokens,
        columns=sizes.columns,
        divided=Divided.BY_SIZES,
    )


def _of_experts(where: Where, sizes: Sizes) -> Factor:
    """Grouped products, or those of one expert after another: the same tokens in all."""
    if where.kernel_class is not KernelClass.GEMM:
        return _moved(sizes.routed * sizes.expert_columns)
    divided = Divided.INPUT if where.place is Place.DOWN else Divided.OUTPUT
    return _product(
        where, sizes.routed / sizes.experts, sizes.expert_columns, divided, sizes.experts
    )


def _attention(where: Where, sizes: Sizes) -> Factor:
    heads = sizes.samples * sizes.columns
    scores = heads * sizes.queries * sizes.keys
    rows = heads * sizes.queries
    if where.kernel_class is KernelClass.ATTENTION:
        return Factor(scaling=Scaling.CORE, size=scores, low=scores, high=scores)
    if where.kernel_class is KernelClass.GEMM:
        # Products of heads: longer sequences are taken as more of them.
        return _product(where, 1.0, 1.0, Divided.NOTHING, scores)
    if where.writes_scores:
        return _moved(scores, rows)
    return _moved(rows)


def _unknown(where: Where, sizes: Sizes) -> Factor:
    """Kernels without a place, by what most of their class do."""
    if where.kernel_class is KernelClass.ATTENTION:
        return _attention(where, sizes)
    if where.kernel_class is KernelClass.GEMM:
        return _unplaced_product(sizes)
    tokens, divided = sizes.tokens, sizes.tokens * sizes.columns
    both = math.sqrt(sizes.whole * divided)
    choices = {
        KernelClass.CONVOLUTION: (divided, tokens, sizes.whole),
        KernelClass.NORMALISATION: (sizes.whole,),
        KernelClass.OPTIMIZER: (sizes.state,),
        KernelClass.MEMSET: (1.0, divided, tokens),
    }
    usual = (both, sizes.whole, divided, *_of_scores(where, sizes))
    return _moved(*choices.get(where.kernel_class, usual))


def _of_scores(where: Where, sizes: Sizes) -> tuple[float, ...]:
    if not where.writes_scores:
        return ()
    return (sizes.samples * sizes.columns * sizes.queries * sizes.keys,)
