"""Which transfers go through the same link, and how long each takes there alone.

A link is what the transfers of one rank go through: the scale-up link or the network card of a
device, the network of a process for collectives on its host. A send and a receive over the host
count where they are received, and both directions between two ranks are one link: on links of 50
Mbit/s the second of two messages in opposite directions arrived after twice the time of the first
(57 and 29 ms), since the acknowledgements of one wait behind the bytes of the other.
"""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import TaskKind
from replay.engine.sharing import alone_times, shared_ends
from replay.graph.arrays import NONE, Float64, Int64, TaskGraph
from whatif.transforms.base import Context
from whatif.transforms.host_transfers import PAIRED, sends_seen_elsewhere
from whatif.transforms.machine import known
from whatif.transforms.reach import Level, levels

INSIDE, ACROSS, ON_HOST, BETWEEN_TWO = range(4)
"""Links of a rank: scale-up, network card, of its host; and the one between two ranks."""
TURNS, SAME_WEIGHT = 30, 1e-6
"""Without known latency every weight is 1 at once; else a few turns bring them near."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """Transfers in the order of their links and starts."""

    order: Int64
    first: Int64
    start_ns: Float64

    @classmethod
    def of(cls, link: Int64, start_ns: Float64) -> "Jobs":
        """Jobs by their links and starts, given in any order."""
        order = np.lexsort((np.arange(len(link)), start_ns, link))
        first = np.searchsorted(link[order], np.arange(int(link.max()) + 2))
        return cls(order, first.astype(np.int64), np.ascontiguousarray(start_ns[order]))

    def alone(self, end_ns: Float64, latency_ns: Float64) -> tuple[Float64, Float64]:
        """Time that each would have taken alone, ns, and its weight then.

        The weight follows from the time alone, and that from all weights: found by turns.
        """
        weight = weight_of(latency_ns, end_ns - self._as_given(self.start_ns) - latency_ns)
        for _ in range(TURNS):
            alone_ns = self._alone(end_ns, weight)
            found = weight_of(latency_ns, np.maximum(alone_ns - latency_ns, 0.0))
            if np.abs(found - weight).max(initial=0.0) <= SAME_WEIGHT:
                break
            weight = (weight + found) / 2
        return self._alone(end_ns, weight), weight

    def _alone(self, end_ns: Float64, weight: Float64) -> Float64:
        alone_ns = np.zeros(len(self.order))
        alone_times(self.first, self.start_ns, end_ns[self.order], weight[self.order], alone_ns)
        return self._as_given(alone_ns)

    def shared(self, alone_ns: Float64, weight: Float64) -> Float64:
        """End of each beside the others, ns."""
        end_ns = np.zeros(len(self.order))
        shared_ends(self.first, self.start_ns, alone_ns[self.order], weight[self.order], end_ns)
        return self._as_given(end_ns)

    def _as_given(self, ordered: Float64) -> Float64:
        given = np.empty_like(ordered)
        given[self.order] = ordered
        return given


def weight_of(latency_ns: Float64, bytes_ns: Float64) -> Float64:
    """Part of its time alone that a transfer is on the link."""
    alone_ns = latency_ns + bytes_ns
    return np.divide(bytes_ns, alone_ns, out=np.zeros_like(alone_ns), where=alone_ns > 0)


def shared_links(graph: TaskGraph) -> tuple[Int64, Int64]:
    """Transfers on links with more than one lane, and the number of each one's link."""
    task = np.flatnonzero(graph.tasks.kind == TaskKind.TRANSFER)
    task = task[~sends_seen_elsewhere(graph, task)]
    link = link_numbers(graph, task)
    lane = np.unique(np.stack([link, graph.tasks.lane[task]], axis=1), axis=0)
    n_lanes = np.bincount(lane[:, 0], minlength=1)
    kept = n_lanes[link] > 1
    return task[kept], np.unique(link[kept], return_inverse=True)[1].astype(np.int64)


def link_numbers(graph: TaskGraph, task: Int64) -> Int64:
    """Number of the link of each transfer."""
    key = _link_keys(graph, task)
    joint = np.zeros(len(task), np.int64)
    for column in key.T:
        values, number = np.unique(column, return_inverse=True)
        joint = joint * len(values) + number
    return np.unique(joint, return_inverse=True)[1].astype(np.int64)


def _link_keys(graph: TaskGraph, task: Int64) -> Int64:
    """Per transfer what names its link: rank, device (-1: host) and level, or two ranks."""
    tasks = graph.tasks
    device = np.array([lane.device for lane in graph.lanes], np.int64)[tasks.lane[task]]
    number = tasks.collective[task]
    machine = known(graph, Context())
    inside = levels(graph, machine.links, machine.places) < Level.NIC
    level = np.where(inside, INSIDE, ACROSS)[number]
    key = np.stack([tasks.rank[task].astype(np.int64), device, level], axis=1)
    host = graph.collectives.on_host[number]
    key[host, 2] = ON_HOST
    pair = host & np.isin(graph.collectives.kind[number], PAIRED)
    key[pair, :2] = _pairs(graph)[number[pair]]
    key[pair, 2] = BETWEEN_TWO
    return key


def _pairs(graph: TaskGraph) -> Int64:
    """Lowest and highest rank of each collective, shape (collectives, 2)."""
    tasks = graph.tasks
    arrive = np.flatnonzero(tasks.kind == TaskKind.ARRIVE)
    pairs = np.full((len(graph.collectives.kind), 2), NONE, np.int64)
    pairs[:, 0] = np.iinfo(np.int64).max
    np.minimum.at(pairs[:, 0], tasks.collective[arrive], tasks.rank[arrive])
    np.maximum.at(pairs[:, 1], tasks.collective[arrive], tasks.rank[arrive])
    return pairs
