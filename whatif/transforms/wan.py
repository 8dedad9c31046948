"""The run at several sites, with a slow link between them."""

from dataclasses import replace

from msgspec import Struct

from ingest.errors import UsageError
from ingest.units import parse_rate
from replay.graph.arrays import TaskGraph
from whatif.models.hardware import Accelerator
from whatif.parallelism import world_size
from whatif.recorded import parse_latency
from whatif.topology_file import Wan as Site
from whatif.transforms.base import Applied, Context
from whatif.transforms.machine import USUAL_NIC_BYTES_PER_S, known, with_wan
from whatif.transforms.reach import Level, levels
from whatif.transforms.relink import Relinking, relinked
from whatif.transforms.words import rate_in_bits, rate_in_bytes, time_in_words

ON_HOSTS = "the collectives run on the host: --net and --net-latency say what joins the hosts"
HINT = "write RATE,LATENCY of the whole link, one way: 100Gbps,20ms"
OTHER_NIC_BYTES_PER_S = USUAL_NIC_BYTES_PER_S["hopper"]
"""Of accelerators whose usual node is not listed: the link between sites mostly binds."""


class Wan(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="wan"
):
    """Put a link between sites; where the run has one site, its ranks are halved over two."""

    link: str
    """`100Gbps,20ms`: rate of the whole link in one direction, and latency one way."""

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        self._site()

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--wan {self.link}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Move the transfers between sites by the collective model."""
        site = self._site()
        now, world = known(graph, context), world_size(graph)
        places = now.places if now.places.has_sites else now.places.split(world)
        nic = now.links.nic_bytes_per_s
        told: tuple[str, ...] = ()
        if nic is None:
            nic = usual_nic_bytes_per_s(now.device)
            told = (f"network cards: {rate_in_bits(nic)} per GPU (assumed; --base-net tells)",)
            now = replace(now, fabric=replace(now.links, nic_bytes_per_s=nic))
        fabric = with_wan(now.links, site, places, world)
        after = replace(now, fabric=fabric, topology=places)
        level = levels(graph, after.links, after.places)
        share = rate_in_bytes(site.bytes_per_s / places.largest_site(world))
        split = "sites as before"
        if not now.places.has_sites:
            split = (
                "two sites: the lower half of the ranks at one, the upper half at the other (with "
                "Megatron's order that parts pipeline stages, with data parallelism replicas)"
            )
        change = Relinking(
            label=f"wan {rate_in_bits(site.bytes_per_s)}, {time_in_words(site.latency_ns)}",
            before=now,
            after=after,
            concerned=level == Level.WAN,
            why_none=ON_HOSTS if (level == Level.HOST).all() else "no collective crosses the sites",
            why_same="the link between the sites is as before",
            told=(
                f"{split}; all GPUs of a site share the link: {share} each",
                *told,
            ),
        )
        return relinked(graph, context, change)

    def _site(self) -> Site:
        rate, comma, latency = self.link.partition(",")
        if not comma:
            raise UsageError(f"`{self.link}` is no link between sites", hint=HINT)
        if parse_rate(rate).bytes_per_s is None:
            raise UsageError(f"`{rate}` is no rate of a link between sites", hint=HINT)
        parse_latency(latency)
        return Site(rate=rate.strip(), latency=latency.strip())


def usual_nic_bytes_per_s(device: Accelerator | None) -> float:
    """What servers with such accelerators usually have for each of them, one direction."""
    architecture = "" if device is None else device.architecture
    return USUAL_NIC_BYTES_PER_S.get(architecture, OTHER_NIC_BYTES_PER_S)
