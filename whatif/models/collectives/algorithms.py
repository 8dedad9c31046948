"""Time of a collective by each algorithm that can do it, and the fastest of them.

An algorithm has a latency of its steps for small messages (`first_ns`, NCCL's protocol LL), one for
large messages (`fill_ns`, protocol Simple) and the time of its bytes over the link that binds
(`wire_ns`). They make

    time = first + wire + fill_frac * sqrt(fill * wire) * wire / (wire + uncut)

The last term is the pipeline: cut into k pieces, each piece costs a step and the first one has to
pass all members before the last can; the best k leaves a square root. It fades where a message is
too small to be cut: its bytes take less than half of the steps inside a node (`uncut`). Between
nodes large messages also take longer steps (`later_ns`), unless the protocol of small messages,
which is slow per byte, still takes less. Measured sweeps have all of this, NCCL's own formula has
no pipeline. The fastest algorithm is taken, as the library means to; a minimum of continuous
functions has no jumps.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ingest.vocab import CollectiveKind
from whatif.models.collectives.calls import Bool, Float64
from whatif.models.collectives.constants import (
    BASE_NS,
    BASE_SIMPLE_NS,
    HIERARCHY_STAGES,
    IN_NETWORK_CROSSINGS,
    MOST_NICS,
    NVLS_NS,
    PAT_BASE_NS,
    PAT_FRAC,
    PAT_HOP_FRAC,
    PAT_MEMBER_NS,
    POST_NS,
    RING_HOP_FRAC,
    SIMPLE_HOP_FACTOR,
    SMALL_NS_PER_BYTE,
    STEP_NS,
    STEP_SIMPLE_NS,
    TREE_FRAC,
    TREE_FRAC_BETWEEN,
)
from whatif.models.collectives.links import PAIR, POINT_TO_POINT, Links
from whatif.models.fabric import Algorithm, Shape

REDUCED = (CollectiveKind.ALL_REDUCE, CollectiveKind.BARRIER, CollectiveKind.UNKNOWN)
SHARDED = (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER)
ROOTED = (CollectiveKind.BROADCAST, CollectiveKind.REDUCE)
PERSONAL = (CollectiveKind.ALL_TO_ALL, CollectiveKind.GATHER, CollectiveKind.SCATTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One algorithm, per call."""

    possible: Bool | bool = True
    """Calls of its kinds that it can do; it has times for others too, that mean nothing."""
    first_ns: Float64
    fill_ns: Float64
    wire_ns: Float64


def time_ns(cost: Cost, links: Links, size_bytes: Float64) -> Float64:
    """Latency, bytes and the filling of the pipeline, as the page above says."""
    whole = cost.wire_ns + links.uncut_ns
    share = np.divide(cost.wire_ns, whole, out=np.zeros_like(whole), where=cost.wire_ns > 0)
    filling = links.fill_frac * np.sqrt(cost.fill_ns * cost.wire_ns) * share
    slow = np.where(links.several, size_bytes * SMALL_NS_PER_BYTE, np.inf)
    return cost.first_ns + cost.wire_ns + np.minimum(links.later_ns + filling, slow)


def times_ns(links: Links, size_bytes: Float64) -> Float64:
    """Time of calls of some size in ns; a call alone in its group takes none."""
    return np.where(links.calls.members > 1, fastest_ns(links, size_bytes), 0.0)


def fastest_ns(links: Links, size_bytes: Float64) -> Float64:
    """Time of each call by the algorithm that is forced, where it can, else by the fastest."""
    return _chosen(links, size_bytes, lambda cost: time_ns(cost, links, size_bytes))


def wire_floor_ns(links: Links, size_bytes: Float64) -> Float64:
    """The bytes alone, by the algorithm that has fewest of them."""
    return _chosen(links, size_bytes, lambda cost: cost.wire_ns)


def _chosen(links: Links, size_bytes: Float64, measure: Callable[[Cost], Float64]) -> Float64:
    kind, wanted = links.calls.kind, links.fabric.algorithm
    present = set(np.unique(kind).tolist())
    fastest, forced = np.full((2, len(size_bytes)), np.inf)
    for way in WAYS:
        if present.isdisjoint(way.kinds) or not (way.by_itself or way.algorithm == wanted):
            continue
        cost = way.cost(links, size_bytes)
        times = np.where(np.isin(kind, way.kinds) & cost.possible, measure(cost), np.inf)
        if way.by_itself:
            fastest = np.minimum(fastest, times)
        if way.algorithm == wanted:
            forced = np.minimum(forced, times)
    return np.where(np.isinf(forced), fastest, forced)


def can(algorithm: Algorithm, kind: CollectiveKind) -> bool:
    """Whether the algorithm is one for that kind of collective at all."""
    return any(way.algorithm is algorithm and kind in way.kinds for way in WAYS)


def _members(links: Links) -> Float64:
    return np.maximum(links.calls.members, 1).astype(np.float64)


def _ns(sent_bytes: Float64, bytes_per_s: Float64) -> Float64:
    """Time of bytes on a link that nothing limits (infinite rate) is none."""
    times: Float64 = sent_bytes * 1e9 / bytes_per_s
    return times


def _ring_bytes_per_s(links: Links) -> Float64:
    """What flows through each member of a ring: the slowest crossing binds."""
    return np.minimum(links.path_bytes_per_s, _leaving_bytes_per_s(links))


def _leaving_bytes_per_s(links: Links) -> Float64:
    """What rings and trees send out of a node, or of a site where that is less."""
    nics = np.minimum(links.smallest_node, MOST_NICS)
    site = _members(links) / np.maximum(links.calls.sites, 1) * links.wan_bytes_per_s
    return np.minimum(nics * links.nic_bytes_per_s, site)


def _ring_latency(
    links: Links, rounds: float, base: float, step: float, hop_frac: float
) -> Float64:
    """A ring takes `rounds` x (members - 1) steps, of which some leave the node or the site."""
    calls = links.calls
    hops = rounds * (calls.nodes - 1.0)
    inside = np.maximum(rounds * (_members(links) - 1.0) - hops, 0.0)
    each_ns = np.where(links.several, max(step, POST_NS), step)
    far = rounds * (calls.sites - 1.0) * links.site_hop_ns
    near = links.step_factor * (base + inside * each_ns)
    return near + hops * hop_frac * links.hop_ns + far


def _tree_latency(links: Links, base: float, step: float, hop_factor: float) -> Float64:
    """Up and down: a chain in the node, a binary tree between nodes and between sites."""
    calls = links.calls
    inside = np.maximum(calls.largest_node - 1.0, 0.0)
    levels: Float64 = np.log2(np.maximum(calls.nodes, 1))
    far: Float64 = np.log2(np.maximum(calls.sites, 1)) * links.site_hop_ns
    near: Float64 = links.step_factor * (base + 2.0 * inside * step)
    return near + 2.0 * (levels * hop_factor * links.hop_ns + far)


def _filling(links: Links) -> Float64:
    """Of an all-reduce: rings too pipeline their hops, so that their number does not count."""
    return _tree_latency(links, BASE_SIMPLE_NS, STEP_SIMPLE_NS, SIMPLE_HOP_FACTOR)


def _ring(links: Links, size_bytes: Float64) -> Cost:
    members = _members(links)
    sent = 2.0 * (members - 1.0) / members * size_bytes
    return Cost(
        first_ns=_ring_latency(links, 2.0, BASE_NS, STEP_NS, RING_HOP_FRAC),
        fill_ns=_filling(links),
        wire_ns=_ns(sent, _ring_bytes_per_s(links)),
    )


def _ring_of_shards(links: Links, size_bytes: Float64) -> Cost:
    members = _members(links)
    sent = (members - 1.0) / members * size_bytes
    return Cost(
        first_ns=_ring_latency(links, 1.0, BASE_NS, STEP_NS, RING_HOP_FRAC),
        fill_ns=_ring_latency(links, 1.0, BASE_SIMPLE_NS, STEP_SIMPLE_NS, SIMPLE_HOP_FACTOR),
        wire_ns=_ns(sent, _ring_bytes_per_s(links)),
    )


def _chain(links: Links, size_bytes: Float64) -> Cost:
    """Broadcast and reduce: the whole buffer passes every member."""
    return Cost(
        first_ns=_ring_latency(links, 1.0, BASE_NS, STEP_NS, RING_HOP_FRAC),
        fill_ns=_ring_latency(links, 1.0, BASE_SIMPLE_NS, STEP_SIMPLE_NS, SIMPLE_HOP_FACTOR),
        wire_ns=_ns(size_bytes, _ring_bytes_per_s(links)),
    )


def _between(links: Links, size_bytes: Float64, crossings: Float64) -> Float64:
    """Time of `crossings` whole buffers that each node, and each site, sends to others."""
    return _ns(crossings * size_bytes, _leaving_bytes_per_s(links))


def _tree_crossings(links: Links) -> Float64:
    """Two trees, half of the bytes each: a node sends up once, and down twice in one of them.

    With two nodes each sends its half up or down: one buffer in all.
    """
    return np.where(links.calls.nodes == PAIR, 1.0, 2.0)


def _tree(links: Links, size_bytes: Float64) -> Cost:
    part = np.where(links.several, TREE_FRAC_BETWEEN, TREE_FRAC)
    inside = _ns(2.0 * size_bytes, part * links.path_bytes_per_s)
    return Cost(
        first_ns=_tree_latency(links, BASE_NS, STEP_NS, 1.0),
        fill_ns=_filling(links),
        wire_ns=np.maximum(inside, _between(links, size_bytes, _tree_crossings(links))),
    )


def _reduces_in_switch(links: Links) -> Bool:
    fits = links.silicon.in_switch_frac is not None
    fits &= links.fabric.scale_up_shape == Shape.SWITCH and links.fabric.in_network is not False
    reduces: Bool = (links.calls.largest_node > PAIR) & fits
    return reduces


def _in_switch_ns(links: Links, size_bytes: Float64) -> Float64:
    """The switch reads a shard from all members and writes its sum to all of them."""
    largest = np.maximum(links.calls.largest_node, 1).astype(np.float64)
    rate = links.up_bytes_per_s * (links.silicon.in_switch_frac or 1.0)
    return _ns((largest + 1.0) / largest * size_bytes, rate)


def _nvls(links: Links, size_bytes: Float64) -> Cost:
    return Cost(
        possible=_reduces_in_switch(links) & ~links.several,
        first_ns=np.full(len(size_bytes), NVLS_NS),
        fill_ns=_filling(links),
        wire_ns=_in_switch_ns(links, size_bytes),
    )


def _nvls_tree(links: Links, size_bytes: Float64) -> Cost:
    between = _between(links, size_bytes, _tree_crossings(links))
    return Cost(
        possible=_reduces_in_switch(links) & links.several,
        first_ns=np.maximum(NVLS_NS, _tree_latency(links, BASE_NS, STEP_NS, 1.0)),
        fill_ns=_filling(links),
        wire_ns=np.maximum(_in_switch_ns(links, size_bytes), between),
    )


def _in_network(links: Links, size_bytes: Float64) -> Cost:
    """The network's switches reduce: every node sends its sum once."""
    inside = _ns(2.0 * size_bytes, links.path_bytes_per_s)
    in_switch = _in_switch_ns(links, size_bytes)
    inside = np.where(_reduces_in_switch(links), np.minimum(inside, in_switch), inside)
    crossings = np.full(len(size_bytes), IN_NETWORK_CROSSINGS)
    allowed = links.fabric.in_network is True or links.fabric.algorithm == Algorithm.COLLNET
    up = links.step_factor * (BASE_NS + STEP_NS * np.maximum(links.calls.largest_node - 1.0, 0.0))
    return Cost(
        possible=links.several & allowed,
        first_ns=up + 2.0 * (links.hop_ns + links.site_hop_ns),
        fill_ns=_filling(links),
        wire_ns=np.maximum(inside, _between(links, size_bytes, crossings)),
    )


def _pat(links: Links, size_bytes: Float64) -> Cost:
    members = _members(links)
    levels = np.log2(np.maximum(links.calls.nodes, 1))
    hops = levels * PAT_HOP_FRAC * links.hop_ns
    hops += np.log2(np.maximum(links.calls.sites, 1)) * links.site_hop_ns
    first = links.step_factor * (PAT_BASE_NS + PAT_MEMBER_NS * members) + hops
    sent = (members - 1.0) / members * size_bytes
    return Cost(
        possible=links.several & (links.calls.largest_node <= 1),
        first_ns=first,
        fill_ns=first,
        wire_ns=_ns(sent, PAT_FRAC * _ring_bytes_per_s(links)),
    )


def _hierarchical(links: Links, size_bytes: Float64) -> Cost:
    """Reduce-scatter in the node, all-reduce of the shards between nodes, all-gather."""
    largest = np.maximum(links.calls.largest_node, 1).astype(np.float64)
    nodes = np.maximum(links.calls.nodes, 1).astype(np.float64)
    inside = np.where(
        largest > 1, _ns(2.0 * (largest - 1.0) / largest * size_bytes, links.path_bytes_per_s), 0.0
    )
    between = _between(links, size_bytes, 2.0 * (nodes - 1.0) / nodes)
    stages = (HIERARCHY_STAGES - 1.0) * links.step_factor * BASE_NS
    return Cost(
        possible=links.several,
        first_ns=stages + _tree_latency(links, BASE_NS, STEP_NS, 1.0),
        fill_ns=_filling(links),
        wire_ns=inside + between,
    )


def _direct(links: Links, size_bytes: Float64) -> Cost:
    """Each member reads the buffers of all others and adds them up itself."""
    sent = (_members(links) - 1.0) * size_bytes
    return Cost(
        possible=~links.several,
        first_ns=np.full(len(size_bytes), links.step_factor * (BASE_NS + STEP_NS)),
        fill_ns=np.zeros(len(size_bytes)),
        wire_ns=_ns(sent, links.up_bytes_per_s),
    )


def _personal_ns(links: Links, size_bytes: Float64, outside: Float64) -> tuple[Float64, Float64]:
    """Inside the node and beyond: what one member sends to each of the others is its own."""
    members = _members(links)
    inside = (np.maximum(links.calls.largest_node, 1) - 1.0) / members * size_bytes
    inside_ns = np.where(inside > 0, _ns(inside, links.up_bytes_per_s), 0.0)
    sites = np.maximum(links.calls.sites, 1)
    far_ns = _ns((sites - 1.0) / sites * size_bytes, links.wan_bytes_per_s)
    return inside_ns, np.maximum(_ns(outside * size_bytes, links.nic_bytes_per_s), far_ns)


def _to_each(links: Links, messages: Float64) -> tuple[Float64, Float64]:
    """Latencies of messages that leave one after the other: of small ones, of a full pipeline.

    Small all-to-alls take 7 to 10 us in a trace of eight V100; the 75 us of nccl-tests are calls
    of the host, one for each pair.
    """
    first = links.step_factor * (BASE_NS + STEP_NS * messages) + links.hop_ns
    filling = links.step_factor * (BASE_SIMPLE_NS + STEP_SIMPLE_NS * messages)
    filling += SIMPLE_HOP_FACTOR * links.hop_ns
    return first + links.site_hop_ns, filling + links.site_hop_ns


def _pairwise(links: Links, size_bytes: Float64) -> Cost:
    members = _members(links)
    outside = (members - links.smallest_node) / members
    near, far = _personal_ns(links, size_bytes, outside)
    first, filling = _to_each(links, members - 1.0)
    return Cost(
        first_ns=first,
        fill_ns=filling,
        wire_ns=np.maximum(near, far),
    )


def _pairwise_by_node(links: Links, size_bytes: Float64) -> Cost:
    """All-to-all in the node first, so that each message between nodes is as large as its node."""
    members = _members(links)
    largest = np.maximum(links.calls.largest_node, 1).astype(np.float64)
    outside = (members - links.smallest_node) / members
    near, far = _personal_ns(links, size_bytes, outside)
    near *= np.where(largest > 1, members / largest, 1.0)
    steps = np.maximum(largest - 1.0, 0.0) + np.maximum(links.calls.nodes - 1.0, 0.0)
    first, filling = _to_each(links, steps)
    return Cost(
        possible=links.several,
        first_ns=first + links.step_factor * BASE_NS,
        fill_ns=filling,
        wire_ns=near + far,
    )


def _point_to_point(links: Links, size_bytes: Float64) -> Cost:
    rate = np.where(links.several, links.nic_bytes_per_s, links.pair_bytes_per_s)
    hop = links.hop_ns + links.site_hop_ns
    near = links.step_factor * (BASE_NS + STEP_NS)
    return Cost(
        first_ns=near + hop,
        fill_ns=links.step_factor * (BASE_SIMPLE_NS + STEP_SIMPLE_NS) + SIMPLE_HOP_FACTOR * hop,
        wire_ns=_ns(size_bytes, np.minimum(rate, links.wan_bytes_per_s)),
    )


@dataclass(frozen=True, slots=True)
class Way:
    """An algorithm, and the kinds of calls that it is for."""

    algorithm: Algorithm
    kinds: tuple[CollectiveKind, ...]
    cost: Callable[[Links, Float64], Cost]
    by_itself: bool = True
    """A library may pick it without being told."""


WAYS = (
    Way(Algorithm.RING, REDUCED, _ring),
    Way(Algorithm.RING, SHARDED, _ring_of_shards),
    Way(Algorithm.RING, ROOTED, _chain),
    Way(Algorithm.TREE, REDUCED, _tree),
    Way(Algorithm.NVLS, REDUCED, _nvls),
    Way(Algorithm.NVLS_TREE, REDUCED, _nvls_tree),
    Way(Algorithm.COLLNET, REDUCED, _in_network),
    Way(Algorithm.PAT, SHARDED, _pat),
    Way(Algorithm.PAIRWISE, PERSONAL, _pairwise),
    Way(Algorithm.PAIRWISE, POINT_TO_POINT, _point_to_point),
    Way(Algorithm.HIERARCHICAL, REDUCED, _hierarchical, by_itself=False),
    Way(Algorithm.HIERARCHICAL, (CollectiveKind.ALL_TO_ALL,), _pairwise_by_node, by_itself=False),
    Way(Algorithm.DIRECT, REDUCED, _direct, by_itself=False),
)
"""Every algorithm that the model knows."""
