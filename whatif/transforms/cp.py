"""Another degree of context parallelism."""

from msgspec import Struct
from msgspec.structs import replace

from replay.graph.arrays import TaskGraph
from whatif.models.shape import ContextKind, RunShape, check_count
from whatif.transforms.base import Applied, Context
from whatif.transforms.relayout.apply import relayout


class ContextParallel(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="cp"
):
    """Divide each sequence over another number of ranks."""

    degree: int
    exchange: ContextKind = ContextKind.RING

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        check_count(self.degree, "context-parallel ranks")

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--cp {self.degree}" + (
            "" if self.exchange is ContextKind.RING else f":{self.exchange}"
        )

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run of that layout.

        Raises:
            ScenarioError: the run cannot have it, or does not tell enough for it.
        """
        return relayout(graph, context, self._edit, _label)

    def _edit(self, target: RunShape) -> RunShape:
        degrees = replace(target.degrees, cp=self.degree, cp_kind=self.exchange)
        return replace(target, degrees=degrees)


def _label(before: RunShape, after: RunShape) -> str:
    return f"context parallel {before.degrees.cp} -> {after.degrees.cp}"
