"""What the recorded run took, against what the closed form tells of it: the level of every answer.

Layouts are scored by ratios to the recorded one, which the closed form then meets exactly: kernels
by part of the model and direction, collectives by axis, and a rest for what it does not tell.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ingest.vocab import COMPUTE_CLASSES, TaskKind
from replay.graph.arrays import Bool, TaskGraph
from whatif.description.described import Described
from whatif.models.collectives.model import model_ns
from whatif.models.exchanges.volume import Along
from whatif.models.memory.stages import stages_of
from whatif.models.places import BACKWARDS, Part, Pass
from whatif.models.shape import RunShape
from whatif.parallelism import Axis
from whatif.plan.passes import PASSES, Levels, Times
from whatif.plan.score import losses_of
from whatif.topology import Topology
from whatif.transforms.retime import calls_of

ALONGS = {
    Axis.TENSOR: Along.TENSOR,
    Axis.CONTEXT: Along.CONTEXT,
    Axis.EXPERT: Along.EXPERT,
    Axis.SHARDED: Along.SHARDS,
    Axis.DATA: Along.REPLICAS,
}
_BOTH = {Pass.BACKWARD_INPUT: Pass.BACKWARD, Pass.BACKWARD_WEIGHT: Pass.BACKWARD}


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """How the closed form is brought to the recorded run."""

    levels: Levels
    rest_ns: float
    """Of the step, for each layer and micro-batch of a rank: what the closed form does not tell;
    below 0 where it tells too much (work that runs side by side)."""


def anchored(
    graph: TaskGraph, described: Described, times: Times, topology: Topology, step_ns: float
) -> Anchor:
    """Bring the closed form to the recorded run.

    Args:
        graph: of the run.
        described: what it is.
        times: of parts on the recorded machine, as the models tell them.
        topology: of the recorded machine.
        step_ns: replayed step.

    Raises:
        UsageError: sizes of the model or the batch are not known.
    """
    shape = described.shape
    compute, whole = _compute_levels(graph, described, times)
    levels = Levels(
        compute=compute,
        any_compute=whole,
        exchange=dict(_exchange_levels(graph, described, times, topology)),
    )
    leveled = Times(times.machine, times.fabric, times.node, levels)
    told_ns = losses_of(shape, leveled, 0.0).step_ns
    turns = (shape.model.layers or 1) / shape.degrees.pp * shape.batch.micro_batches
    return Anchor(levels=levels, rest_ns=(step_ns - told_ns) / turns)


def _compute_levels(
    graph: TaskGraph, described: Described, times: Times
) -> tuple[dict[tuple[Part, Pass], float], float]:
    """By part and direction where kernels were told apart, and of all kernels together."""
    measured = _measured_ns(graph, described)
    made = _made_ns(described.shape, described, times)
    levels = {
        key: measured[key] / made_ns
        for key, made_ns in made.items()
        if made_ns > 0 and measured.get(key, 0.0) > 0
    }
    whole = sum(made.values())
    return levels, sum(measured.values()) / whole if whole > 0 else 1.0


def _measured_ns(graph: TaskGraph, described: Described) -> dict[tuple[Part, Pass], float]:
    """Computation of a step of all recorded ranks; the halves of backward together."""
    tasks, labels = graph.tasks, described.labels
    kernels = _computing(graph)
    direction = labels.direction[kernels].astype(np.int64)
    direction[np.isin(direction, [int(one) for one in BACKWARDS])] = int(Pass.BACKWARD)
    keys = labels.part[kernels].astype(np.int64) * len(Pass) + direction
    total = np.bincount(keys, tasks.dur_ns[kernels].astype(np.float64))
    return {
        (Part(key // len(Pass)), Pass(key % len(Pass))): float(total[key]) / len(graph.steps)
        for key in np.flatnonzero(total).tolist()
    }


def _computing(graph: TaskGraph) -> Bool:
    tasks = graph.tasks
    classes = [int(one) for one in COMPUTE_CLASSES]
    found: Bool = (
        (tasks.kind == TaskKind.KERNEL)
        & np.isin(tasks.kernel_class, classes)
        & (tasks.step >= 0)
        & ~tasks.fixed
    )
    return found


def _made_ns(shape: RunShape, described: Described, times: Times) -> dict[tuple[Part, Pass], float]:
    """What the models tell for the same ranks."""
    stages = stages_of(shape)
    made: dict[tuple[Part, Pass], float] = {}
    for stage in described.stage_of_rank.values():
        one = stages[min(stage, len(stages) - 1)]
        parts = (
            (one.dense_layers, Part.LAYER, False),
            (one.expert_layers, Part.LAYER, True),
            (int(one.has_embedding), Part.EMBEDDING, False),
            (int(one.has_head), Part.HEAD, False),
        )
        for number, part, has_experts in parts:
            if not number:
                continue
            each = times.part_ns(shape, part, has_experts=has_experts)
            for direction, time_ns in zip(PASSES, each, strict=True):
                key = (part, _BOTH.get(direction, direction))
                count = number * shape.batch.micro_batches
                made[key] = made.get(key, 0.0) + count * time_ns
        for part in (Part.OPTIMIZER, Part.SYNC):
            key = (part, Pass.NONE)
            made[key] = made.get(key, 0.0) + times.step_part_ns(shape, part)
    return made


def _exchange_levels(
    graph: TaskGraph, described: Described, times: Times, topology: Topology
) -> Iterator[tuple[Along, float]]:
    """By axis, transfers as recorded over what the model tells of the same calls."""
    tasks, calls = graph.tasks, graph.collectives
    counted = (tasks.collective >= 0) & (tasks.step >= 0) & ~tasks.fixed
    number = np.unique(tasks.collective[counted]).astype(np.int64)
    told_ns = model_ns(calls_of(graph, topology, number), times.fabric)
    measured_ns = calls.transfer_ns[number].astype(np.float64)
    axes = np.array([list(Axis).index(role.axis) for role in described.layout.roles] + [-1])
    axis_of = axes[calls.group[number]]
    for axis, along in ALONGS.items():
        mine = (axis_of == list(Axis).index(axis)) & np.isfinite(told_ns) & (told_ns > 0)
        if mine.any() and measured_ns[mine].sum() > 0:
            yield along, float(measured_ns[mine].sum() / told_ns[mine].sum())
