"""The communicators of a layout, in Megatron-LM's order of ranks.

Tensor ranks lie next to each other, then context, then data, and stages farthest apart; expert
groups lie across data and context.
"""

from dataclasses import dataclass

from whatif.models.exchanges.volume import Along
from whatif.models.shape import RunShape
from whatif.synth.script import Group

_DESCRIBED = {
    Along.TENSOR: "TENSOR_MODEL_PARALLEL_GROUP",
    Along.CONTEXT: "CONTEXT_PARALLEL_GROUP",
    Along.EXPERT: "EXPERT_MODEL_PARALLEL_GROUP",
    Along.SHARDS: "DATA_PARALLEL_GROUP",
    Along.REPLICAS: "DATA_PARALLEL_GROUP",
    Along.MODEL: "MODEL_PARALLEL_GROUP",
}
FIRST_STREAM = 20
STREAM_STEP = 4
PIPELINE = "PIPELINE_MODEL_PARALLEL_GROUP"
WAYS = 4
"""Streams for messages: to and from each neighbour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Of one rank."""

    rank: int
    shape: RunShape

    @property
    def apart(self) -> int:
        """From a rank to the same of the next stage."""
        degrees = self.shape.degrees
        return degrees.tp * degrees.cp * degrees.dp

    def of(self, along: Along, members: int) -> Group:
        """The group of an axis with so many members."""
        number = list(Along).index(along)
        return Group(
            name=f"{number + 1}_{members}",
            description=self._described(along),
            ranks=self._ranks(along, members),
            stream=FIRST_STREAM + STREAM_STEP * number,
        )

    def _described(self, along: Along) -> str:
        """Context ranks hold the same parameters: with them the group is one over both axes."""
        both = along in (Along.SHARDS, Along.REPLICAS) and self.shape.degrees.cp > 1
        return _DESCRIBED[along] + ("_WITH_CP" if both else "")

    def pipeline(self, way: int) -> Group:
        """The stages of this rank's replica; each way has a stream of its own."""
        first = self.rank % self.apart
        stages = range(first, first + self.apart * self.shape.degrees.pp, self.apart)
        return Group(
            name="0_pipeline",
            description=PIPELINE,
            ranks=tuple(stages),
            stream=FIRST_STREAM + STREAM_STEP * (len(Along) + way),
        )

    def _ranks(self, along: Along, members: int) -> tuple[int, ...]:
        degrees = self.shape.degrees
        stage = self.rank // self.apart * self.apart
        inside = self.rank - stage
        step = {Along.TENSOR: 1, Along.MODEL: 1}.get(along, degrees.tp)
        if along is Along.MODEL:
            tensor = [inside // degrees.tp * degrees.tp + k for k in range(degrees.tp)]
            return tuple(s * self.apart + t for s in range(degrees.pp) for t in tensor)
        if along is Along.REPLICAS and degrees.zero:
            step *= degrees.shards
        first = inside // (step * members) * step * members + inside % step
        return tuple(stage + first + step * k for k in range(members))
