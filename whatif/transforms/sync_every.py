"""Local SGD: exchange between replicas every K steps."""

from msgspec import Struct
from msgspec.structs import replace

from replay.graph.arrays import TaskGraph
from whatif.models.shape import RunShape, check_count
from whatif.transforms.base import Applied, Context
from whatif.transforms.relayout.apply import relayout


class SyncEvery(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="sync_every",
):
    """Exchange gradients (parameters) of replicas only every K steps."""

    steps: int

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        check_count(self.steps, "steps between exchanges")

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--sync-every {self.steps}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run of that layout.

        Raises:
            ScenarioError: the run cannot have it, or does not tell enough for it.
        """
        return relayout(graph, context, self._edit, _label)

    def _edit(self, target: RunShape) -> RunShape:
        options = replace(target.options, sync_every=self.steps)
        return replace(target, options=options)


def _label(before: RunShape, after: RunShape) -> str:
    return f"steps between exchanges {before.options.sync_every} -> {after.options.sync_every}"
