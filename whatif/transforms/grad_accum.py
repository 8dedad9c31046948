"""More or fewer micro-batches of the recorded size."""

from msgspec import Struct
from msgspec.structs import replace

from replay.graph.arrays import TaskGraph
from whatif.models.shape import RunShape, check_count
from whatif.transforms.base import Applied, Context
from whatif.transforms.relayout.apply import relayout


class GradAccum(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="grad_accum",
):
    """Accumulate gradients over another number of micro-batches, each as large as recorded."""

    micro_batches: int

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        check_count(self.micro_batches, "micro-batches")

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--grad-accum {self.micro_batches}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run of that layout.

        Raises:
            ScenarioError: the run cannot have it, or does not tell enough for it.
        """
        return relayout(graph, context, self._edit, _label)

    def _edit(self, target: RunShape) -> RunShape:
        batch = replace(target.batch, micro_batches=self.micro_batches)
        return replace(target, batch=batch)


def _label(before: RunShape, after: RunShape) -> str:
    return f"micro-batches {before.batch.micro_batches} -> {after.batch.micro_batches}"
