"""The widths that one rank has of a divided transformer."""

from dataclasses import dataclass

from ingest.errors import UsageError
from whatif.models.shape import ModelShape, RunShape

NEEDED = ("layers", "hidden", "heads", "vocab")
"""Fields without which no work can be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """Sizes of one micro-batch on one rank; parts of whole numbers where a degree does not divide.

    Letters as in arXiv:2104.04473: tokens t = samples x sequence / cp, width h, inner width f.
    """

    samples: float
    tokens: float
    """Of a micro-batch on a context rank."""
    whole_tokens: float
    """Of what tensor parallelism leaves whole: fewer under sequence parallelism."""
    queries: float
    """Tokens of a sample on a context rank."""
    keys: float
    """Tokens of a sample that queries meet: all of them, round by round."""
    hidden: float
    heads: float
    """Of a tensor rank."""
    kv_heads: float
    """Of a tensor rank; never below one: more ranks than heads hold copies."""
    head_dim: float
    """Of queries and keys, in the product of scores."""
    v_head_dim: float
    ffn: float
    """Inner width of a tensor rank."""
    ups: int
    """Products into the feed-forward: 2 where it is gated."""
    vocab: float
    """Of a tensor rank."""
    routed: float
    """Tokens that the experts of a rank get in all (the fullest rank's, capped by capacity)."""
    local_routed: float
    """Copies of tokens that a rank sends to experts."""
    local_experts: float
    expert_ffn: float
    """Inner width of an expert on a rank."""
    shared_ffn: float
    """Inner width of all shared experts together on a tensor rank."""


def is_known(model: ModelShape) -> bool:
    """Whether the formulas can tell the work of this model."""
    inner = model.ffn is not None or model.expert_ffn is not None
    return inner and all(getattr(model, name) is not None for name in NEEDED)


def required(value: float | None, name: str) -> float:
    """The value of a field of the model.

    Raises:
        UsageError: it is not known.
    """
    if value is None:
        raise UsageError(
            f"the model's {name} is not known",
            hint=f"say it in a description: model: {{{name}: …}}",
        )
    return float(value)


def head_dim(model: ModelShape) -> float:
    """Width of one head, without what is turned by position in latent attention."""
    if model.head_dim is not None:
        return float(model.head_dim)
    return required(model.hidden, "hidden") / required(model.heads, "heads")


def dims_of(shape: RunShape) -> Dims:
    """Widths of one rank.

    Raises:
        UsageError: the sizes of the model or of the batch are not known.
    """
    model, degrees = shape.model, shape.degrees
    tp = degrees.tp
    samples = required(shape.batch.samples, "samples")
    sequence = required(shape.batch.sequence, "sequence")
    heads = required(model.heads, "heads")
    queries = sequence / degrees.cp
    tokens = samples * queries
    etp = expert_tensor(shape)
    local_routed = tokens * model.top_k * etp / tp
    return Dims(
        samples=samples,
        tokens=tokens,
        whole_tokens=tokens / tp if degrees.sp else tokens,
        queries=queries,
        keys=sequence,
        hidden=required(model.hidden, "hidden"),
        heads=heads / tp,
        kv_heads=max((model.kv_heads or heads) / tp, 1.0),
        head_dim=head_dim(model) + (model.rope_head_dim or 0),
        v_head_dim=model.v_head_dim or head_dim(model),
        ffn=(model.ffn or 0) / tp,
        ups=2 if model.gated else 1,
        vocab=required(model.vocab, "vocab") / tp,
        routed=local_routed * fullest_experts(shape),
        local_routed=local_routed,
        local_experts=max((model.experts or 0) / degrees.ep, 1.0),
        expert_ffn=(model.expert_ffn or model.ffn or 0) / etp,
        shared_ffn=model.shared_experts * (model.expert_ffn or model.ffn or 0) / tp,
    )


def fullest_experts(shape: RunShape) -> float:
    """Tokens of the fullest rank of experts over the mean; 1 where one rank has them all."""
    options = shape.options
    if shape.degrees.ep == 1:
        return 1.0
    return min(options.imbalance, options.capacity or options.imbalance)


def expert_tensor(shape: RunShape) -> int:
    """Tensor ranks that divide one expert: as given, else 1 where experts are spread, else tp."""
    degrees = shape.degrees
    if degrees.etp is not None:
        return degrees.etp
    return 1 if degrees.ep > 1 else degrees.tp
