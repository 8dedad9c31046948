"""The same samples of a step in more or fewer micro-batches."""

from msgspec import Struct
from msgspec.structs import replace

from replay.graph.arrays import TaskGraph
from whatif.models.shape import RunShape, check_count
from whatif.transforms.base import Applied, Context
from whatif.transforms.relayout.apply import relayout


class MicroBatches(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="micro_batches",
):
    """Cut what a replica computes in a step into another number of micro-batches."""

    count: int

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        check_count(self.count, "micro-batches")

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--micro-batches {self.count}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run of that batch.

        Raises:
            ScenarioError: the run does not tell enough for it.
        """
        return relayout(graph, context, self._edit, _label)

    def _edit(self, target: RunShape) -> RunShape:
        before = target.batch
        samples = (before.samples or 1.0) * before.micro_batches / self.count
        batch = replace(before, micro_batches=self.count, samples=samples)
        return replace(target, batch=target.batch if self.count == before.micro_batches else batch)


def _label(before: RunShape, after: RunShape) -> str:
    return (
        f"micro-batches {before.batch.micro_batches} -> {after.batch.micro_batches}, the step's "
        "samples stay"
    )
