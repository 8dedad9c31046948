"""Parameters of a new stage over those of the recorded rank whose lanes it has."""

from collections.abc import Iterable, Mapping, Sequence

from ingest.errors import UsageError
from whatif.models.shape import ModelShape
from whatif.models.transformer.parameters import (
    embedding_parameters,
    head_parameters,
    layer_parameters,
)
from whatif.tape.segments import Program
from whatif.transforms.relayout.parts import Ask
from whatif.transforms.relayout.programs import stage_layers
from whatif.transforms.relayout.structure import pipeline_of


def shares_of(programs: Sequence[Program], ask: Ask) -> Mapping[int, float]:
    """By new rank; what the optimizer updates, and sharded state exchanges, grows with it."""
    described = ask.described
    pipeline = pipeline_of(ask.target)
    layers = stage_layers(ask)
    recorded = [set(stage) for stage in described.stage_layers]
    last = len(recorded) - 1
    found = {}
    for program in programs:
        chunks = range(pipeline.chunks_per_rank)
        places = {pipeline.place(program.stage, chunk) for chunk in chunks}
        new = parameters_of(
            ask.target.model,
            (layer for chunk in layers[program.stage] for layer in chunk),
            first=0 in places,
            last=pipeline.depth - 1 in places,
        )
        stage = min(described.stage_of_rank.get(program.like, 0), last)
        old = parameters_of(ask.before.model, recorded[stage], first=stage == 0, last=stage == last)
        found[program.rank] = new / old if old else 1.0
    return found


def parameters_of(model: ModelShape, layers: Iterable[int], *, first: bool, last: bool) -> float:
    """Of some layers, with the embedding and the head; in layers where sizes are not known."""
    numbers = tuple(layers)
    try:
        dense = layer_parameters(model).total
        sparse = layer_parameters(model, has_experts=True).total if model.experts else dense
        table, head = embedding_parameters(model).total, head_parameters(model).total
    except UsageError:
        return float(len(numbers))
    n_dense = (
        sum(layer < model.dense_layers for layer in numbers) if model.experts else len(numbers)
    )
    held = n_dense * dense + (len(numbers) - n_dense) * sparse
    # A head without a table of its own keeps a copy of the embedding's on another stage.
    copied = table if last and model.tied and not first else 0.0
    return held + (table if first else 0.0) + (head if last else 0.0) + copied
