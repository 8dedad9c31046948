"""Time of each part of the model for one micro-batch on one rank, and of its collectives.

Computation is that of `models.kernels`, collectives that of `models.collectives`; both times what
the recorded run took of what they tell for it (`anchor.py`). Layouts share most of their parts, so
each is made once.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from msgspec.structs import astuple

from ingest.vocab import CollectiveKind, ElementType
from whatif.models.bound import Bound
from whatif.models.collectives.calls import Calls
from whatif.models.collectives.model import model_ns
from whatif.models.exchanges.volume import Along, Volume
from whatif.models.fabric import Fabric
from whatif.models.kernels.machine import Machine
from whatif.models.kernels.works import element_type, times_ns
from whatif.models.places import Part, Pass
from whatif.models.shape import RunShape
from whatif.models.transformer.works import works_of
from whatif.models.volumes import stage_message_bytes, volumes

_T = TypeVar("_T")
PARTS = (Part.EMBEDDING, Part.LAYER, Part.HEAD)
PASSES = (Pass.FORWARD, Pass.BACKWARD_INPUT, Pass.BACKWARD_WEIGHT, Pass.RECOMPUTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """What the recorded run took, over what the models tell for it; 1 where nothing tells."""

    compute: Mapping[tuple[Part, Pass], float] = field(default_factory=dict)
    any_compute: float = 1.0
    """Of parts that were not told apart."""
    exchange: Mapping[Along, float] = field(default_factory=dict)

    def of(self, part: Part, direction: Pass) -> float:
        """Of computation."""
        both = Pass.BACKWARD if direction in PASSES[1:3] else direction
        first = Pass.FORWARD if direction is Pass.RECOMPUTE else both
        found = self.compute.get((part, direction), self.compute.get((part, both)))
        return self.compute.get((part, first), self.any_compute) if found is None else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A collective of the layout, with its time."""

    row: Volume
    time_ns: float


class Times:
    """Times on one machine, each part of a layout made once."""

    def __init__(
        self,
        machine: Machine,
        fabric: Fabric,
        node: int,
        levels: Levels,
        bound: Bound = Bound.NOMINAL,
    ) -> None:
        self.machine, self.fabric, self.node = machine, fabric, node
        self.levels, self.bound = levels, bound
        self._made: dict[Hashable, object] = {}

    def part_ns(self, shape: RunShape, part: Part, *, has_experts: bool = False) -> list[float]:
        """Computation of one micro-batch, by `PASSES`."""
        degrees, batch = shape.degrees, shape.batch
        key = (
            *("part", part, has_experts, degrees.tp, degrees.sp, degrees.cp, degrees.ep),
            *(degrees.etp, degrees.cp_kind, batch.samples, shape.options.recompute),
            batch.micro_batches > 1,  # gradients are added to those before
        )
        return self.once(key, lambda: self._part(shape, part, has_experts=has_experts))

    def _part(self, shape: RunShape, part: Part, *, has_experts: bool) -> list[float]:
        dtype = element_type(shape.elements.product)
        return [
            self._works(shape, part, direction, dtype, has_experts=has_experts)
            * self.levels.of(part, direction)
            for direction in PASSES
        ]

    def _works(
        self,
        shape: RunShape,
        part: Part,
        direction: Pass,
        dtype: ElementType,
        *,
        has_experts: bool = False,
    ) -> float:
        works = works_of(shape, part, direction, has_experts=has_experts)
        return float(times_ns(works, self.machine, dtype, self.bound).sum())

    def step_part_ns(self, shape: RunShape, part: Part) -> float:
        """Of the optimizer, or of what stands before it; once per step."""
        key = ("step", part, _state_key(shape))
        dtype = element_type(shape.elements.product)
        level = self.levels.of(part, Pass.NONE)
        return self.once(key, lambda: level * self._works(shape, part, Pass.NONE, dtype))

    def exchanges(self, shape: RunShape) -> tuple[Exchange, ...]:
        """All collectives of the layout but the messages between stages."""
        key = ("calls", _state_key(shape), shape.batch.samples, shape.options.recompute)
        return self.once(key, lambda: self._exchanges(shape))

    def _exchanges(self, shape: RunShape) -> tuple[Exchange, ...]:
        rows = [row for row in volumes(shape) if row.along is not Along.MODEL]
        if not rows:
            return ()
        strides = np.array([stride_of(row.along, shape) for row in rows], np.int64)
        time_ns = self._calls_ns(
            np.array([int(row.kind) for row in rows], np.int64),
            np.array([row.size_bytes for row in rows], np.int64),
            np.array([row.members for row in rows], np.int64),
            strides,
        )
        level = [self.levels.exchange.get(row.along, 1.0) for row in rows]
        return tuple(
            Exchange(row=row, time_ns=time * factor)
            for row, time, factor in zip(rows, time_ns.tolist(), level, strict=True)
        )

    def message_ns(self, shape: RunShape) -> float:
        """Of activations from one pipeline stage to the next."""
        degrees = shape.degrees
        size = stage_message_bytes(shape)
        between = degrees.tp * degrees.cp * degrees.dp
        key = ("message", size, between >= self.node)
        one = np.ones(1, np.int64)
        return self.once(
            key,
            lambda: float(
                self._calls_ns(
                    one * int(CollectiveKind.SEND_RECV), one * size, 2 * one, one * between
                )[0]
            ),
        )

    def _calls_ns(
        self,
        kind: np.ndarray[tuple[int], np.dtype[np.int64]],
        size_bytes: np.ndarray[tuple[int], np.dtype[np.int64]],
        members: np.ndarray[tuple[int], np.dtype[np.int64]],
        stride: np.ndarray[tuple[int], np.dtype[np.int64]],
    ) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Time of calls whose members are so many ranks apart; ranks fill nodes in order.

        What the models cannot tell (the rate of a link) takes no time.
        """
        in_node = np.clip(self.node // stride, 1, members)
        calls = Calls(
            kind=kind,
            size_bytes=size_bytes,
            members=members,
            nodes=-(-members // in_node),
            largest_node=in_node,
            sites=np.ones(len(kind), np.int64),
        )
        time_ns = model_ns(calls, self.fabric, self.bound)
        return np.where(np.isfinite(time_ns), time_ns, 0.0)

    def once(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """What was made for the key, else what is made for it now."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]  # type: ignore[return-value]  # made for this very key


def stride_of(along: Along, shape: RunShape) -> int:
    """Ranks from one member to the next, where ranks are numbered tp, cp, dp, pp (Megatron-LM)."""
    degrees = shape.degrees
    return {
        Along.TENSOR: 1,
        Along.CONTEXT: degrees.tp,
        Along.EXPERT: degrees.etp or 1,
        Along.SHARDS: degrees.tp,
        Along.REPLICAS: degrees.tp * (degrees.shards if degrees.zero else 1),
    }.get(along, 1)


def _state_key(shape: RunShape) -> Hashable:
    """What sizes of state depend on, and the groups that exchange it."""
    degrees = shape.degrees
    return (*astuple(degrees),)
