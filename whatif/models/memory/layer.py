"""Bytes that the layers of a rank keep from forward to backward, and need beside it.

Tensor by tensor, as arXiv:2205.05198 counts them (34 sbh + 5 a s² b of a GPT layer), for any
widths: grouped heads, gated feed-forwards, latent attention (arXiv:2405.04434), experts, and
attention in one kernel (arXiv:2205.14135), which keeps one number per row instead of the scores.
"""

from whatif.models.shape import ContextKind, ModelShape, Recompute, RunShape
from whatif.models.transformer.dims import Dims, dims_of

STATISTIC_BYTES = 4
"""Of a row of scores: the logarithm of its sum, in fp32."""
MASK_BYTES = 1
"""Of an element that dropout may take."""
PROBABILITY_BYTES = 4
"""Of a router, in fp32."""


def saved_bytes(shape: RunShape, *, has_experts: bool, recompute: Recompute | None = None) -> float:
    """What one layer keeps of one micro-batch on one rank.

    Args:
        shape: of the run; sizes of model and batch must be known.
        has_experts: whether the layer's feed-forward is one of experts.
        recompute: what is computed again; None: as `shape` says.

    Raises:
        UsageError: sizes that this needs are not known.
    """
    dims, model = dims_of(shape), shape.model
    how = shape.options.recompute if recompute is None else recompute
    if how is Recompute.FULL:
        return shape.elements.activation * dims.whole_tokens * dims.hidden
    if how is Recompute.SELECTIVE and shape.options.selective_ops:
        return _second_products(shape, dims, has_experts=has_experts)
    core = _core(shape, dims)
    if how is Recompute.SELECTIVE and not shape.options.fused_attention:
        core = 0.0
    inner = _experts(shape, dims) if has_experts else _feed_forward(shape, dims)
    return _rows(shape, dims) + _attention(shape, dims, model) + core + inner


def working_bytes(shape: RunShape, *, has_experts: bool) -> float:
    """What the backward of one layer needs beside what it kept.

    All that is computed again, and the gradients inside its feed-forward, the widest there are.

    Raises:
        UsageError: sizes that this needs are not known.
    """
    dims = dims_of(shape)
    whole = saved_bytes(shape, has_experts=has_experts, recompute=Recompute.NONE)
    again = whole - saved_bytes(shape, has_experts=has_experts)
    inner = _inner(dims, shape.elements.activation, has_experts=has_experts)
    return max(again, 0.0) + inner


def _rows(shape: RunShape, dims: Dims) -> float:
    """Two norms with what goes in and out, and dropout behind both halves."""
    mask = MASK_BYTES if shape.model.dropout else 0
    return dims.whole_tokens * dims.hidden * (4 * shape.elements.activation + 2 * mask)


def _attention(shape: RunShape, dims: Dims, model: ModelShape) -> float:
    """Queries, keys, values and what attention gives."""
    each = shape.elements.activation
    wide = dims.heads * (dims.head_dim + dims.v_head_dim)
    wide += dims.kv_heads * (dims.head_dim + dims.v_head_dim)
    degrees = shape.degrees
    if degrees.cp > 1 and degrees.cp_kind is ContextKind.ALL_TO_ALL:
        wide += dims.heads * dims.v_head_dim
    compressed = 2.0 * (model.q_lora or 0) + 2.0 * (model.kv_lora or 0)
    compressed += (model.rope_head_dim or 0) if model.kv_lora else 0
    return each * (dims.tokens * wide + dims.whole_tokens * compressed)


def _core(shape: RunShape, dims: Dims) -> float:
    """Between queries and context: scores, probabilities and masks; of one kernel, its sums."""
    each, rows = shape.elements.activation, dims.tokens * dims.heads
    if shape.options.fused_attention:
        return rows * STATISTIC_BYTES
    dropped = MASK_BYTES + each if shape.model.dropout else 0
    return rows * dims.keys * (each + dropped)


def _feed_forward(shape: RunShape, dims: Dims) -> float:
    """What its activation function gets and gives."""
    return shape.elements.activation * dims.tokens * (dims.ups + 1) * dims.ffn


def _experts(shape: RunShape, dims: Dims) -> float:
    """Copies of tokens that came, what the experts make of them, and the router's probabilities."""
    each, model = shape.elements.activation, shape.model
    came = dims.routed * (dims.hidden + (dims.ups + 1) * dims.expert_ffn)
    shared = dims.tokens * (dims.ups + 1) * dims.shared_ffn
    router = 2 * PROBABILITY_BYTES * dims.whole_tokens * (model.experts or 0)
    return each * (came + shared) + router


def _inner(dims: Dims, each: float, *, has_experts: bool) -> float:
    wide = dims.ups + 1
    if not has_experts:
        return each * dims.tokens * wide * dims.ffn
    return each * wide * (dims.routed * dims.expert_ffn + dims.tokens * dims.shared_ffn)


def _second_products(shape: RunShape, dims: Dims, *, has_experts: bool) -> float:
    """The input, what attention gives, and the first, third, … product of the layer.

    In the order queries, keys, values, projection, one or two up, down (torchtitan,
    `parallelize_llama.py`).
    """
    each = shape.elements.activation
    wide = dims.heads * (dims.head_dim + dims.v_head_dim) + dims.kv_heads * dims.v_head_dim
    rows = dims.hidden
    if not has_experts:
        wide += dims.ffn
        rows += dims.hidden * (dims.ups - 1)
    kept = each * (dims.tokens * wide + dims.whole_tokens * rows)
    return kept + dims.tokens * dims.heads * STATISTIC_BYTES
