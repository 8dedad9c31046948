"""Fewer ranks: those that stand for the ones to be stay, the others hold nobody up any more."""

from dataclasses import replace

import numpy as np

from ingest.vocab import TaskKind
from replay.graph.arrays import Bool, Boundaries, Int64, TaskGraph
from replay.graph.csr import EdgeList, by_destination, listed_edges
from whatif.models.bound import Bound


def roles_kept(lateness_ns: Int64, count: int, bound: Bound) -> Int64:
    """Places of the `count` members that stand for as many drawn from all, ascending.

    Nominal: those at the expected order statistics of a draw, i (n + 1) / (count + 1): of eight one
    is the fourth or fifth, two are the third and sixth. The bounds are the earliest and the latest.

    Args:
        lateness_ns: of each member, shape (n,), n >= count.
        count: to keep.
        bound: which ones.
    """
    order = np.argsort(lateness_ns, kind="stable")
    n_all = len(order)
    if bound is Bound.LOW:
        chosen = order[:count]
    elif bound is Bound.HIGH:
        chosen = order[n_all - count :]
    else:
        places = np.arange(1, count + 1) * (n_all + 1) / (count + 1)
        chosen = order[np.floor(places + 0.5).astype(np.int64) - 1]
    kept: Int64 = np.sort(chosen)
    return kept


def without_ranks(graph: TaskGraph, gone: frozenset[int]) -> TaskGraph:
    """The graph without some ranks: no step ends with them and nobody waits for them.

    Their tasks keep their places, so that numbers of tasks mean the same as before, and run on
    beside the others.
    """
    if not gone:
        return graph
    tasks = graph.tasks
    loose = np.isin(tasks.rank, np.array(sorted(gone), np.int64))
    return replace(
        graph,
        edges=by_destination(_edges(graph, loose), graph.n_tasks),
        boundaries=_boundaries(graph.boundaries, gone),
        ranks=tuple(info for info in graph.ranks if info.rank not in gone),
    )


def _edges(graph: TaskGraph, loose: Bool) -> EdgeList:
    """All edges but those that lead from ranks that are gone to others and to their meetings."""
    edges, tasks = listed_edges(graph), graph.tasks
    shared = np.zeros(len(graph.collectives.kind) + 1, bool)
    shared[tasks.collective[~loose & (tasks.kind == TaskKind.ARRIVE)]] = True
    meeting = (tasks.kind == TaskKind.MEET) & shared[tasks.collective]
    of_others = ~loose & (tasks.kind != TaskKind.MEET)
    return edges.select(~(loose[edges.src] & (of_others | meeting)[edges.dst]))


def _boundaries(bounds: Boundaries, gone: frozenset[int]) -> Boundaries:
    width = bounds.n_steps + 1
    kept = np.array([rank not in gone for rank in bounds.ranks], bool)
    rows = np.repeat(kept, width)
    count = np.diff(bounds.start)
    return Boundaries(
        n_steps=bounds.n_steps,
        ranks=tuple(rank for rank in bounds.ranks if rank not in gone),
        start=np.concatenate([np.zeros(1, np.int64), np.cumsum(count[rows])]),
        task=bounds.task[np.repeat(rows, count)],
        floor_ns=bounds.floor_ns[rows],
    )
