"""Sequence parallelism beside tensor parallelism."""

from msgspec import Struct
from msgspec.structs import replace

from replay.graph.arrays import TaskGraph
from whatif.models.shape import RunShape
from whatif.transforms.base import Applied, Context
from whatif.transforms.relayout.apply import relayout


class SequenceParallel(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="sp"
):
    """Divide along the sequence what tensor parallelism leaves whole."""

    @property
    def flag(self) -> str:
        """As typed."""
        return "--sp"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run of that kind.

        Raises:
            ScenarioError: the run cannot have it, or does not tell enough for it.
        """
        return relayout(graph, context, _edit, _label)


def _edit(target: RunShape) -> RunShape:
    degrees = replace(target.degrees, sp=True)
    return replace(target, degrees=degrees)


def _label(_: RunShape, __: RunShape) -> str:
    return "sequence parallel"
