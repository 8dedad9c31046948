"""What lies on each pipeline stage: layers, embedding, head, micro-batches in flight."""

from dataclasses import dataclass
from functools import lru_cache

from whatif.models.pipeline.costs import held_of_stage
from whatif.models.pipeline.partition import partition
from whatif.models.pipeline.terms import Pipeline, pipeline_of
from whatif.models.shape import RunShape, Schedule
from whatif.models.transformer.dims import required
from whatif.models.transformer.parameters import Held, held_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage, as far as memory goes."""

    number: int
    dense_layers: int
    expert_layers: int
    has_embedding: bool
    has_head: bool
    held: Held
    """Parameters."""
    in_flight: float
    """Micro-batches whose activations its layers keep at once; a part where some chunks of its
    layers keep one more than others."""
    heads_in_flight: int
    """Micro-batches whose logits are kept at once."""

    @property
    def layers(self) -> int:
        """Of either kind."""
        return self.dense_layers + self.expert_layers


def stages_of(shape: RunShape) -> tuple[Stage, ...]:
    """All stages.

    Raises:
        UsageError: the number of layers is not known.
        ScenarioError: layers or micro-batches do not divide as the schedule needs.
    """
    pipeline, model = pipeline_of(shape), shape.model
    layers = int(required(model.layers, "layers"))
    chunks = partition(layers, pipeline)
    return tuple(_stage(shape, pipeline, number, chunks[number]) for number in range(len(chunks)))


def _stage(
    shape: RunShape, pipeline: Pipeline, number: int, chunks: tuple[tuple[int, ...], ...]
) -> Stage:
    model = shape.model
    own = [layer for chunk in chunks for layer in chunk]
    experts = 0
    if model.experts is not None:
        experts = sum(layer >= model.dense_layers for layer in own)
    places = [pipeline.place(number, chunk) for chunk in range(len(chunks))]
    has_embedding, has_head = 0 in places, pipeline.depth - 1 in places
    dense = len(own) - experts
    gpipe = pipeline.kind is Schedule.GPIPE
    return Stage(
        number=number,
        dense_layers=dense,
        expert_layers=experts,
        has_embedding=has_embedding,
        has_head=has_head,
        held=held_of(
            model,
            dense=dense,
            with_experts=experts,
            has_embedding=has_embedding,
            has_head=has_head,
        ),
        in_flight=_in_flight(pipeline, number) / len(chunks),
        heads_in_flight=pipeline.micro_batches if gpipe else 1,
    )


@lru_cache(maxsize=4096)
def _in_flight(pipeline: Pipeline, number: int) -> int:
    """Kept, as searches ask for the same pipelines again and again, and DualPipe's are counted."""
    return held_of_stage(pipeline, number)
