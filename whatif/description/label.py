"""The door: where every task of a run belongs, and the model that it computes."""

from dataclasses import dataclass, field

from replay.graph.arrays import TaskGraph
from whatif.description.described import Finding
from whatif.description.file import Said
from whatif.description.labels import Labels, unlabelled
from whatif.models.shape import ModelShape
from whatif.parallelism import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Labels and what they tell of the model."""

    labels: Labels
    model: ModelShape = field(default_factory=ModelShape)
    micro_batches: dict[int, int] = field(default_factory=dict)
    """Forward passes of a step, by rank in the files."""
    samples: float | None = None
    """Of a micro-batch."""
    sequence: int | None = None
    """Tokens of a sample, as one rank sees them."""
    rank_layers: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Layers that each rank in the files computes, in its own count from 0, in order."""
    recomputed: bool = False
    """Forward runs again inside backward."""
    findings: tuple[Finding, ...] = ()
    doubts: tuple[str, ...] = ()


def label(graph: TaskGraph, layout: Layout, said: Said | None = None) -> Labelled:
    """Say of every task where it belongs.

    Args:
        graph: of a run.
        layout: what its communicators are for.
        said: what a person says of the run.
    """
    del layout, said
    return Labelled(labels=unlabelled(graph.n_tasks))
