"""How full experts get."""

from msgspec import Struct
from msgspec.structs import replace

from ingest.errors import UsageError
from replay.graph.arrays import TaskGraph
from whatif.models.shape import MOST_FACTOR, RunShape
from whatif.transforms.base import Applied, Context
from whatif.transforms.relayout.apply import relayout
from whatif.transforms.relayout.refuse import no_experts


class Imbalance(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="imbalance"
):
    """Route X times the mean to the fullest rank of experts."""

    factor: float

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        if not 1 <= self.factor <= MOST_FACTOR:
            raise UsageError(f"an imbalance of {self.factor:g}", hint="1 is balanced, 1.3 usual")

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--imbalance {self.factor:g}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run with that routing.

        Raises:
            ScenarioError: the run has no experts, or does not tell enough of them.
        """
        return relayout(graph, context, self._edit, self._label)

    def _edit(self, target: RunShape) -> RunShape:
        _need_experts(target)
        return replace(target, options=replace(target.options, imbalance=self.factor))

    def _label(self, before: RunShape, _: RunShape) -> str:
        return f"imbalance of experts {before.options.imbalance:g} -> {self.factor:g}"


class Capacity(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="capacity"
):
    """Let an expert take at most X times the tokens of a balanced one; the others are dropped."""

    factor: float

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        if not 0 < self.factor <= MOST_FACTOR:
            raise UsageError(f"a capacity of {self.factor:g}", hint="1.25 is usual")

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--capacity {self.factor:g}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run with that routing.

        Raises:
            ScenarioError: the run has no experts, or does not tell enough of them.
        """
        return relayout(graph, context, self._edit, self._label)

    def _edit(self, target: RunShape) -> RunShape:
        _need_experts(target)
        return replace(target, options=replace(target.options, capacity=self.factor))

    def _label(self, _: RunShape, __: RunShape) -> str:
        return f"capacity of an expert {self.factor:g}"


def _need_experts(target: RunShape) -> None:
    if target.model.experts is None:
        raise no_experts(target.model)
