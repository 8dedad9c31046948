"""The order of forward and backward on each rank, from the labels of its work."""

from collections import Counter

import numpy as np

from ingest.vocab import TaskKind
from replay.graph.arrays import TaskGraph
from whatif.description.labels import Labels
from whatif.models.places import Part, Pass

_LETTERS = {
    Pass.FORWARD: "F",
    Pass.BACKWARD: "B",
    Pass.BACKWARD_INPUT: "B",
    Pass.BACKWARD_WEIGHT: "W",
}


def both_ways(graph: TaskGraph, labels: Labels, first: int, last: int) -> bool:
    """The first and the last rank of a pipeline have embedding and head each: both ends feed it."""
    parts = {
        rank: set(labels.part[(graph.tasks.rank == rank) & (graph.tasks.step == 0)].tolist())
        for rank in (first, last)
    }
    return first != last and all({Part.EMBEDDING, Part.HEAD} <= mine for mine in parts.values())


def turns_of(graph: TaskGraph, labels: Labels) -> dict[int, tuple[str, int]]:
    """By rank, the order of its first step as letters, and how many turns a forward takes.

    A turn is a stretch of work in layers of one direction and micro-batch; a forward in several
    turns, with others between them, goes through several chunks of layers.
    """
    tasks = graph.tasks
    kernels = tasks.kind == TaskKind.KERNEL
    work = kernels if kernels.any() else tasks.kind == TaskKind.HOST_WORK
    chosen = work & (tasks.step == 0) & ~tasks.fixed & (labels.part == Part.LAYER)
    chosen &= (labels.micro_batch >= 0) & np.isin(labels.direction, [int(one) for one in _LETTERS])
    found = {}
    for info in graph.ranks:
        at = np.flatnonzero(chosen & (tasks.rank == info.rank))
        at = at[np.argsort(tasks.ts_ns[at], kind="stable")]
        if not len(at):
            continue
        keys = np.stack([labels.direction[at].astype(np.int64), labels.micro_batch[at]])
        begins = np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
        turns = [(Pass(direction), batch) for direction, batch in keys[:, begins].T.tolist()]
        forwards = Counter(batch for direction, batch in turns if direction is Pass.FORWARD)
        usual = Counter(forwards.values()).most_common(1)
        letters = "".join(_LETTERS[direction] for direction, _ in turns)
        found[info.rank] = (letters, usual[0][0] if usual else 1)
    return found
