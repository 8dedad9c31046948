"""Another number of pipeline stages."""

from msgspec import Struct
from msgspec.structs import replace

from replay.graph.arrays import TaskGraph
from whatif.models.shape import RunShape, check_count
from whatif.transforms.base import Applied, Context
from whatif.transforms.relayout.apply import relayout


class PipelineParallel(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="pp"
):
    """Divide the layers over another number of stages."""

    stages: int

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        check_count(self.stages, "pipeline stages")

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--pp {self.stages}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run of that layout.

        Raises:
            ScenarioError: the run cannot have it, or does not tell enough for it.
        """
        return relayout(graph, context, self._edit, _label)

    def _edit(self, target: RunShape) -> RunShape:
        degrees = replace(target.degrees, pp=self.stages)
        return replace(target, degrees=degrees)


def _label(before: RunShape, after: RunShape) -> str:
    return f"pipeline stages {before.degrees.pp} -> {after.degrees.pp}"
