"""A question about variation: the step again and again, with the durations that it had."""

from typing import Annotated

from msgspec import Meta, Struct

from ingest.errors import UsageError
from replay.graph.arrays import TaskGraph
from whatif.transforms.base import Applied, Context

MOST = 10_000
MOST_SCALE = 100.0


class Jitter(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="jitter"
):
    """Replay the scenario `samples` times, each with durations drawn from those measured.

    It changes no task; the answer tells the spread of the step beside the prediction.
    """

    samples: Annotated[int, Meta(ge=1, le=MOST)]
    scale: Annotated[float, Meta(ge=0, le=MOST_SCALE)] = 1.0
    """How much of the measured variation: 0 is the prediction itself, 1 as measured, 2 twice as far
    from the median."""

    def __post_init__(self) -> None:
        """Hold the same bounds for the command line, which builds the struct directly."""
        if not (1 <= self.samples <= MOST and 0 <= self.scale <= MOST_SCALE):
            raise UsageError(
                f"`--jitter {self.samples}@{self.scale:g}` cannot be drawn",
                hint=f"up to {MOST:,} samples, {MOST_SCALE:g} times the variation: 200, 200@2",
            )

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--jitter {self.samples}" + ("" if self.scale == 1 else f"@{self.scale:g}")

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Leave the graph as it is: the samples are drawn of the whole stack."""
        noise = "" if self.scale == 1 else f", {self.scale:g} times the measured variation"
        return Applied(
            graph=graph, label=f"jitter of {self.samples:,} samples{noise}", context=context
        )
