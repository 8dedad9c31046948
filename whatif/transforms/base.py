"""What a transform gets and gives back."""

from dataclasses import dataclass, replace
from typing import Protocol

from ingest.units import BytesPerSecond
from replay.graph.arrays import Bool, Int64, TaskGraph
from whatif.models.bound import Bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a transform must know beside the graph."""

    bound: Bound = Bound.NOMINAL
    link_bytes_per_s: BytesPerSecond | None = None
    """Scale-up rate that an earlier transform of the stack has set."""
    recorded_latency_ns: Int64 | None = None
    """Per collective, latency in the recording as a transform was told; None: as in the graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A changed graph and what was taken for granted on the way."""

    graph: TaskGraph
    label: str
    """The change as it was understood."""
    context: Context
    """For the next transform of the stack."""
    assumptions: tuple[str, ...] = ()
    no_effect: str | None = None
    """Why the graph is the same as before, in words; None when it was changed."""


class Change(Protocol):
    """A what-if."""

    @property
    def flag(self) -> str:
        """The command-line option that says the same."""

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the change, on top of those made before."""


def with_durations(graph: TaskGraph, dur_ns: Int64) -> TaskGraph:
    """The graph with other durations; all else is shared."""
    return replace(graph, tasks=replace(graph.tasks, dur_ns=dur_ns))


def free(graph: TaskGraph, selected: Bool) -> Bool:
    """The selected tasks that a scenario may change."""
    chosen: Bool = selected & ~graph.tasks.fixed
    return chosen
