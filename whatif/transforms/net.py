"""Another network between nodes: the rate of the cards, and the latency of a message."""

from dataclasses import replace

from msgspec import Struct

from ingest.units import BytesPerSecond, Rate, parse_rate
from replay.graph.arrays import Bool, TaskGraph
from whatif.models.collectives.constants import OWN_HOP_NS, SHIPPED
from whatif.models.fabric import Fabric
from whatif.recorded import parse_latency
from whatif.transforms.base import Applied, Context
from whatif.transforms.machine import NIC, known, with_rate
from whatif.transforms.reach import Level, levels, why_not_network
from whatif.transforms.relink import UNMOVED, Relinking, relinked
from whatif.transforms.words import rate_in_bits, time_in_words

USUAL = " (assumed; --base-net-latency tells)"
UNMOVED_ON_HOSTS = (
    "by the gloo model a core that sends the bytes, or latency, binds these transfers"
)


class Net(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="net"
):
    """Give the network cards another rate; without GPUs, the network of the hosts."""

    rate: str
    """`400Gbps`, the share of one accelerator (of one card, where a topology counts cards; of one
    rank without accelerator), one direction; or a factor like `x2`."""

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        parse_rate(self.rate)

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--net {self.rate}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Move the transfers that cross nodes, or the network of the hosts, by their models.

        Raises:
            ScenarioError: an absolute rate for GPUs, and the base is not known.
        """
        rate = parse_rate(self.rate)
        now = known(graph, context)
        crossing = crosses_nodes(graph, now)
        after, share = now, _share(rate, now)
        if crossing.any():
            after = replace(now, fabric=_with_share(share, now.links, graph, crossing))
        change = Relinking(
            label=f"net {rate.understood}{_of_whom(rate, now)}",
            before=now,
            after=after,
            concerned=crossing,
            why_none=why_not_network(now),
            why_unmoved=_why_unmoved(graph),
            why_same="the factor is 1" if rate.factor else f"it already has {rate.understood}",
            told=(_understood(rate, share, graph, now), *_base_told(now, graph, crossing)),
        )
        return relinked(graph, context, change)


class NetLatency(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="net_latency",
):
    """Give a message between nodes another latency, one way."""

    time: str
    """`20us`: beside what the library takes; `+20us`: on top of what the recorded run had."""

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        latency_ns(self.time, 0)

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--net-latency {self.time}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Move the transfers that cross nodes, or the network of the hosts, by their models."""
        now = known(graph, context)
        crossing = crosses_nodes(graph, now)
        base_ns, assumed = now.links.net_latency_ns, ""
        if base_ns is None:
            base_ns, assumed = _usual_latency_ns(graph, crossing), USUAL
            now = replace(now, fabric=replace(now.links, net_latency_ns=base_ns))
        new_ns = latency_ns(self.time, base_ns)
        change = Relinking(
            label=f"net latency {time_in_words(new_ns)}",
            before=now,
            after=replace(now, fabric=replace(now.links, net_latency_ns=new_ns)),
            concerned=crossing,
            why_none=why_not_network(now),
            why_unmoved=_why_unmoved(graph),
            why_same=f"it already is {time_in_words(new_ns)}",
            told=(f"base: {time_in_words(base_ns)} one way{assumed}",),
        )
        return relinked(graph, context, change)


def latency_ns(text: str, base_ns: float) -> float:
    """`20us`, `0us`, or `+20us` on top of the base.

    Raises:
        UsageError: no time.
    """
    stripped = text.strip()
    added = stripped.removeprefix("+")
    return float(parse_latency(added)) + (base_ns if added != stripped else 0.0)


def _usual_latency_ns(graph: TaskGraph, crossing: Bool) -> float:
    """What the model takes between nodes where nothing is said; none between hosts."""
    on_gpus = (crossing & ~graph.collectives.on_host).any()
    return float(SHIPPED.hop_ns - OWN_HOP_NS) if on_gpus else 0.0


def crosses_nodes(graph: TaskGraph, context: Context) -> Bool:
    """Per collective: its members lie in several nodes, or it runs on the hosts."""
    level = levels(graph, context.links, context.places)
    crossing: Bool = (level >= Level.NIC) | (level == Level.HOST)
    return crossing


def _why_unmoved(graph: TaskGraph) -> str:
    return UNMOVED_ON_HOSTS if graph.collectives.on_host.all() else UNMOVED


def _share(rate: Rate, context: Context) -> Rate:
    """The rate for one accelerator, where that of a card was given."""
    if rate.bytes_per_s is None:
        return rate
    return Rate(BytesPerSecond(rate.bytes_per_s * context.places.nics_per_gpu), None)


def _with_share(share: Rate, fabric: Fabric, graph: TaskGraph, crossing: Bool) -> Fabric:
    """The fabric with another share; what hosts have now, their own calls tell."""
    on_gpus = (crossing & ~graph.collectives.on_host).any()
    if share.bytes_per_s is not None and fabric.nic_bytes_per_s is None and not on_gpus:
        return replace(fabric, nic_bytes_per_s=float(share.bytes_per_s))
    return with_rate(fabric, NIC, share, graph)


def _of_whom(rate: Rate, context: Context) -> str:
    return "" if rate.factor or context.places.nics_per_gpu == 1 else " per card"


def _understood(rate: Rate, share: Rate, graph: TaskGraph, context: Context) -> str:
    """The rate in words: of whom, in which direction."""
    if rate.bytes_per_s is None:
        return f"net {rate.understood}: of what the recorded run has"
    owner = "rank" if graph.collectives.on_host.all() else "GPU"
    cards = context.places.nics_per_gpu
    if cards == 1:
        return f"net {rate_in_bits(rate.bytes_per_s)} per {owner}, one direction"
    return (
        f"net {rate_in_bits(rate.bytes_per_s)} per card, one direction: {cards:g} cards per "
        f"{owner} give it {share.understood}"
    )


def _base_told(context: Context, graph: TaskGraph, crossing: Bool) -> tuple[str, ...]:
    """What the network had before, and how that is known."""
    now = context.links.nic_bytes_per_s
    if now is not None:
        owner = "rank" if graph.collectives.on_host.all() else "GPU"
        return (f"base: {rate_in_bits(now)} per {owner}",)
    if (crossing & graph.collectives.on_host).any():
        return ("base: the rate that large transfers reach in this trace",)
    return ("base: not known, a factor needs none",)
