"""Another order of the micro-batches of a pipeline."""

from msgspec import Struct
from msgspec.structs import replace

from replay.graph.arrays import TaskGraph
from whatif.models.shape import RunShape, Schedule
from whatif.transforms.base import Applied, Context
from whatif.transforms.relayout.apply import relayout


class PipelineSchedule(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="schedule"
):
    """Run the micro-batches of the pipeline in another order."""

    name: Schedule

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--schedule {self.name}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run of that kind.

        Raises:
            ScenarioError: the run cannot have it, or does not tell enough for it.
        """
        return relayout(graph, context, self._edit, _label)

    def _edit(self, target: RunShape) -> RunShape:
        options = replace(target.options, schedule=self.name)
        return replace(target, options=options)


def _label(before: RunShape, after: RunShape) -> str:
    return f"schedule {before.options.schedule} -> {after.options.schedule}"
