"""Other activations computed again in backward."""

from msgspec import Struct
from msgspec.structs import replace

from replay.graph.arrays import TaskGraph
from whatif.models.shape import Recompute, RunShape
from whatif.transforms.base import Applied, Context
from whatif.transforms.relayout.apply import relayout


class Recomputation(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="recompute"
):
    """Keep fewer or more activations and compute the others again in backward."""

    what: Recompute

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--recompute {self.what}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run of that kind.

        Raises:
            ScenarioError: the run cannot have it, or does not tell enough for it.
        """
        return relayout(graph, context, self._edit, _label)

    def _edit(self, target: RunShape) -> RunShape:
        options = replace(target.options, recompute=self.what)
        return replace(target, options=options)


def _label(before: RunShape, after: RunShape) -> str:
    return f"recompute {before.options.recompute} -> {after.options.recompute}"
