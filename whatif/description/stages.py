"""Pipeline stages: which rank is which, and which layers of the model each holds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from replay.graph.arrays import TaskGraph
from whatif.description.labels import Labels
from whatif.models.shape import Degrees
from whatif.parallelism import Axis, Layout

StageLayers = tuple[tuple[int, ...], ...]


def stages_of(
    ranks: Iterable[int], layout: Layout, told: Mapping[int, int], stages: int
) -> dict[int, int]:
    """Stage of each rank: as its messages tell, else its place in the communicator of stages.

    Args:
        ranks: in the files.
        layout: of the run.
        told: by rank, where messages tell it.
        stages: of the pipeline.
    """
    found = {}
    for rank in ranks:
        place = layout.coordinates.get(rank, {}).get(Axis.PIPELINE, 0)
        found[rank] = min(told.get(rank, place), stages - 1)
    return found


def stage_layers_of(
    rank_layers: Mapping[int, Sequence[int]],
    stage_of_rank: Mapping[int, int],
    degrees: Degrees,
    layers: int | None,
) -> StageLayers:
    """Layers of the model on each stage, chunk after chunk.

    Args:
        rank_layers: layers of each rank in its own count.
        stage_of_rank: of the ranks in the files.
        degrees: pipeline stages, and chunks on each.
        layers: of the model, as said or known; spread evenly over stages that were not recorded.
    """
    counts: dict[int, int] = {}
    for rank, mine in rank_layers.items():
        counts[stage_of_rank[rank]] = max(len(mine), counts.get(stage_of_rank[rank], 0))
    stages, chunks = degrees.pp, degrees.virtual_stages
    missing = [stage for stage in range(stages) if stage not in counts]
    left = (layers or 0) - sum(counts.values())
    usual = max(counts.values(), default=0) if layers is None else 0
    for place, stage in enumerate(missing):
        share = max(left, 0) * (place + 1) // len(missing) - max(left, 0) * place // len(missing)
        counts[stage] = usual or share
    found: list[list[int]] = [[] for _ in range(stages)]
    first = 0
    for chunk in range(chunks):
        for stage in range(stages):
            size = counts[stage] * (chunk + 1) // chunks - counts[stage] * chunk // chunks
            found[stage] += range(first, first + size)
            first += size
    return tuple(tuple(mine) for mine in found)


def whole_model(
    graph: TaskGraph,
    labels: Labels,
    stage_of_rank: Mapping[int, int],
    stage_layers: StageLayers,
) -> Labels:
    """Labels whose layers are counted over the model, of labels that count them on each rank."""
    if len(stage_layers) == 1:
        return labels
    layer = labels.layer.copy()
    for rank, stage in stage_of_rank.items():
        of_model = np.array([*stage_layers[stage], -1], np.int32)
        mine = (graph.tasks.rank == rank) & (layer >= 0)
        own = layer[mine]
        layer[mine] = np.where(
            own < len(of_model) - 1, of_model[np.minimum(own, len(of_model) - 1)], -1
        )
    return replace(labels, layer=layer)
