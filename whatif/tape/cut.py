"""A graph and its labels -> its segments."""

from replay.graph.arrays import TaskGraph
from whatif.description.labels import Labels
from whatif.tape.segments import Tape


def cut(graph: TaskGraph, labels: Labels) -> Tape:
    """Cut the threads of every rank where the labels change, and give device work to its callers.

    Args:
        graph: of a run.
        labels: of its tasks.
    """
    raise NotImplementedError
