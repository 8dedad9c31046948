"""A task graph -> what the run is."""

from replay.graph.arrays import TaskGraph
from whatif.description.described import Described, Kind
from whatif.description.file import Said
from whatif.description.labels import unlabelled
from whatif.models.shape import RunShape
from whatif.parallelism import layout_of


def describe(graph: TaskGraph, said: Said | None = None) -> Described:
    """Understand a run.

    Args:
        graph: of the run.
        said: what a person says of it; overrules what is found, field by field.
    """
    del said
    return Described(
        kind=Kind.UNKNOWN,
        shape=RunShape(),
        layout=layout_of(graph),
        labels=unlabelled(graph.n_tasks),
        stage_of_rank={info.rank: 0 for info in graph.ranks},
        stage_layers=((),),
    )
