"""Communication and compute of a device one after the other, never at the same time."""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from ingest.vocab import EdgeKind, TaskKind
from replay.engine.places import places
from replay.graph.arrays import Bool, Int64, TaskGraph
from replay.graph.csr import EdgeList, concatenate, destinations
from whatif.transforms.base import Applied, Context
from whatif.transforms.devices import computing, device_of_lane, is_communication
from whatif.transforms.rewire import NO_EDGES, edges_between, rewired

NOTHING_OVERLAPS = "no device has communication and compute on different streams"


class NoOverlap(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="no_overlap",
):
    """Kernels that compute and transfers of a device follow each other as they began."""

    @property
    def flag(self) -> str:
        """As typed."""
        return "--no-overlap"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Add edges between transfers and kernels of other streams, in the recorded order.

        A transfer stands where it began to move data: while its members wait for each other,
        kernels may run, or ranks that compute in another order would wait for each other for ever.
        The collective then begins on no rank before what comes before it has ended on this one.
        """
        label = "no overlap"
        added = _in_turns(graph)
        if not len(added):
            return Applied(graph=graph, label=label, context=context, no_effect=NOTHING_OVERLAPS)
        return Applied(
            graph=rewired(graph, np.ones(len(graph.edges.src), bool), added),
            label=label,
            context=context,
            known_errors=(
                "work in turns not judged: no public pair of runs differs in this alone",
            ),
            assumptions=(
                "no overlap: transfers and kernels of a device take turns in the order in which "
                "they began; changing over costs nothing",
            ),
        )


def _in_turns(graph: TaskGraph) -> EdgeList:
    tasks = graph.tasks
    devices, place = device_of_lane(graph), places(graph)
    compute = computing(graph, devices)
    moves = np.flatnonzero(
        is_communication(graph) & (tasks.kind != TaskKind.ARRIVE) & (devices[tasks.lane] >= 0)
    )
    gates = _Gates(graph)
    found = [NO_EDGES]
    for device in np.unique(devices[tasks.lane[moves]]).tolist():
        for transfers in _by_lane(graph, moves, devices, device, place):
            for kernels in _by_lane(graph, compute, devices, device, place):
                if tasks.lane[transfers[0]] != tasks.lane[kernels[0]]:
                    found.append(_after_transfers(transfers, kernels, place))
                    found.append(_before_transfers(transfers, kernels, place, gates))
    added = concatenate(found)
    return added.select(~tasks.fixed[added.dst])


def _by_lane(
    graph: TaskGraph, ids: Int64, devices: Int64, device: int, place: Int64
) -> Iterator[Int64]:
    """The tasks of a device, stream by stream, each in order."""
    lane = graph.tasks.lane[ids]
    for number in np.unique(lane[devices[lane] == device]):
        mine = ids[lane == number]
        yield mine[np.argsort(place[mine])]


def _after_transfers(transfers: Int64, kernels: Int64, place: Int64) -> EdgeList:
    """The first kernel after each transfer waits for it; of several before it, for the last."""
    following = np.searchsorted(place[kernels], place[transfers])
    last = np.append(following[1:] != following[:-1], True) & (following < len(kernels))
    return edges_between(transfers[last], kernels[following[last]], EdgeKind.EVENT_WAIT)


def _before_transfers(transfers: Int64, kernels: Int64, place: Int64, gates: "_Gates") -> EdgeList:
    """Each transfer, and whom its arrival lets go, waits for the last kernel before it."""
    before = np.searchsorted(place[kernels], place[transfers]) - 1
    first = np.append(True, before[1:] != before[:-1]) & (before >= 0)
    kernel, held, gate = kernels[before[first]], *gates.of(transfers[first])
    source = kernel[held]
    forward = place[source] < place[gate]
    return edges_between(source[forward], gate[forward], EdgeKind.EVENT_WAIT)


class _Gates:
    """What begins only after a member has arrived: its meeting, its transfer, its partners'."""

    def __init__(self, graph: TaskGraph) -> None:
        member = np.isin(graph.edges.kind, (EdgeKind.COLLECTIVE, EdgeKind.P2P))
        member &= graph.tasks.kind[graph.edges.src] == TaskKind.ARRIVE
        src, dst = graph.edges.src[member], destinations(graph)[member]
        order = np.argsort(src, kind="stable")
        self._src, self._dst = src[order], dst[order]
        self._member: Bool = graph.tasks.kind == TaskKind.TRANSFER

    def of(self, transfers: Int64) -> tuple[Int64, Int64]:
        """Pairs (position in `transfers`, task that it must hold back): itself and its gates."""
        arrive = np.where(self._member[transfers], transfers - 1, -1)
        first = np.searchsorted(self._src, arrive, side="left")
        count = np.searchsorted(self._src, arrive, side="right") - first
        held = np.repeat(np.arange(len(transfers)), count)
        within = np.arange(len(held)) - np.repeat(np.cumsum(count) - count, count)
        gate = self._dst[np.repeat(first, count) + within]
        return np.append(np.arange(len(transfers)), held), np.append(transfers, gate)
