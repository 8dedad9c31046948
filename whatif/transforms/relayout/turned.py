"""Which segments of a recorded pass run in a turn of the new schedule, and as what."""

from collections.abc import Sequence
from dataclasses import dataclass

from replay.graph.arrays import Int8
from whatif.description.labels import Part, Pass
from whatif.models.pipeline.terms import Work
from whatif.models.shape import Recompute
from whatif.transforms.relayout.parts import Ask

Chosen = tuple[list[int], list[int]]
"""Segments, and the direction of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turning:
    """How backward is put together from what was recorded."""

    directions: Sequence[int]
    """Pass of each recorded segment."""
    recorded_split: bool
    """Gradients of inputs and of weights are told apart in the recording."""
    again: bool
    """Forward is run again before a layer's backward, made from its forward."""
    keep_again: bool
    """What was recorded as run again stays."""
    layers_again: int | None
    """First layers of a stage that run again; None: all."""

    @classmethod
    def of(cls, directions: Int8, ask: Ask) -> "Turning":
        """As the target says."""
        before, after = ask.before.options, ask.target.options
        same = (before.recompute, before.recompute_layers) == (
            after.recompute,
            after.recompute_layers,
        )
        return cls(
            directions=directions.tolist(),
            recorded_split=bool((directions == Pass.BACKWARD_WEIGHT).any()),
            again=not same and after.recompute is not Recompute.NONE,
            keep_again=same,
            layers_again=after.recompute_layers,
        )

    def forward(self, segments: Sequence[int]) -> Chosen:
        """A forward pass, as recorded."""
        return list(segments), [self.directions[one] for one in segments]

    def runs_again(self, part: Part, layer: int, layers: Sequence[int]) -> bool:
        """The forward of a layer of a stage runs again, and is made for it."""
        of_layers = part is Part.LAYER and self.again
        return of_layers and layer in layers[: self.layers_again]

    def recomputed(self, forward: Sequence[int]) -> Chosen:
        """A forward pass that is run again."""
        return list(forward), [int(Pass.RECOMPUTE)] * len(forward)

    def backward(self, segments: Sequence[int], work: Work, part: Part) -> Chosen:
        """What of a recorded backward pass runs in a turn.

        Of the embedding only weights have gradients.
        """
        chosen = [
            one for one in segments if self.keep_again or self.directions[one] != Pass.RECOMPUTE
        ]
        if work is Work.BACKWARD:
            return chosen, [self.directions[one] for one in chosen]
        weights = work is Work.BACKWARD_WEIGHT
        if part is Part.EMBEDDING:
            chosen = chosen if weights else []
            return chosen, [self.directions[one] for one in chosen]
        if self.recorded_split:
            chosen = [
                one for one in chosen if (self.directions[one] == Pass.BACKWARD_WEIGHT) == weights
            ]
            return chosen, [self.directions[one] for one in chosen]
        half = Pass.BACKWARD_WEIGHT if weights else Pass.BACKWARD_INPUT
        if weights:
            chosen = [one for one in chosen if self.directions[one] != Pass.RECOMPUTE]
        return chosen, [
            int(half) if self.directions[one] == Pass.BACKWARD else self.directions[one]
            for one in chosen
        ]
