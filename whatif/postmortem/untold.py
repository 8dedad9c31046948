"""Whether transfers and waiting for ranks without files can be told apart."""

from collections.abc import Sequence

import numpy as np

from ingest.vocab import CollectiveKind
from replay.graph.arrays import Bool, Float64, TaskGraph
from replay.graph.outside import incomplete
from whatif.levers import HOST_LINK, NODE_LINK
from whatif.postmortem.group_links import group_links, key_of
from whatif.postmortem.material import Material
from whatif.report.levers import LeverFacts

SLOW_FRAC = 0.2
"""Of the time that its link needs at its roof: a call that lacks members and takes five times as
long may have waited for them; healthy large calls reach 70 to 90 %, poor ones a third."""
LATENCY_NS = 50_000
"""Granted to every call on top of its bytes: small calls are slow without any waiting."""
MOST_FRAC = 0.5
"""Of all time in transfers: with so much of it in doubt nothing is said of how it divides."""
TRANSFERS = "transfers or waiting for ranks without files"
"""What the part is called where the two cannot be told apart."""
LINKS = frozenset({"network", "NVLink or xGMI", NODE_LINK, HOST_LINK, "overlap with compute"})
"""Levers that are about transfers."""


def is_untold(material: Material) -> bool:
    """Most time in transfers is of calls that lack members and run far below their link."""
    calls = material.findings.graph.collectives
    total_ns = int(calls.transfer_ns.sum())
    return total_ns > 0 and int(calls.transfer_ns[_slow(material)].sum()) >= MOST_FRAC * total_ns


def untold_frac(material: Material) -> float:
    """Bandwidth of those calls, of what their links allow."""
    slow = _slow(material)
    took_ns = material.findings.graph.collectives.transfer_ns[slow]
    return float(_at_roof_ns(material)[slow].sum() / max(took_ns.sum(), 1))


def judged_levers(material: Material) -> Sequence[LeverFacts]:
    """Levers without those that would move a waiting as if it were a transfer."""
    levers = material.levers.levers
    if not is_untold(material):
        return levers
    return [lever for lever in levers if lever.what not in LINKS]


def _slow(material: Material) -> Bool:
    """Per call."""
    calls = material.findings.graph.collectives
    lacking = incomplete(calls)
    if not lacking.any():
        return lacking
    slow: Bool = lacking & (
        _at_roof_ns(material) + LATENCY_NS < SLOW_FRAC * calls.transfer_ns.astype(np.float64)
    )
    return slow


def _at_roof_ns(material: Material) -> Float64:
    """Per call: its bytes at the bus bandwidth of its link; without end where that is unknown."""
    graph = material.findings.graph
    calls, links = graph.collectives, group_links(graph, material.recorded)
    roofs = [links.get(key_of(group)) for group in graph.groups]
    roof = np.array(
        [(link.roof_bytes_per_s if link is not None else None) or 0.0 for link in roofs], np.float64
    )[calls.group]
    known = (roof > 0) & (calls.size_bytes >= 0)
    moved = calls.size_bytes * _bus_factor(graph)
    at_roof_ns: Float64 = np.full(len(known), np.inf)
    at_roof_ns[known] = 1e9 * moved[known] / roof[known]
    return at_roof_ns


def _bus_factor(graph: TaskGraph) -> Float64:
    """Bytes over the slowest link per byte of size, as nccl-tests count them."""
    calls = graph.collectives
    members = np.maximum(calls.members_expected, 1).astype(np.float64)
    factor: Float64 = (members - 1) / members
    factor[calls.kind == CollectiveKind.ALL_REDUCE] *= 2
    return factor
