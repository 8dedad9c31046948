"""Optimizer state on the host."""

from msgspec import Struct
from msgspec.structs import replace

from replay.graph.arrays import TaskGraph
from whatif.models.shape import RunShape
from whatif.transforms.base import Applied, Context
from whatif.transforms.relayout.apply import relayout


class Offload(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="offload"
):
    """Keep optimizer state, and do its work, on the host (ZeRO-Offload)."""

    @property
    def flag(self) -> str:
        """As typed."""
        return "--offload"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run of that kind.

        Raises:
            ScenarioError: the run cannot have it, or does not tell enough for it.
        """
        return relayout(graph, context, _edit, _label)


def _edit(target: RunShape) -> RunShape:
    options = replace(target.options, offload=True)
    return replace(target, options=options)


def _label(_: RunShape, __: RunShape) -> str:
    return "optimizer on the host"
