"""Another number of chunks of layers per stage."""

from msgspec import Struct
from msgspec.structs import replace

from replay.graph.arrays import TaskGraph
from whatif.models.shape import RunShape, check_count
from whatif.transforms.base import Applied, Context
from whatif.transforms.relayout.apply import relayout


class VirtualStages(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="virtual_stages",
):
    """Interleave several chunks of layers on each pipeline stage."""

    chunks: int

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        check_count(self.chunks, "chunks per stage")

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--virtual-stages {self.chunks}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run of that layout.

        Raises:
            ScenarioError: the run cannot have it, or does not tell enough for it.
        """
        return relayout(graph, context, self._edit, _label)

    def _edit(self, target: RunShape) -> RunShape:
        degrees = replace(target.degrees, virtual_stages=self.chunks)
        return replace(target, degrees=degrees)


def _label(before: RunShape, after: RunShape) -> str:
    return f"chunks per stage {before.degrees.virtual_stages} -> {after.degrees.virtual_stages}"
