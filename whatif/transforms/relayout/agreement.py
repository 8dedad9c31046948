"""Ranks whose passes were told apart alike, and those for which others must stand.

Members of a collective run it in the same pass of the same layer. Where the labels of a rank say
otherwise, copies of its passes would meet others than they did, or wait for one another for ever.
"""

from collections.abc import Sequence

import numpy as np

from ingest.vocab import TaskKind
from replay.graph.arrays import Int64
from whatif.description.labels import Pass
from whatif.tape.segments import Tape
from whatif.transforms.relayout.columns import Column
from whatif.transforms.relayout.messages import PAIRED
from whatif.transforms.relayout.passes import Recorded

Told = tuple[str, ...]


def standing_in(
    tape: Tape, columns: Sequence[Column], passes: Sequence[Recorded]
) -> tuple[tuple[int, ...], Told]:
    """For each pipeline the number of the one that stands for it, itself where it can; what to say.

    The reference is the most complete pipeline, among equals the one that agrees with most others.
    Who disagrees with it, or has fewer passes of layers, is replaced.
    """
    rank, call, place = _members(tape)
    of_column = {rank: number for number, column in enumerate(columns) for rank in column.ranks}
    column = np.array([of_column.get(one, -1) for one in rank.tolist()], np.int64)
    mine = column >= 0
    differs = _differences(column[mine], call[mine], place[mine], len(columns))
    complete = np.array([one.n_layer_passes for one in passes], np.int64)
    alike = (differs > 0).sum(axis=1)
    reference = int(np.lexsort((alike, -complete))[0])
    odd = np.flatnonzero((differs[reference] > 0) | (complete < complete[reference]))
    sources = tuple(reference if number in odd else number for number in range(len(columns)))
    if not len(odd):
        return sources, ()
    names = ", ".join(str(rank) for number in odd.tolist() for rank in columns[number].ranks)
    like = ", ".join(str(rank) for rank in columns[reference].ranks)
    told = (
        f"passes of rank {names} were not told apart like those that it works with: rank {like} "
        "stands for it"
    )
    return sources, (told,)


def _members(tape: Tape) -> tuple[Int64, Int64, Int64]:
    """Rank, collective and place of each member of a collective that is no message.

    A place is a number of step, part, direction, layer and micro-batch.
    """
    tasks, calls, segments = tape.graph.tasks, tape.graph.collectives, tape.segments
    task = np.flatnonzero((tasks.kind == TaskKind.TRANSFER) & (tape.segment >= 0))
    paired = np.isin(calls.kind[tasks.collective[task]], [int(kind) for kind in PAIRED])
    task = task[~paired]
    backward = ~np.isin(segments.direction, (Pass.NONE, Pass.FORWARD))
    columns = (segments.step, segments.part, backward, segments.layer, segments.micro_batch)
    _, number = np.unique(np.stack(columns), axis=1, return_inverse=True)
    return (
        tasks.rank[task].astype(np.int64),
        tasks.collective[task].astype(np.int64),
        number.ravel()[tape.segment[task]].astype(np.int64),
    )


def _differences(column: Int64, call: Int64, place: Int64, n_columns: int) -> Int64:
    """Collectives that two pipelines run at different places; shape (pipelines, pipelines)."""
    differs = np.zeros((n_columns, n_columns), np.int64)
    order = np.lexsort((column, call))
    bounds = np.flatnonzero(np.diff(call[order])) + 1
    for members in np.split(order, bounds):
        if (place[members] == place[members[:1]]).all():
            continue
        unlike = place[members][:, None] != place[members][None, :]
        np.add.at(differs, np.ix_(column[members], column[members]), unlike)
    return differs
