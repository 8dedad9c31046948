"""Another share of optimizer, gradients and parameters on each replica: ZeRO, FSDP."""

from msgspec import Struct
from msgspec.structs import replace

from ingest.errors import UsageError
from replay.graph.arrays import TaskGraph
from whatif.models.shape import RunShape
from whatif.transforms.base import Applied, Context
from whatif.transforms.relayout.apply import relayout


class Zero(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="zero"
):
    """Shard state: 0 nothing (DDP), 1 optimizer, 2 and gradients, 3 parameters too (FSDP)."""

    stage: int
    shard: int | None = None
    """Replicas that share state (hybrid shards); None: all."""

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        if self.stage not in range(4):
            raise UsageError(f"ZeRO stage {self.stage}", hint="0, 1, 2 or 3")
        if self.shard is not None and (self.shard < 1 or self.stage == 0):
            raise UsageError(
                f"shards over {self.shard} replicas in stage {self.stage}",
                hint="--zero 3:8 shards over groups of 8",
            )

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--zero {self.stage}" + (f":{self.shard}" if self.shard else "")

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run of that layout.

        Raises:
            ScenarioError: the run cannot have it, or does not tell enough for it.
        """
        return relayout(graph, context, self._edit, _label)

    def _edit(self, target: RunShape) -> RunShape:
        degrees = replace(target.degrees, zero=self.stage, shard=self.shard)
        return replace(target, degrees=degrees)


def _label(before: RunShape, after: RunShape) -> str:
    shared = f" over groups of {after.degrees.shard}" if after.degrees.shard else ""
    return f"ZeRO stage {before.degrees.zero} -> {after.degrees.zero}{shared}"
