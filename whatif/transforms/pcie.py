"""Another rate of PCIe: collectives that take it, and copies between host and device."""

from dataclasses import replace

import numpy as np
from msgspec import Struct

from ingest.units import parse_rate
from ingest.vocab import TaskKind
from replay.graph.arrays import Bool, Int64, TaskGraph
from whatif.models.bound import Bound
from whatif.transforms.base import Applied, Context, free, with_durations
from whatif.transforms.machine import PCIE, known, owner, with_rate
from whatif.transforms.reach import Level, levels, why_not_pcie
from whatif.transforms.relink import Relinking, relinked
from whatif.transforms.select import names_with
from whatif.transforms.words import rate_in_bytes

TO_HOST = ("HtoD", "DtoH", "HostToDevice", "DeviceToHost")
PAGEABLE = "Pageable"
MOST_LATENCY_NS = 5_000
"""Copies of a few bytes take 1 to 4 us in public traces (HolisticTraceAnalysis, xDiT): where the
shortest of a name takes longer, it has bytes."""
COPIES = (
    "copies between host and device: the shortest copy of a name is its latency (5 us at most), "
    "the rest is bytes"
)
STAGED = (
    "copies of pageable memory stay: the host copies them first; the range holds the case that "
    "PCIe binds them"
)


class Pcie(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="pcie"
):
    """Give PCIe another rate: for collectives without another link, and for copies."""

    rate: str
    """`64GBps` of one accelerator, one direction; or a factor like `x2`."""

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        parse_rate(self.rate)

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--pcie {self.rate}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Move collectives by the collective model, and copies by their bytes.

        Raises:
            ScenarioError: an absolute rate, and the base is not known.
        """
        rate = parse_rate(self.rate)
        now = known(graph, context)
        level = levels(graph, now.links, now.places)
        crossing = level == Level.PCIE
        copies = free(graph, copies_over_pcie(graph))
        after = now
        if crossing.any() or copies.any():
            after = replace(now, fabric=with_rate(now.links, PCIE, rate, graph))
        base = now.links.pcie_bytes_per_s
        change = Relinking(
            label=f"pcie {rate.understood}",
            before=now,
            after=after,
            concerned=crossing,
            why_none=why_not_pcie(graph, level, now),
            why_same="the factor is 1"
            if rate.factor
            else f"{owner(graph, now.recorded) or 'it'} already has {rate.understood}",
            told=("base: not known" if base is None else f"base: {rate_in_bytes(base)} one way",),
        )
        applied = relinked(graph, context, change)
        if not copies.any() or after.links == now.links:
            return applied
        factor = _factor(now, after)
        return replace(
            applied,
            graph=with_durations(
                applied.graph, faster_copies(applied.graph, copies, factor, context.bound)
            ),
            context=applied.context if applied.no_effect is None else after,
            assumptions=(*(applied.assumptions or change.told), *_copies_told(graph, copies)),
            no_effect=None,
        )


def copies_over_pcie(graph: TaskGraph) -> Bool:
    """Tasks that copy between host and device."""
    to_host = names_with(graph, *TO_HOST)[graph.tasks.name]
    found: Bool = (graph.tasks.kind == TaskKind.MEMCPY) & to_host
    return found


def faster_copies(graph: TaskGraph, copies: Bool, factor: float, bound: Bound) -> Int64:
    """Durations with copies on a link `factor` times as fast, ns.

    A copy takes a latency, which is that of the shortest copy of its name (`MOST_LATENCY_NS` at
    most), and its bytes. Those of pageable memory stay but in the lower bound, for the host stages
    them.
    """
    tasks = graph.tasks
    dur_ns = tasks.dur_ns.copy()
    pageable = names_with(graph, PAGEABLE)[tasks.name]
    chosen = copies if bound is Bound.LOW else copies & ~pageable
    shortest_ns = np.full(len(graph.names) + 1, MOST_LATENCY_NS)
    np.minimum.at(shortest_ns, tasks.name[copies], tasks.dur_ns[copies])
    latency_ns = np.zeros_like(dur_ns) if bound is Bound.LOW else shortest_ns[tasks.name]
    moved_ns = (dur_ns - latency_ns)[chosen] / factor
    dur_ns[chosen] = np.rint(latency_ns[chosen] + moved_ns).astype(np.int64)
    return dur_ns


def _factor(before: Context, after: Context) -> float:
    old, new = before.links.pcie_bytes_per_s, after.links.pcie_bytes_per_s
    if old is None or new is None:
        return after.links.factors.pcie / before.links.factors.pcie
    return new / old


def _copies_told(graph: TaskGraph, copies: Bool) -> tuple[str, ...]:
    staged = bool(names_with(graph, PAGEABLE)[graph.tasks.name[copies]].any())
    return (COPIES, STAGED) if staged else (COPIES,)
