"""Which ranks share a scale-up domain, a node and a site: what a collective's bytes must cross."""

from collections import deque
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from operator import is_

import numpy as np

from ingest.vocab import LaneKind, TaskKind
from replay.graph.arrays import Int64, TaskGraph
from whatif.models import hardware
from whatif.models.fabric import MESH_LINKS, Shape
from whatif.models.hardware import Accelerator
from whatif.parallelism import world_size
from whatif.recorded import NOTHING_SAID, Recorded
from whatif.topology_file import TopologyFile

USUAL_NODE = 8
BRIDGED = 2
"""GPUs that a bridge joins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Places of ranks. Nodes are numbered from 0; ranks fill them in order unless listed."""

    gpus_per_node: int
    domain_gpus: int
    """Ranks that one scale-up domain joins where it is wider than a node (racks), else those of a
    node."""
    told: str
    """How the size of a node is known."""
    listed: tuple[tuple[int, ...], ...] = ()
    """Ranks of the first nodes where they are not numbered node by node; the others follow."""
    site_nodes: tuple[int, ...] = ()
    """Nodes at each site, in order; those beyond belong to the last. Empty: one site."""
    nics_per_gpu: float = 1.0
    rails: bool = False
    oversubscription: float = 1.0

    def node_of(self, ranks: Int64) -> Int64:
        """Node of each rank."""
        return self._places(ranks)[0]

    def domain_of(self, ranks: Int64) -> Int64:
        """Scale-up domain of each rank; none reaches over two sites."""
        node = self.node_of(ranks)
        wide = max(self.domain_gpus // self.gpus_per_node, 1)
        n_domains = 1 + int(node.max(initial=0))
        return node // wide + self._site(node) * n_domains

    def pair_of(self, ranks: Int64) -> Int64:
        """Bridge of each rank, where bridges join neighbours of a node by two."""
        node, place = self._places(ranks)
        return node * max(self.gpus_per_node, 1) + place // BRIDGED

    def site_of(self, ranks: Int64) -> Int64:
        """Site of each rank."""
        return self._site(self.node_of(ranks))

    @property
    def has_sites(self) -> bool:
        """More than one site."""
        return len(self.site_nodes) > 1

    def largest_site(self, world_size: int) -> int:
        """Ranks at the site that has most."""
        return int(np.bincount(self.site_of(np.arange(world_size))).max())

    def split(self, world_size: int) -> "Topology":
        """The same machines at two sites.

        The first half of the nodes, of one node the first half of its GPUs, stays where it is.
        """
        nodes = max(len(self.listed), -(-world_size // self.gpus_per_node))
        if nodes > 1:
            first = nodes - nodes // 2
            return replace(self, site_nodes=(first, nodes - first))
        half = max((world_size + 1) // 2, 1)
        halves = tuple(
            tuple(rank for node in self.listed for rank in node)[part]
            for part in (slice(None, half), slice(half, None))
        )
        return replace(
            self,
            gpus_per_node=half,
            domain_gpus=half,
            listed=halves if self.listed else (),
            site_nodes=(1, 1),
        )

    def _places(self, ranks: Int64) -> tuple[Int64, Int64]:
        """Node, and place inside it."""
        known, number, index = _by_rank(self.listed)
        after = np.maximum(ranks - len(known), 0)
        node = len(self.listed) + after // self.gpus_per_node
        place = after % self.gpus_per_node
        if len(known):
            row = np.minimum(np.searchsorted(known, ranks), len(known) - 1)
            here = known[row] == ranks
            node = np.where(here, number[row], node)
            place = np.where(here, index[row], place)
        return node, place

    def _site(self, node: Int64) -> Int64:
        if not self.site_nodes:
            return np.zeros_like(node)
        bounds = np.cumsum(self.site_nodes)[:-1]
        return np.searchsorted(bounds, node, side="right").astype(np.int64)


@lru_cache(maxsize=8)
def _by_rank(listed: tuple[tuple[int, ...], ...]) -> tuple[Int64, Int64, Int64]:
    """Listed ranks in order, with their nodes and places in them."""
    rows = [
        (rank, number, index)
        for number, members in enumerate(listed)
        for index, rank in enumerate(members)
    ]
    rank, number, index = np.array(sorted(rows), np.int64).reshape(-1, 3).T
    return rank, number, index


def find_topology(
    graph: TaskGraph, device: Accelerator | None, recorded: Recorded = NOTHING_SAID
) -> Topology:
    """Places of the ranks of the recorded run as far as the trace tells, and how it does."""
    joins = device.scale_up.joins if device and device.scale_up else None
    gpus, told = _gpus_per_node(graph, recorded, joins)
    if recorded.gpus_per_node is None and is_on_hosts(graph):
        told = "collectives run on the hosts (gloo): the network stands for every transfer"
    if device is None or joins is None or joins <= gpus or shape_of(device) == Shape.PAIRS:
        return Topology(gpus_per_node=gpus, domain_gpus=gpus, told=told)
    told = f"{told}; the link joins {joins} GPUs ({device.name}, catalog)"
    return Topology(gpus_per_node=gpus, domain_gpus=joins, told=told)


def topology_of(said: TopologyFile, name: str) -> Topology:
    """Places as a file says."""
    cards = said.nics.per_node
    return Topology(
        gpus_per_node=said.node_gpus,
        domain_gpus=said.domain_gpus or said.node_gpus,
        told=f"{said.node_gpus} GPUs per node ({name})",
        listed=said.listed,
        site_nodes=said.sites,
        nics_per_gpu=1.0 if cards is None else cards / said.node_gpus,
        rails=said.rails,
        oversubscription=said.oversubscription,
    )


def is_on_hosts(graph: TaskGraph) -> bool:
    """All collectives run on CPU threads (gloo, MPI): which ranks share a node moves none."""
    calls = graph.collectives
    return bool(len(calls.kind)) and bool(calls.on_host.all())


def _gpus_per_node(graph: TaskGraph, recorded: Recorded, joins: int | None) -> tuple[int, str]:
    """GPUs of a node; `joins` are those of a scale-up domain, which hardly ends inside a node."""
    if recorded.gpus_per_node is not None:
        return recorded.gpus_per_node, f"{recorded.gpus_per_node} GPUs per node (given)"
    if on_hosts := _ranks_of_hosts(graph):
        return on_hosts, f"{on_hosts} GPUs per node (host names of the files)"
    return _by_devices(graph, _ranks_of_one_host(graph) or 0) or _usual(graph, joins)


def _by_devices(graph: TaskGraph, together: int) -> tuple[int, str] | None:
    """As the traces list devices; `together` is the number of ranks that one host name joins."""
    seen = max((info.devices_seen for info in graph.ranks), default=0)
    gpus = _without_clash(graph, seen) if seen > 1 else min(USUAL_NODE, world_size(graph))
    if together > gpus:
        gpus = max(seen, together)
        return gpus, f"{gpus} GPUs per node (one host name in all files)"
    if seen <= 1:
        return None
    if gpus < seen:
        return gpus, f"{gpus} GPUs per node (ranks further apart have the same device number)"
    return seen, f"{seen} GPUs per node (devices that the trace lists)"


def _usual(graph: TaskGraph, joins: int | None) -> tuple[int, str]:
    gpus = min(USUAL_NODE, world_size(graph))
    if joins is not None and BRIDGED < joins < gpus:
        gpus = joins
    return gpus, f"{gpus} GPUs per node (assumed; --gpus-per-node N says otherwise)"


def _ranks_of_hosts(graph: TaskGraph) -> int | None:
    """Ranks per host, where the names of several hosts say so; None else.

    Counts only where files of neighbouring ranks lie on both sides of a change of the host.
    """
    hosts = {info.rank: info.host for info in graph.ranks if info.host}
    changes = [
        second
        for first, second in pairwise(sorted(hosts))
        if second == first + 1 and hosts[first] != hosts[second]
    ]
    if not changes:
        return None
    gpus = int(np.gcd.reduce(changes))
    blocks: dict[str, set[int]] = {}
    for rank, host in hosts.items():
        blocks.setdefault(host or "", set()).add(rank // gpus)
    return gpus if all(len(block) == 1 for block in blocks.values()) else None


def _ranks_of_one_host(graph: TaskGraph) -> int | None:
    """Neighbouring ranks that all files of the run put on one host; None else.

    Their device numbers say nothing then: each process may see its own device alone, as 0.
    """
    ranks = [info.rank for info in graph.ranks]
    hosts = {info.host for info in graph.ranks}
    if len(ranks) == 1 or len(hosts) > 1 or not all(hosts):
        return None
    first, last = min(ranks), max(ranks)
    return next(size for size in range(last - first + 1, last + 2) if first // size == last // size)


def _without_clash(graph: TaskGraph, most: int) -> int:
    """The largest size of a node up to `most` in which no two ranks use the same device."""
    used = {
        (lane.rank, lane.device)
        for lane in graph.lanes
        if lane.kind == LaneKind.STREAM and lane.device >= 0
    }
    for gpus in range(most, 1, -1):
        places = [(rank // gpus, device) for rank, device in used]
        if len(places) == len(set(places)):
            return gpus
    return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Over what the members of collectives are spread; columns with one row per collective."""

    domains: Int64
    """Scale-up domains that the members lie in."""
    largest: Int64
    """Members in the fullest of them."""
    sites: Int64
    pairs: Int64
    """Bridges that the members lie on, where bridges join GPUs by two."""


def spread(graph: TaskGraph, topology: Topology) -> Spread:
    """Where the members of each collective lie, those that are not in the files among them.

    Where all members of a communicator take part its ranks tell, as a what-if may have changed
    them; of fewer those in the files, if all are there; else the size: as if they were neighbours.
    The last results are kept, since what-ifs share the columns that they do not change.
    """
    depends_on = _members(graph)
    for columns, places, known in tuple(_RECENT):
        if places == topology and all(map(is_, columns, depends_on)):
            return known
    found = _spread(graph, topology)
    _RECENT.append((depends_on, topology, found))
    return found


_RECENT: deque[tuple[tuple[object, ...], Topology, Spread]] = deque(maxlen=8)


def _members(graph: TaskGraph) -> tuple[object, ...]:
    """All that says who the members of collectives are."""
    tasks, calls = graph.tasks, graph.collectives
    of_calls = (calls.group, calls.members_seen, calls.members_expected)
    return (tasks.kind, tasks.rank, tasks.collective, *of_calls, graph.groups)


def _spread(graph: TaskGraph, topology: Topology) -> Spread:
    calls = graph.collectives
    number, rank = _members_seen(graph)
    domains, largest = _counts(number, topology.domain_of(rank), len(calls.kind))
    sites, _ = _counts(number, topology.site_of(rank), len(calls.kind))
    pairs, _ = _counts(number, topology.pair_of(rank), len(calls.kind))
    listed = np.array([len(group.ranks) for group in graph.groups], np.int64)[calls.group]
    partial = np.flatnonzero(
        (calls.members_seen < calls.members_expected) | (listed == calls.members_expected)
    )
    for group in np.unique(calls.group[partial]):
        for expected in np.unique(calls.members_expected[partial[calls.group[partial] == group]]):
            rows = partial[calls.group[partial] == group]
            rows = rows[calls.members_expected[rows] == expected]
            ranks = graph.groups[group].ranks
            whole = len(ranks) >= expected
            members = np.array(ranks if whole else range(int(expected)), np.int64)
            domains[rows], largest[rows], sites[rows], pairs[rows] = _of_ranks(members, topology)
    most = calls.members_expected.astype(np.int64)
    return Spread(
        domains=np.clip(domains, 1, most),
        largest=np.minimum(largest, most),
        sites=np.clip(sites, 1, most),
        pairs=np.clip(pairs, 1, most),
    )


def _members_seen(graph: TaskGraph) -> tuple[Int64, Int64]:
    """Collective and rank of each member in the files."""
    tasks = graph.tasks
    transfer = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)
    return tasks.collective[transfer].astype(np.int64), tasks.rank[transfer].astype(np.int64)


def _of_ranks(ranks: Int64, topology: Topology) -> tuple[int, int, int, int]:
    domain = topology.domain_of(ranks)
    _, counts = np.unique(domain, return_counts=True)
    sites, pairs = topology.site_of(ranks), topology.pair_of(ranks)
    return len(counts), int(counts.max()), len(np.unique(sites)), len(np.unique(pairs))


def _counts(number: Int64, place: Int64, n_rows: int) -> tuple[Int64, Int64]:
    """Per row, how many different places its members lie in, and how many lie in the fullest."""
    width = int(place.max(initial=0)) + 1
    both, members = np.unique(number * width + place, return_counts=True)
    row = both // width
    most = np.zeros(n_rows, np.int64)
    np.maximum.at(most, row, members)
    return np.bincount(row, minlength=n_rows), most


def shape_of(device: Accelerator | None) -> Shape:
    """How scale-up links join the accelerators of a node; of an unknown one, through a switch."""
    if device is None:
        return Shape.SWITCH
    if device.scale_up is None:
        return Shape.NONE
    if device.scale_up.shape == hardware.Shape.TORUS:
        return Shape.MESH
    return Shape(device.scale_up.shape.value)


def mesh_links_of(device: Accelerator | None) -> int:
    """Links of one accelerator where each peer has one: three in the quads of MI210 or H200 NVL."""
    scale_up = None if device is None else device.scale_up
    if scale_up is None or scale_up.joins is None or scale_up.shape != hardware.Shape.MESH:
        return MESH_LINKS
    return max(scale_up.joins - 1, 1)
