"""Sizes of recorded products before and after a relayout."""

from dataclasses import dataclass

import numpy as np

from replay.graph.arrays import Bool, Int64
from replay.graph.work import Float64
from whatif.models.places import Part, Pass, Place
from whatif.models.shape import RunShape
from whatif.models.transformer.work import WorkKind
from whatif.models.transformer.works import works_of
from whatif.transforms.relayout.factors import Divided, Where
from whatif.transforms.relayout.grouped import Factors
from whatif.transforms.relayout.sizes import Sizes, known_dims

BATCH, M, N, K = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductSizes:
    """Batch, m, n, k of each kernel, shape (kernels, 4); NaN where not known."""

    before: Float64
    after: Float64
    recorded: Bool
    """Whether the trace has them; else they are the model's."""

    @property
    def recorded_after(self) -> Int64:
        """Of recorded products in whole numbers, at least 1; zeros of others."""
        whole = np.maximum(np.rint(np.nan_to_num(self.after)), 1.0)
        told = self.recorded & ~np.isnan(self.after).any(axis=1)
        return np.where(told[:, None], whole, 0.0).astype(np.int64)


def product_sizes(factors: Factors, recorded: Int64, shape: RunShape, sizes: Sizes) -> ProductSizes:
    """Sizes now and then.

    Args:
        factors: of each kernel.
        recorded: batch, m, n, k of each; zeros where not recorded. Shape (kernels, 4).
        shape: of the recorded run.
        sizes: target over recorded run.
    """
    seen: Bool = np.all(recorded > 0, axis=1)
    before = np.where(seen[:, None], recorded.astype(float), _of_model(factors, shape))
    tokens, hidden = _tokens(factors, before, shape), shape.model.hidden
    after = _by_place(factors, before, tokens, hidden)
    unplaced = factors.of("divided") == Divided.BY_SIZES
    rows = np.flatnonzero(seen & (unplaced | _is_one(factors, before)))
    told = np.count_nonzero(before[rows, M:] == tokens, axis=1) > 0
    after[rows[told]] = _by_sizes(before[rows[told]], tokens, hidden, sizes)
    nothing_tells = np.setdiff1d(np.flatnonzero(unplaced), rows[told])
    before[nothing_tells] = after[nothing_tells] = np.nan
    return ProductSizes(before=before, after=after, recorded=seen)


def _of_model(factors: Factors, shape: RunShape) -> Float64:
    """What the model's shape says of products of that place; NaN where it says nothing."""
    rows = np.full((len(factors.where), 4), np.nan)
    if known_dims(shape) is None:
        return rows[factors.row]
    for index, where in enumerate(factors.where):
        rows[index] = _row_of_model(where, shape)
    return rows[factors.row]


def _row_of_model(where: Where, shape: RunShape) -> tuple[float, float, float, float]:
    direction = {Pass.BACKWARD: Pass.BACKWARD_INPUT, Pass.RECOMPUTE: Pass.FORWARD}.get(
        where.direction, where.direction
    )
    if where.part in (Part.LAYER, Part.HEAD) and direction is not Pass.NONE:
        works = works_of(shape, where.part, direction, has_experts=where.has_experts)
        for work in works:
            if work.place is where.place and work.kind is WorkKind.PRODUCT:
                return work.batch, work.m, work.n, work.k
    return (np.nan,) * 4


def _tokens(factors: Factors, sizes: Float64, shape: RunShape) -> float:
    """Tokens of a micro-batch on a rank: as the shape says, else the usual m of forward."""
    batch = shape.batch
    if batch.samples is not None and batch.sequence is not None:
        return batch.samples * batch.sequence / shape.degrees.cp
    forward = factors.which(
        lambda where: where.part is Part.LAYER and where.direction is Pass.FORWARD
    )
    m = sizes[forward & ~np.isnan(sizes[:, M]), M]
    if not len(m):
        return np.nan
    values, counts = np.unique(m, return_counts=True)
    return float(values[counts.argmax()])


def _is_one(factors: Factors, sizes: Float64) -> Bool:
    """Labelled as attention, but of no batch of heads: a product beside it."""
    alone: Bool = sizes[:, BATCH] == 1
    return alone & factors.which(lambda where: where.place is Place.ATTENTION)


def _by_sizes(before: Float64, tokens: float, hidden: int | None, sizes: Sizes) -> Float64:
    """Products by their sizes alone: one dimension counts tokens, of the others one is divided."""
    after = before.copy()
    rows = np.arange(len(before))
    dims = before[:, M:]
    # Gradients of weights sum tokens: k counts them where m does not.
    at = np.where(dims[:, 0] == tokens, M, np.where(dims[:, 2] == tokens, K, N))
    after[rows, at] *= sizes.tokens
    first = np.where(at == M, N, M)
    second = np.where(at == K, N, K)
    is_hidden = before[rows, first] == (hidden or 0)
    after[rows, np.where(is_hidden, second, first)] *= sizes.columns
    return after


def _by_place(factors: Factors, sizes: Float64, tokens: float, hidden: int | None) -> Float64:
    """Each dimension by what it counts, where the product lies."""
    by_tokens, by_columns, divided = (factors.of(name) for name in ("tokens", "columns", "divided"))
    weights = _sums_tokens(factors, sizes, tokens)
    swapped = ~weights & (sizes[:, N] == tokens) & (sizes[:, M] != tokens)
    after = sizes.copy()
    after[:, BATCH] *= factors.of("batch")
    after[weights, K] *= by_tokens[weights]
    after[swapped, N] *= by_tokens[swapped]
    rest = ~weights & ~swapped
    after[rest, M] *= by_tokens[rest]
    at = _divided(factors, sizes, weights, swapped, hidden)
    rows = np.flatnonzero(divided != Divided.NOTHING)
    after[rows, at[rows]] *= by_columns[rows]
    return after


def _sums_tokens(factors: Factors, sizes: Float64, tokens: float) -> Bool:
    """Products to gradients of weights: their summed dimension counts tokens."""
    told = factors.which(lambda where: where.direction is Pass.BACKWARD_WEIGHT)
    mixed = factors.which(lambda where: where.direction is Pass.BACKWARD)
    summed: Bool = (sizes[:, K] == tokens) & (sizes[:, M] != tokens)
    return told | (mixed & summed)


def _divided(
    factors: Factors, sizes: Float64, weights: Bool, swapped: Bool, hidden: int | None
) -> Int64:
    """Dimension that tensor parallelism divides.

    Forward sums the width that comes in, backward to inputs the one that goes out; gradients of
    weights are as wide as both, out first as PyTorch has it unless the hidden width says otherwise.
    """
    backward = factors.which(lambda where: where.direction in (Pass.BACKWARD, Pass.BACKWARD_INPUT))
    output = factors.of("divided") == Divided.OUTPUT
    other = np.where(swapped, M, N)
    plain = np.where(output ^ backward, other, K)
    of_weights = np.where(output, M, N)
    if hidden is not None:
        is_m, is_n = sizes[:, M] == hidden, sizes[:, N] == hidden
        of_weights = np.where(is_m & ~is_n, N, np.where(is_n & ~is_m, M, of_weights))
    return np.where(weights, of_weights, plain)
