"""Bytes of one rank: what lies there all the time, and the fullest moment of a step.

The fullest moment is one of two: the loss of the last micro-batch in flight, with all activations
and the logits; or the backward of a layer, with what it needs beside what was kept.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from whatif.models.memory.layer import saved_bytes, working_bytes
from whatif.models.memory.stages import Stage, stages_of
from whatif.models.memory.state import State, counted, state_of, zero_of
from whatif.models.shape import SHARDS_PARAMETERS, Recompute, RunShape
from whatif.models.transformer.dims import dims_of, is_known
from whatif.models.transformer.parameters import (
    embedding_parameters,
    head_parameters,
    layer_parameters,
)

LOGIT_BYTES, LOGIT_KEPT_BYTES = 12, 4
"""At the loss, per logit, in fp32: what softmax gave (kept), its gradient, and that of its input
(torch.nn.functional.cross_entropy)."""
DIVIDED_LOGIT_BYTES = 16
"""Where the vocabulary is divided: one more copy of the probabilities
(torch.distributed.tensor.parallel.loss_parallel)."""
MASK_BYTES = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMemory:
    """Bytes of a rank of one stage, by part; from activations on at the fullest moment."""

    stage: int
    parameters_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    activations_bytes: float
    logits_bytes: float
    gathered_bytes: float
    """Parameters and gradients that other ranks own (ZeRO-3), while they are here."""
    working_bytes: float
    """What backward needs beside: recomputed activations, gradients inside a layer, and of weights
    before they are added up."""
    beside_bytes: float = 0.0
    """No part of the peak: what would lie there as well if nothing of the loss were free again
    before the backward of the layers, gradients were kept in buckets once more, and messages and
    outputs of all micro-batches were kept."""

    @property
    def state_bytes(self) -> float:
        """Parameters, gradients and optimizer state."""
        return self.parameters_bytes + self.gradients_bytes + self.optimizer_bytes

    @property
    def peak_bytes(self) -> float:
        """All parts together."""
        moment = self.activations_bytes + self.logits_bytes + self.working_bytes
        return self.state_bytes + moment + self.gathered_bytes


def memory_of(shape: RunShape) -> tuple[RankMemory, ...]:
    """What the ranks of each stage hold at most in a step.

    Raises:
        UsageError: sizes of the model or of the batch are not known.
        ScenarioError: layers or micro-batches do not divide as the schedule needs.
    """
    return tuple(_fullest(shape, stage) for stage in stages_of(shape))


def fullest(shape: RunShape) -> RankMemory:
    """What the fullest rank holds; `beside_bytes` reach to the most that any stage may hold.

    Raises:
        UsageError: sizes of the model or of the batch are not known.
        ScenarioError: layers or micro-batches do not divide as the schedule needs.
    """
    stages = [_fullest(shape, stage) for stage in _distinct(stages_of(shape))]
    one = max(stages, key=lambda stage: stage.peak_bytes)
    most = max(stage.peak_bytes + stage.beside_bytes for stage in stages)
    return replace(one, beside_bytes=most - one.peak_bytes)


def _distinct(stages: tuple[Stage, ...]) -> Iterable[Stage]:
    """Of stages that differ in what is in flight alone, the one with most."""
    most: dict[tuple[int, int, bool, bool, int], Stage] = {}
    for stage in stages:
        key = (
            stage.dense_layers,
            stage.expert_layers,
            stage.has_embedding,
            stage.has_head,
            stage.heads_in_flight,
        )
        if key not in most or stage.in_flight > most[key].in_flight:
            most[key] = stage
    return most.values()


def is_told(shape: RunShape) -> bool:
    """Whether model and batch are known as far as this needs."""
    batch = shape.batch
    return is_known(shape.model) and batch.samples is not None and batch.sequence is not None


def activations_of(shape: RunShape, stage: Stage) -> float:
    """Bytes that the layers of a stage keep, of all micro-batches in flight."""
    each = 0.0
    if stage.dense_layers:
        each += stage.dense_layers * _kept(shape, stage, has_experts=False)
    if stage.expert_layers:
        each += stage.expert_layers * _kept(shape, stage, has_experts=True)
    return stage.in_flight * each


def _kept(shape: RunShape, stage: Stage, *, has_experts: bool) -> float:
    """Mean over the layers of a stage of which so many are recomputed."""
    own = saved_bytes(shape, has_experts=has_experts)
    count = shape.options.recompute_layers
    if count is None or count >= stage.layers:
        return own
    rest = saved_bytes(shape, has_experts=has_experts, recompute=Recompute.NONE)
    return rest + (own - rest) * count / max(stage.layers, 1)


def _fullest(shape: RunShape, stage: Stage) -> RankMemory:
    state, activations = state_of(shape, stage), activations_of(shape, stage)
    activations += _embedded(shape, stage)
    summed, head = weight_gradients(shape, stage), _head(shape, stage)
    at_loss = _Moment(head, _gathered(shape, stage, backward=False), summed)
    backward = _gathered(shape, stage, backward=True)
    in_layer = _Moment(0.0, backward, _working(shape, stage) + summed)
    peak = max((at_loss, in_layer), key=lambda one: (one.total_bytes, one.logits_bytes))
    both = _Moment(head, backward, in_layer.working_bytes)
    return RankMemory(
        stage=stage.number,
        parameters_bytes=state.parameters_bytes,
        gradients_bytes=state.gradients_bytes,
        optimizer_bytes=state.optimizer_bytes,
        activations_bytes=activations,
        logits_bytes=peak.logits_bytes,
        gathered_bytes=peak.gathered_bytes,
        working_bytes=peak.working_bytes,
        beside_bytes=both.total_bytes
        - peak.total_bytes
        + _bucket_copies(shape, state)
        + _messages(shape, stage),
    )


@dataclass(frozen=True, slots=True)
class _Moment:
    logits_bytes: float
    gathered_bytes: float
    working_bytes: float

    @property
    def total_bytes(self) -> float:
        return self.logits_bytes + self.gathered_bytes + self.working_bytes


def _bucket_copies(shape: RunShape, state: State) -> float:
    """Gradients that DistributedDataParallel keeps once more, in its buckets, if it does.

    As PyTorch does unless `gradient_as_bucket_view` is set; where gradients are wider than
    parameters they lie in one buffer that is reduced as it is (Megatron-LM).
    """
    each, degrees = shape.elements, shape.degrees
    if zero_of(shape) or degrees.dp * degrees.cp == 1 or each.gradient > each.parameter:
        return 0.0
    return state.gradients_bytes


def _messages(shape: RunShape, stage: Stage) -> float:
    """Of a pipeline, as PyTorch's keeps them and Megatron-LM does not.

    Room for what comes and goes of every micro-batch, and of the last stage the outputs of all,
    which it joins at the end (torch/distributed/pipelining/stage.py).
    """
    if shape.degrees.pp == 1:
        return 0.0
    dims, each = dims_of(shape), shape.elements.activation
    message = each * dims.whole_tokens * dims.hidden
    logits = 2 * each * dims.tokens * dims.vocab if stage.has_head else 0.0
    return shape.batch.micro_batches * (3 * message + logits)


def _embedded(shape: RunShape, stage: Stage) -> float:
    """The mask of dropout behind the embedding."""
    if not (stage.has_embedding and shape.model.dropout):
        return 0.0
    dims = dims_of(shape)
    return stage.in_flight * dims.whole_tokens * dims.hidden * MASK_BYTES


def _head(shape: RunShape, stage: Stage) -> float:
    """The last norm and the logits, at the loss of the last micro-batch."""
    if not stage.has_head:
        return 0.0
    dims, each = dims_of(shape), shape.elements.activation
    rows = 2 * each * dims.whole_tokens * dims.hidden
    if shape.degrees.sp and shape.degrees.tp > 1:
        rows += each * dims.tokens * dims.hidden
    now, kept = shape.options.logit_bytes, float(each)
    if now is None:
        now = float(DIVIDED_LOGIT_BYTES if shape.degrees.tp > 1 else LOGIT_BYTES)
        kept = float(LOGIT_KEPT_BYTES)
    logits = dims.tokens * dims.vocab
    return rows + logits * (now + kept * (stage.heads_in_flight - 1))


def weight_gradients(shape: RunShape, stage: Stage) -> float:
    """Gradients of weights in the type of products, before they are added up in a wider one.

    Transformer Engine keeps one for each shape of weight: those of one layer, one expert, the head.
    """
    each = shape.elements
    if zero_of(shape) >= SHARDS_PARAMETERS or each.gradient <= each.activation:
        return 0.0
    model = shape.model
    largest = 0.0
    if stage.dense_layers:
        largest = counted(shape, layer_parameters(model)).dense
    if stage.expert_layers:
        with_experts = counted(shape, layer_parameters(model, has_experts=True))
        own = max((model.experts or 1) / shape.degrees.ep, 1.0)
        largest = max(largest, with_experts.dense + with_experts.routed / own)
    if stage.has_head:
        largest += counted(shape, head_parameters(model)).dense
    return each.activation * largest


def _working(shape: RunShape, stage: Stage) -> float:
    """Of the layer that needs most, and the messages between stages."""
    most = 0.0
    if stage.dense_layers:
        most = working_bytes(shape, has_experts=False)
    if stage.expert_layers:
        most = max(most, working_bytes(shape, has_experts=True))
    if shape.degrees.pp > 1:
        dims = dims_of(shape)
        most += 2 * shape.elements.activation * dims.whole_tokens * dims.hidden
    return most


def _gathered(shape: RunShape, stage: Stage, *, backward: bool) -> float:
    """Parameters from other ranks in the type of products, and gradients on their way there.

    FSDP gathers embedding and head once for the step, and of the layers the present and the next;
    with several stages it keeps all, so that not every micro-batch gathers again, and adds
    gradients up whole (torchtitan, `parallelize_llama.py`).
    """
    if zero_of(shape) < SHARDS_PARAMETERS:
        return 0.0
    each, model = shape.elements, shape.model
    reduced = each.gradient if each.reduced is None else each.reduced
    if shape.degrees.pp > 1:
        whole = counted(shape, stage.held).total
        summed = each.gradient if shape.batch.micro_batches > 1 else each.activation
        on_the_way = _largest(shape, stage) * reduced if backward else 0.0
        return whole * (each.activation + summed) + on_the_way
    layer = _largest(shape, stage)
    root = counted(shape, embedding_parameters(model) + head_parameters(model)).total
    on_the_way = layer * (each.activation + reduced) if backward else 0.0
    return each.activation * (root + 2 * layer) + on_the_way


def _largest(shape: RunShape, stage: Stage) -> float:
    """Parameters of the larger kind of layer on one rank."""
    kinds = ((stage.dense_layers, False), (stage.expert_layers, True))
    return max(
        counted(shape, layer_parameters(shape.model, has_experts=has_experts)).total
        for count, has_experts in kinds
        if count
    )
