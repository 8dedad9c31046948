"""Which collectives carry gradients, and in what order their buckets are reduced."""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import CollectiveKind, Phase, TaskKind
from replay.graph.arrays import Bool, Int64, TaskGraph
from whatif.parallelism import REPLICATED, Axis, layout_of
from whatif.transforms.reach import changeable

REDUCTIONS = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER)
UNCLEAR = (Axis.UNCLEAR, Axis.WORLD)
NO_GRADIENTS = (
    "no collective of this run is known to reduce gradients: no communicator of replicas reduces "
    "in the backward pass or by the optimizer"
)


def gradient_reductions(graph: TaskGraph) -> Bool:
    """Per collective: it reduces gradients, as far as communicators and phases tell.

    All-reduces and reduce-scatters among replicas (`whatif/parallelism.py`) that are not in the
    forward pass. Where it is not clear what a communicator is for, or it has all ranks, those of
    the backward pass or the optimizer, and on hosts those of ranks that copy gradients into DDP's
    buckets.
    """
    calls, tasks = graph.collectives, graph.tasks
    reduces: Bool = np.isin(calls.kind, REDUCTIONS) & (calls.size_bytes != 0) & changeable(graph)
    if not reduces.any():
        return reduces
    transfer = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)
    of = [np.zeros(len(calls.kind), bool) for _ in Phase]
    for phase in Phase:
        of[phase][tasks.collective[transfer[tasks.phase[transfer] == phase]]] = True
    late = of[Phase.BACKWARD] | of[Phase.OPTIMIZER]
    with_ddp = np.zeros(len(calls.kind), bool)
    copies = np.isin(tasks.rank[transfer], graph.gradients.rank)
    with_ddp[tasks.collective[transfer[copies]]] = True
    axis = np.array([role.axis for role in layout_of(graph).roles], object)[calls.group]
    replicas = np.isin(axis, REPLICATED) & ~of[Phase.FORWARD]
    unclear = np.isin(axis, UNCLEAR) & (late | (with_ddp & calls.on_host & ~of[Phase.FORWARD]))
    found: Bool = reduces & (replicas | unclear)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """Buckets of one communicator, kind and element type in one step, in the order of launch."""

    calls: Int64
    """Collectives."""
    ranks: tuple[int, ...]
    """Members in the files; the same for all buckets."""
    transfer: Int64
    """Task of each member, shape (ranks, calls); the one before it is its arrival."""
    sizes: Int64
    """Bytes of the buckets."""

    @property
    def ends(self) -> Int64:
        """Bytes up to the end of each bucket."""
        return np.cumsum(self.sizes)


def sequences(graph: TaskGraph, chosen: Bool) -> tuple[list[Sequence], int]:
    """The chosen collectives as sequences of buckets, and how many do not fit in any.

    A sequence has the same members at every bucket, sizes that are known, and nothing that was
    launched before the first step.
    """
    if not chosen.any():
        return [], 0
    tasks, calls = graph.tasks, graph.collectives
    transfer = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)
    transfer = transfer[chosen[tasks.collective[transfer]]]
    transfer = transfer[np.lexsort((transfer, tasks.rank[transfer], tasks.collective[transfer]))]
    number = tasks.collective[transfer]
    first = np.searchsorted(number, np.arange(len(calls.kind) + 1))
    step, met_ns = np.full(len(calls.kind), -1), np.zeros(len(calls.kind), np.int64)
    fixed = np.zeros(len(calls.kind), bool)
    fixed[number[tasks.fixed[transfer]]] = True
    step[number] = tasks.step[transfer]
    np.maximum.at(met_ns, number, tasks.ts_ns[transfer - 1])
    found, left = [], 0
    rows = np.flatnonzero(chosen)
    key = np.stack([calls.group[rows], step[rows], calls.kind[rows], calls.item_bytes[rows]])
    for each in np.unique(key, axis=1).T:
        mine = rows[(key == each[:, None]).all(axis=0)]
        mine = mine[np.argsort(met_ns[mine], kind="stable")]
        members = [transfer[first[call] : first[call + 1]] for call in mine]
        ranks = {tuple(tasks.rank[member].tolist()) for member in members}
        if len(ranks) > 1 or fixed[mine].any() or (calls.size_bytes[mine] < 0).any():
            left += len(mine)
            continue
        found.append(
            Sequence(
                calls=mine,
                ranks=next(iter(ranks)),
                transfer=np.stack(members, axis=1),
                sizes=calls.size_bytes[mine],
            )
        )
    return found, left
