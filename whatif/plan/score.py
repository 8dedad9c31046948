"""The step of a layout in closed form, with what it loses against the ideal.

A step is that of its slowest stage for every micro-batch, the bubble of the schedule, gradients and
parameters that no computation hides, and the optimizer. Ideal is the work of the batch on all GPUs
at once, in kernels as large as one GPU would have them. The best layouts are replayed; this only
decides which.
"""

from dataclasses import dataclass, fields

from whatif.models.exchanges.volume import Along, Of, Spot, Way
from whatif.models.memory.rank import fullest
from whatif.models.memory.stages import Stage, stages_of
from whatif.models.pipeline.costs import bubble
from whatif.models.pipeline.terms import PassTimes, pipeline_of
from whatif.models.places import Part
from whatif.models.shape import RunShape
from whatif.models.volumes import recomputed
from whatif.plan.passes import Exchange, Times

INNER = (Along.TENSOR, Along.CONTEXT, Along.EXPERT)
LAYERS = (Of.LAYER, Of.DENSE, Of.EXPERTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """Where a step goes, ns; they add up to it."""

    ideal: float
    """The work at the pace of kernels that are not divided, on all GPUs at once."""
    small_kernels: float
    """More, since divided kernels are slower than their share, and since each micro-batch adds its
    gradients to those of the others."""
    recomputation: float
    tensor: float
    """Exposed communication inside layers."""
    context: float
    experts: float
    messages: float
    """Between stages."""
    replicas: float
    """Gradients and parameters that no computation hides."""
    bubble: float
    imbalance: float
    """Of the slowest stage over their mean: embedding, head, layers that do not divide."""
    optimizer: float
    rest: float
    """What the closed form does not tell of the recorded step: host, launches, waits."""

    @property
    def step_ns(self) -> float:
        """All of it."""
        return float(sum(getattr(self, field.name) for field in fields(self)))


@dataclass(frozen=True, slots=True)
class _Stage:
    """One micro-batch on one stage, ns."""

    forward: float
    backward_input: float
    backward_weight: float
    recomputation: float
    exposed: dict[Along, float]

    @property
    def communication(self) -> float:
        return sum(self.exposed.values())

    @property
    def computation(self) -> float:
        return self.forward + self.backward_input + self.backward_weight

    @property
    def whole(self) -> float:
        return self.computation + self.recomputation + self.communication


def losses_of(shape: RunShape, times: Times, ideal_ns: float, rest_ns: float = 0.0) -> Losses:
    """The step of a layout.

    Args:
        shape: layout.
        times: of its parts.
        ideal_ns: of the global batch on all GPUs (`ideal_of`).
        rest_ns: of one layer and micro-batch on a rank (`anchor.py`).

    Raises:
        UsageError: sizes of the model or the batch are not known.
        ScenarioError: layers or micro-batches do not divide as the schedule needs.
    """
    exchanges = times.exchanges(shape)
    stages = [_stage(shape, times, stage, exchanges) for stage in _stages(shape, times)]
    count = shape.batch.micro_batches
    mean = _mean(stages)
    slowest = max(stage.whole for stage in stages)
    message = times.message_ns(shape) if shape.degrees.pp > 1 else 0.0
    chunks = shape.degrees.virtual_stages
    pipe = pipeline_of(shape)
    backward = mean.backward_input + mean.recomputation
    idle = bubble(
        pipe,
        PassTimes(
            forward=mean.forward + mean.communication / 2,
            backward_input=backward + mean.communication / 2,
            backward_weight=mean.backward_weight,
        ),
    )
    layers = (shape.model.layers or 1) / shape.degrees.pp
    return Losses(
        ideal=ideal_ns,
        small_kernels=count * mean.computation - ideal_ns,
        recomputation=count * mean.recomputation,
        tensor=count * mean.exposed.get(Along.TENSOR, 0.0),
        context=count * mean.exposed.get(Along.CONTEXT, 0.0),
        experts=count * mean.exposed.get(Along.EXPERT, 0.0),
        messages=message * (count * chunks + 2 * (shape.degrees.pp - 1)),
        replicas=_replicas_ns(shape, exchanges, mean),
        bubble=idle,
        imbalance=count * (slowest - mean.whole),
        optimizer=times.step_part_ns(shape, Part.OPTIMIZER) + times.step_part_ns(shape, Part.SYNC),
        rest=rest_ns * layers * count,
    )


def memory_bytes(shape: RunShape) -> float:
    """Of the fullest rank.

    Raises:
        UsageError: sizes of the model or the batch are not known.
    """
    return fullest(shape).peak_bytes


def computation_ns(shape: RunShape, times: Times) -> float:
    """Of one micro-batch through the whole model, without recomputation, over all its stages."""
    stages = (_stage(shape, times, stage, ()) for stage in _stages(shape, times))
    return sum(stage.computation for stage in stages)


def _stages(shape: RunShape, times: Times) -> tuple[Stage, ...]:
    degrees = shape.degrees
    key = (
        *("stages", degrees.tp, degrees.pp, degrees.virtual_stages, degrees.ep, degrees.etp),
        *(shape.options.schedule, shape.batch.micro_batches),
    )
    return times.once(key, lambda: stages_of(shape))


def _stage(shape: RunShape, times: Times, stage: Stage, exchanges: tuple[Exchange, ...]) -> _Stage:
    parts = (
        (stage.dense_layers, Part.LAYER, False),
        (stage.expert_layers, Part.LAYER, True),
        (int(stage.has_embedding), Part.EMBEDDING, False),
        (int(stage.has_head), Part.HEAD, False),
    )
    total = [0.0] * 4
    for number, part, has_experts in parts:
        if number:
            each = times.part_ns(shape, part, has_experts=has_experts)
            total = [sum_ns + number * ns for sum_ns, ns in zip(total, each, strict=True)]
    exposed: dict[Along, float] = {}
    for one in exchanges:
        row = one.row
        if row.along in INNER and not row.beside:
            number = row.count * _times_on(row.of, stage) * (1 + recomputed(row, shape))
            exposed[row.along] = exposed.get(row.along, 0.0) + number * one.time_ns
    forward, backward_input, backward_weight, recomputation = total
    return _Stage(forward, backward_input, backward_weight, recomputation, exposed)


def _times_on(of: Of, stage: Stage) -> int:
    """How often a stage has that part of the model."""
    return {
        Of.LAYER: stage.layers,
        Of.DENSE: stage.dense_layers,
        Of.EXPERTS: stage.expert_layers,
        Of.EMBEDDING: int(stage.has_embedding),
        Of.HEAD: int(stage.has_head),
    }.get(of, 1)


def _mean(stages: list[_Stage]) -> _Stage:
    number = len(stages)
    axes = {axis for stage in stages for axis in stage.exposed}
    return _Stage(
        sum(stage.forward for stage in stages) / number,
        sum(stage.backward_input for stage in stages) / number,
        sum(stage.backward_weight for stage in stages) / number,
        sum(stage.recomputation for stage in stages) / number,
        {axis: sum(stage.exposed.get(axis, 0.0) for stage in stages) / number for axis in axes},
    )


def _replicas_ns(shape: RunShape, exchanges: tuple[Exchange, ...], mean: _Stage) -> float:
    """What gradients and parameters take beyond the computation that they can hide behind.

    Of what runs beside, as much as one micro-batch's pass in its direction hides, but for the last
    bucket or the first gathering, which nothing is left to hide; the rest takes all of its time.
    """
    layers = (shape.model.layers or 1) / shape.degrees.pp
    windows = {
        Way.FORWARD: mean.forward,
        Way.BACKWARD: mean.backward_input + mean.backward_weight + mean.recomputation,
    }
    exposed = 0.0
    hidden: dict[tuple[Way, bool], float] = {}
    for one in exchanges:
        row = one.row
        if row.along not in (Along.SHARDS, Along.REPLICAS):
            continue
        number = layers * row.count if row.of in LAYERS else float(row.count)
        count = shape.batch.micro_batches if row.each_micro_batch else 1
        if row.beside and row.spot is not Spot.UPDATED and row.way in windows:
            key = (row.way, row.each_micro_batch)
            hidden[key] = hidden.get(key, 0.0) + number * one.time_ns
        else:
            exposed += number * count * one.time_ns
    for (way, each), time_ns in hidden.items():
        count = shape.batch.micro_batches if each else 1
        exposed += count * max(time_ns - windows[way], time_ns / max(layers, 1.0))
    return exposed
