"""Parameters of a transformer and of its parts, and what a rank holds of them."""

from dataclasses import dataclass

from msgspec.structs import replace

from whatif.models.shape import ModelShape, RunShape
from whatif.models.transformer.dims import expert_tensor, head_dim, is_known, required


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Parameters of a part of a model, by what divides them."""

    divided: float = 0.0
    """By tensor parallelism."""
    whole: float = 0.0
    """On every tensor rank: norms, biases behind a sum, routers."""
    routed: float = 0.0
    """Of routed experts: by expert parallelism, and by the tensor ranks of an expert."""

    @property
    def total(self) -> float:
        """All of them."""
        return self.divided + self.whole + self.routed

    def __add__(self, other: "Held") -> "Held":
        return Held(
            divided=self.divided + other.divided,
            whole=self.whole + other.whole,
            routed=self.routed + other.routed,
        )

    def times(self, factor: float) -> "Held":
        """So many parts alike."""
        return Held(
            divided=self.divided * factor, whole=self.whole * factor, routed=self.routed * factor
        )


def layer_parameters(model: ModelShape, *, has_experts: bool = False) -> Held:
    """Of one block; where sizes are not known, an equal part of the model.

    Raises:
        UsageError: neither sizes nor the sum are known.
    """
    if not is_known(model):
        share = required(model.parameters, "parameters") / required(model.layers, "layers")
        return Held(divided=share)
    inner = _experts(model) if has_experts else _feed_forward(model, float(model.ffn or 0))
    return _attention(model) + inner + Held(whole=2 * _norm(model))


def embedding_parameters(model: ModelShape) -> Held:
    """Of the table of tokens; nothing where sizes are not known (layers hold it all then)."""
    if not is_known(model):
        return Held()
    return Held(divided=required(model.vocab, "vocab") * required(model.hidden, "hidden"))


def head_parameters(model: ModelShape) -> Held:
    """Of the final norm and of the logits, where the table of tokens does not serve for these."""
    if not is_known(model):
        return Held()
    own = 0.0 if model.tied else embedding_parameters(model).divided
    return Held(divided=own, whole=_norm(model))


def layers_with_experts(model: ModelShape) -> int:
    """How many layers have experts."""
    layers = int(required(model.layers, "layers"))
    return 0 if model.experts is None else max(layers - model.dense_layers, 0)


NEAR_DENSE_FRAC = 0.05
"""Norms, biases and tables that the formula does not know."""


def is_as_dense(model: ModelShape) -> bool:
    """As many parameters were counted as the model has by formula without experts."""
    if model.parameters is None or not is_known(model):
        return False
    dense = replace(model, experts=None, dense_layers=0, shared_experts=0)
    return _is_near(model.parameters, dense)


def contradicts_experts(model: ModelShape, counted: int) -> bool:
    """As many parameters were counted as without the experts that it is said to have."""
    if model.experts is None or not is_known(model):
        return False
    return is_as_dense(replace(model, parameters=counted)) and not _is_near(counted, model)


def _is_near(counted: int, model: ModelShape) -> bool:
    by_formula = [model_parameters(replace(model, tied=tied)).total for tied in (False, True)]
    return any(abs(counted / whole - 1) < NEAR_DENSE_FRAC for whole in by_formula)


def model_parameters(model: ModelShape) -> Held:
    """Of the whole model by formula, by what divides them.

    Raises:
        UsageError: sizes are not known.
    """
    with_experts = layers_with_experts(model)
    dense = required(model.layers, "layers") - with_experts
    return (
        embedding_parameters(model)
        + layer_parameters(model).times(dense)
        + (
            layer_parameters(model, has_experts=True).times(with_experts)
            if with_experts
            else Held()
        )
        + head_parameters(model)
    )


def held_by_rank(shape: RunShape, held: Held) -> float:
    """Of a part of the model on one rank, before replicas divide it (ZeRO)."""
    degrees = shape.degrees
    experts = degrees.ep * expert_tensor(shape)
    return held.divided / degrees.tp + held.whole + held.routed / experts


def held_by_layer(shape: RunShape, *, has_experts: bool = False) -> float:
    """Of one block on one rank, before replicas divide it."""
    return held_by_rank(shape, layer_parameters(shape.model, has_experts=has_experts))


def held_of(
    model: ModelShape, *, dense: float, with_experts: float, has_embedding: bool, has_head: bool
) -> Held:
    """Of so many layers of either kind, with what lies beside them.

    A head without a table of its own keeps a copy of the embedding's, where that is elsewhere.

    Raises:
        UsageError: neither sizes nor the sum are known.
    """
    held = layer_parameters(model).times(dense)
    if with_experts:
        held = held + layer_parameters(model, has_experts=True).times(with_experts)
    if has_embedding or (has_head and model.tied):
        held = held + embedding_parameters(model)
    if has_head:
        held = held + head_parameters(model)
    return held.times(given_share(model))


def stage_held(shape: RunShape, stage: int) -> Held:
    """Of a pipeline stage over all of its ranks, layers spread evenly.

    Args:
        shape: of the run.
        stage: from 0; the first holds the table of tokens, the last the head.
    """
    model, stages = shape.model, shape.degrees.pp
    with_experts = layers_with_experts(model) / stages
    return held_of(
        model,
        dense=required(model.layers, "layers") / stages - with_experts,
        with_experts=with_experts,
        has_embedding=stage == 0,
        has_head=stage == stages - 1,
    )


def optimizer_shards(shape: RunShape) -> float:
    """Ranks that divide the optimizer's state and its work."""
    degrees = shape.degrees
    if degrees.zero == 0 and shape.options.distributed_optimizer:
        return float((degrees.shard or degrees.dp) * degrees.cp)
    return float(degrees.shards)


def updated_by_rank(shape: RunShape, held: Held) -> float:
    """Of a part of the model, those that one rank's optimizer holds state of and updates.

    Experts have fewer replicas to share with: those that their own ranks leave.
    """
    degrees, shards = shape.degrees, optimizer_shards(shape)
    experts = degrees.ep * expert_tensor(shape)
    replicas = max(shards * degrees.tp / experts, 1.0) if shards > 1 else 1.0
    plain = held.divided / degrees.tp + held.whole
    return plain / shards + held.routed / (experts * replicas)


def state_parameters(shape: RunShape) -> float:
    """Whose optimizer state a rank of the first stage holds and updates."""
    return updated_by_rank(shape, stage_held(shape, 0))


def given_share(model: ModelShape) -> float:
    """A given sum over that of the formula: parts are scaled to add up to it."""
    if model.parameters is None or not is_known(model):
        return 1.0
    return model.parameters / model_parameters(model).total


def _norm(model: ModelShape) -> float:
    """Weights, and biases where the model has them."""
    return required(model.hidden, "hidden") * (2 if model.bias else 1)


def _attention(model: ModelShape) -> Held:
    hidden, heads = required(model.hidden, "hidden"), required(model.heads, "heads")
    width = head_dim(model)
    v_width = model.v_head_dim or width
    if model.kv_lora is not None:
        return _latent_attention(model, hidden, heads, width, v_width)
    columns = heads * width + (model.kv_heads or heads) * (width + v_width)
    biases = Held(divided=columns, whole=hidden) if model.bias else Held()
    return Held(divided=hidden * columns + heads * v_width * hidden) + biases


def _latent_attention(
    model: ModelShape, hidden: float, heads: float, width: float, v_width: float
) -> Held:
    """As in DeepSeek-V2 (arXiv:2405.04434): rows are compressed, normed and opened again."""
    kv_lora, rope = float(model.kv_lora or 0), float(model.rope_head_dim or 0)
    whole = hidden * (kv_lora + rope) + kv_lora
    divided = kv_lora * heads * (width + v_width) + heads * v_width * hidden
    if model.q_lora is None:
        return Held(divided=divided + hidden * heads * (width + rope), whole=whole)
    q_lora = float(model.q_lora)
    divided += q_lora * heads * (width + rope)
    return Held(divided=divided, whole=whole + hidden * q_lora + q_lora)


def _feed_forward(model: ModelShape, inner: float) -> Held:
    hidden = required(model.hidden, "hidden")
    ups = 2 if model.gated else 1
    biases = Held(divided=ups * inner, whole=hidden) if model.bias else Held()
    return Held(divided=(ups + 1) * hidden * inner) + biases


def _experts(model: ModelShape) -> Held:
    hidden, experts = required(model.hidden, "hidden"), required(model.experts, "experts")
    inner = float(model.expert_ffn or model.ffn or 0)
    each = _feed_forward(model, inner).total
    shared = _feed_forward(model, model.shared_experts * inner) if model.shared_experts else Held()
    return Held(routed=experts * each, whole=hidden * experts) + shared
