"""The recorded machine, and the machine that a stack of what-ifs has made of it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ingest.errors import ScenarioError
from ingest.units import Rate
from replay.graph.arrays import TaskGraph
from whatif.models.bound import Bound
from whatif.models.fabric import Fabric
from whatif.models.hardware import Accelerator, find, require
from whatif.parallelism import world_size
from whatif.recorded import Recorded
from whatif.topology import Topology, find_topology, mesh_links_of, shape_of, topology_of
from whatif.topology_file import TopologyFile, Wan, load_topology
from whatif.transforms.base import Context

GBPS = 1e9 / 8.0
USUAL_NIC_BYTES_PER_S = {
    "volta": 50 * GBPS,
    "ampere": 200 * GBPS,
    "hopper": 400 * GBPS,
    "blackwell": 400 * GBPS,
    "cdna3": 400 * GBPS,
    "cdna4": 400 * GBPS,
}
"""Share of one accelerator in the network of the usual node of its generation, one direction: DGX-1
has 4 cards of 100 Gb/s for 8 GPUs, DGX A100 8 of 200, DGX H100 and B200 8 of 400 (user guides under
https://docs.nvidia.com/dgx), nodes of MI300X 8 of 400 (https://instinct.docs.amd.com)."""
USUAL_NIC_FACTOR = {Bound.NOMINAL: 1.0, Bound.LOW: 2.0, Bound.HIGH: 0.5}
"""The range of an assumed network: clouds sell half of it, and the next generation has twice."""
BOTH_WAYS = 2.0
"""Vendors print the rate of NVLink and xGMI with both directions together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link whose rate a what-if may change."""

    name: str
    """In messages."""
    field: str
    """Of `Fabric`."""
    factor: str
    """Of `Factors`."""
    hint: str
    """What to give where an absolute rate needs the recorded one."""
    vendor_factor: float = 1.0
    """What people mean by its rate, in rates of one direction."""


SCALE_UP = Link(
    name="link between the GPUs of a node",
    field="scale_up_bytes_per_s",
    factor="scale_up",
    hint="give --base-gpu NAME or --base-nvlink RATE, or a factor like x2",
    vendor_factor=BOTH_WAYS,
)
PCIE = Link(
    name="PCIe",
    field="pcie_bytes_per_s",
    factor="pcie",
    hint="give --base-gpu NAME or --base-pcie RATE, or a factor like x2",
)
NIC = Link(
    name="network between the nodes",
    field="nic_bytes_per_s",
    factor="nic",
    hint="give --base-net RATE (of one GPU, one direction) or --topology FILE, or a factor like x2",
)


def known(graph: TaskGraph, context: Context) -> Context:
    """The context with the recorded machine looked up, unless an earlier what-if did so.

    Raises:
        UsageError: the file of the topology cannot be read.
        ScenarioError: it is wrong, or the catalog does not know the accelerator that was named.
    """
    if context.fabric is not None:
        return context
    recorded = context.recorded
    device = recorded_device(graph, recorded)
    said = None if recorded.topology is None else load_topology(Path(recorded.topology))
    if said is None:
        topology = find_topology(graph, device, recorded)
    else:
        topology = topology_of(said, str(recorded.topology))
    fabric = _fabric(device, recorded)
    if said is not None:
        fabric = _joined_by(said, fabric, topology, world_size(graph))
    return replace(context, device=device, first_device=device, topology=topology, fabric=fabric)


def recorded_device(graph: TaskGraph, recorded: Recorded) -> Accelerator | None:
    """The one accelerator of the recorded run, where it is known.

    Raises:
        ScenarioError: the catalog does not know the one that was named.
    """
    if recorded.gpu is not None:
        return require(recorded.gpu)
    devices = [find(name) for name in {info.gpu for info in graph.ranks if info.gpu}]
    same = bool(devices) and all(device is devices[0] for device in devices)
    return devices[0] if same else None


def _fabric(device: Accelerator | None, recorded: Recorded) -> Fabric:
    """Links of the recorded run: as said, else as the catalog has them."""
    scale_up: float | None = recorded.nvlink_bytes_per_s
    pcie: float | None = recorded.pcie_bytes_per_s
    if scale_up is not None:
        scale_up /= BOTH_WAYS
    elif device is not None:
        scale_up = device.scale_up_one_way_bytes_per_s
    if pcie is None and device is not None and device.pcie is not None:
        pcie = device.pcie.one_way_bytes_per_s.value
    latency_ns = recorded.net_latency_ns
    return Fabric(
        architecture=None if device is None else device.architecture,
        scale_up_bytes_per_s=scale_up,
        scale_up_shape=shape_of(device),
        mesh_links=mesh_links_of(device),
        pcie_bytes_per_s=pcie,
        nic_bytes_per_s=recorded.net_bytes_per_s,
        net_latency_ns=None if latency_ns is None else float(latency_ns),
    )


def _joined_by(said: TopologyFile, fabric: Fabric, topology: Topology, world: int) -> Fabric:
    """The fabric with what a file says of cards and sites, where nothing else was said."""
    nics = said.nics
    if fabric.nic_bytes_per_s is None and nics.bytes_per_s is not None:
        fabric = replace(fabric, nic_bytes_per_s=nics.bytes_per_s * topology.nics_per_gpu)
    if fabric.net_latency_ns is None and nics.latency_ns is not None:
        fabric = replace(fabric, net_latency_ns=float(nics.latency_ns))
    if said.wan is None:
        return fabric
    return with_wan(fabric, said.wan, topology, world)


def with_wan(fabric: Fabric, wan: Wan, topology: Topology, world: int) -> Fabric:
    """The fabric with a link between sites, which all accelerators of a site share."""
    share = wan.bytes_per_s / topology.largest_site(world)
    return replace(fabric, wan_bytes_per_s=share, wan_latency_ns=float(wan.latency_ns))


def owner(graph: TaskGraph, recorded: Recorded) -> str | None:
    """The accelerator as it was named, else as recorded."""
    return recorded.gpu or next((info.gpu for info in graph.ranks if info.gpu), None)


def with_rate(fabric: Fabric, link: Link, rate: Rate, graph: TaskGraph) -> Fabric:
    """The fabric with another rate of one link.

    Raises:
        ScenarioError: an absolute rate, and the present one is not known.
    """
    now = getattr(fabric, link.field)
    if rate.factor is not None and now is None:
        factors = fabric.factors
        changed: dict[str, Any] = {link.factor: getattr(factors, link.factor) * rate.factor}
        return replace(fabric, factors=replace(factors, **changed))
    if rate.factor is not None:
        return _with(fabric, link, now * rate.factor)
    assert rate.bytes_per_s is not None, "a rate is absolute or a factor"
    if now is None:
        names = sorted({info.gpu or "no GPU name" for info in graph.ranks})
        raise ScenarioError(
            f"the {link.name} of the recorded run is not known ({', '.join(names)})",
            hint=link.hint,
        )
    return _with(fabric, link, rate.bytes_per_s / link.vendor_factor)


def _with(fabric: Fabric, link: Link, bytes_per_s: float) -> Fabric:
    changed: dict[str, Any] = {link.field: bytes_per_s}
    return replace(fabric, **changed)
