"""Larger or smaller micro-batches."""

from msgspec import Struct
from msgspec.structs import replace

from replay.graph.arrays import TaskGraph
from whatif.models.shape import UNSAID_SAMPLES, RunShape, check_factor
from whatif.transforms.base import Applied, Context
from whatif.transforms.relayout.apply import relayout


class BatchScale(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="batch_scale",
):
    """Micro-batches of X times the recorded samples."""

    factor: float

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        check_factor(self.factor)

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--batch-scale {self.factor:g}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run of that size.

        Raises:
            ScenarioError: the run does not tell enough for it.
        """
        return relayout(graph, context, self._edit, self._label)

    def _edit(self, target: RunShape) -> RunShape:
        samples = (target.batch.samples or UNSAID_SAMPLES) * self.factor
        return replace(target, batch=replace(target.batch, samples=samples))

    def _label(self, _: RunShape, __: RunShape) -> str:
        return f"samples of a micro-batch x{self.factor:g}"
