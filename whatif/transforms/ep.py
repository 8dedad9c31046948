"""Another degree of expert parallelism."""

from msgspec import Struct
from msgspec.structs import replace

from replay.graph.arrays import TaskGraph
from whatif.models.shape import RunShape, check_count
from whatif.transforms.base import Applied, Context
from whatif.transforms.relayout.apply import relayout


class ExpertParallel(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="ep"
):
    """Spread the experts of each layer over another number of ranks."""

    degree: int

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        check_count(self.degree, "expert-parallel ranks")

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--ep {self.degree}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run of that layout.

        Raises:
            ScenarioError: the run cannot have it, or does not tell enough for it.
        """
        return relayout(graph, context, self._edit, _label)

    def _edit(self, target: RunShape) -> RunShape:
        degrees = replace(target.degrees, ep=self.degree)
        return replace(target, degrees=degrees)


def _label(before: RunShape, after: RunShape) -> str:
    return f"expert parallel {before.degrees.ep} -> {after.degrees.ep}"
