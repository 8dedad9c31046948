"""Parameters of a new stage over those of the recorded rank whose lanes it has."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ingest.errors import UsageError
from whatif.models.pipeline.terms import pipeline_of
from whatif.models.shape import ModelShape
from whatif.models.transformer.parameters import held_of
from whatif.tape.segments import Program
from whatif.transforms.relayout.parts import Ask
from whatif.transforms.relayout.programs import stage_layers


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Parameters of a new rank's stage over those of the recorded rank that it is like."""

    whole: float
    beside_mean: float
    """The same, each over the mean of the stages of its run."""


def shares_of(programs: Sequence[Program], ask: Ask) -> Mapping[int, Share]:
    """By new rank; what the optimizer updates, and sharded state exchanges, grows with it."""
    stages = ask.described.stage_of_rank
    recorded = ask.described.stage_layers
    before = [
        parameters_of(ask.before.model, layers, first=at == 0, last=at == len(recorded) - 1)
        for at, layers in enumerate(recorded)
    ]
    after = _new_stages(ask)
    mean = [sum(each) / len(each) for each in (before, after)]
    found = {}
    for program in programs:
        old = before[min(stages.get(program.like, 0), len(before) - 1)]
        new = after[program.stage]
        whole = new / old if old else 1.0
        found[program.rank] = Share(
            whole=whole, beside_mean=whole * mean[0] / mean[1] if mean[1] else 1.0
        )
    return found


def _new_stages(ask: Ask) -> list[float]:
    pipeline = pipeline_of(ask.target)
    found = []
    for stage, chunks in enumerate(stage_layers(ask)):
        places = {pipeline.place(stage, chunk) for chunk in range(pipeline.chunks_per_rank)}
        layers = [layer for chunk in chunks for layer in chunk]
        last = pipeline.depth - 1 in places
        found.append(parameters_of(ask.target.model, layers, first=0 in places, last=last))
    return found


def parameters_of(model: ModelShape, layers: Iterable[int], *, first: bool, last: bool) -> float:
    """Of some layers, with the embedding and the head; in layers where sizes are not known."""
    numbers = tuple(layers)
    n_dense = len(numbers)
    if model.experts is not None:
        n_dense = sum(layer < model.dense_layers for layer in numbers)
    try:
        return held_of(
            model,
            dense=n_dense,
            with_experts=len(numbers) - n_dense,
            has_embedding=first,
            has_head=last,
        ).total
    except UsageError:
        return float(len(numbers))
