"""Bytes of parameters, gradients and optimizer state of a rank, as ZeRO divides them.

arXiv:1910.02054: stage 1 divides the optimizer's state over the replicas, 2 the gradients too, 3
the parameters too. Context ranks share with the replicas; routed experts are shared by fewer:
those replicas that hold the same experts.
"""

from dataclasses import dataclass

from whatif.models.memory.stages import Stage
from whatif.models.shape import (
    SHARDS_GRADIENTS,
    SHARDS_OPTIMIZER,
    SHARDS_PARAMETERS,
    RunShape,
)
from whatif.models.transformer.dims import expert_tensor
from whatif.models.transformer.parameters import Held


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Parameters on one rank before replicas divide them."""

    dense: float
    routed: float

    @property
    def total(self) -> float:
        """Both."""
        return self.dense + self.routed


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Bytes on one rank."""

    parameters_bytes: float
    gradients_bytes: float
    optimizer_bytes: float

    @property
    def total_bytes(self) -> float:
        """All of it."""
        return self.parameters_bytes + self.gradients_bytes + self.optimizer_bytes


def counted(shape: RunShape, held: Held) -> Count:
    """Of a part of the model on one rank."""
    degrees = shape.degrees
    return Count(
        dense=held.divided / degrees.tp + held.whole,
        routed=held.routed / (degrees.ep * expert_tensor(shape)),
    )


def state_of(shape: RunShape, stage: Stage) -> State:
    """What a rank of a stage holds between steps."""
    count = counted(shape, stage.held)
    each, zero = shape.elements, zero_of(shape)
    whole, shared = count.total, _shared(shape, count)
    optimizer = 0.0 if shape.options.offload else each.optimizer
    return State(
        parameters_bytes=each.parameter * (shared if zero >= SHARDS_PARAMETERS else whole),
        gradients_bytes=each.gradient * (shared if zero >= SHARDS_GRADIENTS else whole),
        optimizer_bytes=optimizer * (shared if zero >= SHARDS_OPTIMIZER else whole),
    )


def zero_of(shape: RunShape) -> int:
    """Stage of ZeRO; a distributed optimizer is the first."""
    return max(shape.degrees.zero, 1 if shape.options.distributed_optimizer else 0)


def _shared(shape: RunShape, count: Count) -> float:
    degrees = shape.degrees
    dense = (degrees.shard or degrees.dp) * degrees.cp
    alike = degrees.tp * degrees.cp * degrees.dp / (degrees.ep * expert_tensor(shape))
    return count.dense / dense + count.routed / max(min(alike, dense), 1.0)
