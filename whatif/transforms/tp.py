"""Another degree of tensor parallelism."""

from msgspec import Struct
from msgspec.structs import replace

from replay.graph.arrays import TaskGraph
from whatif.models.shape import RunShape, check_count
from whatif.transforms.base import Applied, Context
from whatif.transforms.relayout.apply import relayout


class TensorParallel(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="tp"
):
    """Divide each layer over another number of ranks."""

    degree: int

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        check_count(self.degree, "tensor-parallel ranks")

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--tp {self.degree}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run of that layout.

        Raises:
            ScenarioError: the run cannot have it, or does not tell enough for it.
        """
        return relayout(graph, context, self._edit, _label)

    def _edit(self, target: RunShape) -> RunShape:
        degrees = replace(target.degrees, tp=self.degree)
        return replace(target, degrees=degrees)


def _label(before: RunShape, after: RunShape) -> str:
    return f"tensor parallel {before.degrees.tp} -> {after.degrees.tp}"
