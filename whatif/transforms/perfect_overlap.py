"""Compute never waits for communication: the most that hiding transfers can give."""

import numpy as np
from msgspec import Struct

from ingest.vocab import EdgeKind, LaneKind, TaskKind
from replay.engine.places import places
from replay.graph.arrays import Bool, Int64, TaskGraph
from replay.graph.csr import EdgeList, concatenate, destinations
from whatif.transforms.base import Applied, Context
from whatif.transforms.devices import is_communication
from whatif.transforms.rewire import edges_between, previous_in_lane, rewired
from whatif.transforms.select import is_compute

A_BOUND = "a bound, which no run reaches: not judged"


class PerfectOverlap(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="perfect_overlap",
):
    """Kernels that compute and host threads do not wait for transfers; transfers still take time.

    A transfer begins when what it sends is there and the one before it on its stream has ended, and
    a step ends when its transfers have. So the step is at least the longer of the two chains.
    Threads wait for transfers between hosts once a step, where they waited last.
    """

    @property
    def flag(self) -> str:
        """As typed."""
        return "--perfect-overlap"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Take the edges from transfers to kernels and host waits out."""
        label = "perfect overlap"
        waits = _waits(graph)
        if not waits.any():
            reason = "no kernel and no host thread waits for a transfer"
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        return Applied(
            graph=rewired(
                graph, ~waits, concatenate([_kept_order(graph, waits), _at_the_end(graph, waits)])
            ),
            label=label,
            context=context,
            known_errors=(A_BOUND,),
            assumptions=(
                "perfect overlap is an upper bound: compute goes on without the data that "
                "transfers bring; only the transfers' own time and order limit the step",
            ),
        )


def _waits(graph: TaskGraph) -> Bool:
    """Edges by which kernels and host threads wait for a transfer."""
    tasks, dst = graph.tasks, destinations(graph)
    source = is_communication(graph) & (tasks.kind != TaskKind.ARRIVE)
    waiting = is_compute(graph) | (tasks.kind == TaskKind.HOST_WAIT)
    waits: Bool = source[graph.edges.src] & (waiting & ~tasks.fixed)[dst]
    return waits


def _at_the_end(graph: TaskGraph, waits: Bool) -> EdgeList:
    """Threads wait for transfers between hosts at their last such wait of the step.

    Steps end with their threads, not with links: one could end before what it sends else.
    """
    tasks, edges, dst = graph.tasks, graph.edges, destinations(graph)
    links = np.array([lane.kind == LaneKind.LINK for lane in graph.lanes] + [False], bool)
    mine = np.flatnonzero(waits & links[tasks.lane[edges.src]] & (edges.kind == EdgeKind.HOST_SYNC))
    wait, place = dst[mine], places(graph)
    order = np.lexsort((place[wait], tasks.step[wait], tasks.lane[wait]))
    lane, step = tasks.lane[wait][order], tasks.step[wait][order]
    ends = np.append((lane[1:] != lane[:-1]) | (step[1:] != step[:-1]), True)[: len(order)]
    last = wait[order][ends][np.cumsum(ends) - ends]
    src = edges.src[mine][order].astype(np.int64)
    forward = place[src] < place[last]
    return edges_between(
        src[forward], last[forward], EdgeKind.HOST_SYNC, edges.lag_ns[mine][order][forward]
    )


def _kept_order(graph: TaskGraph, waits: Bool) -> EdgeList:
    """On streams that carry both, kernels follow kernels and transfers follow transfers."""
    tasks = graph.tasks
    dst = destinations(graph)
    cut = waits & (graph.edges.kind == EdgeKind.STREAM_ORDER)
    mixed = np.unique(tasks.lane[dst[cut]])
    ids = np.flatnonzero(np.isin(tasks.lane, mixed))
    comm = is_communication(graph)[ids]
    place = places(graph)[ids]
    lane = tasks.lane[ids].astype(np.int64)
    moves = comm & (tasks.kind[ids] != TaskKind.ARRIVE)
    begins = comm & (tasks.kind[ids] != TaskKind.TRANSFER)
    lists = []
    lag_ns = np.zeros(graph.n_tasks, np.int64)
    lag_ns[dst[cut]] = np.maximum(graph.edges.lag_ns[cut], 0)
    follows = np.zeros(graph.n_tasks, bool)
    follows[dst[cut]] = True
    for sources, waiting in ((~comm, follows[ids]), (moves, begins)):
        before = previous_in_lane(lane, place, sources)
        known = waiting & (before >= 0)
        lists.append(_edges(ids, before, known, lag_ns))
    return concatenate(lists)


def _edges(ids: Int64, before: Int64, known: Bool, lag_ns: Int64) -> EdgeList:
    dst = ids[known]
    return edges_between(ids[before[known]], dst, EdgeKind.STREAM_ORDER, lag_ns[dst])
