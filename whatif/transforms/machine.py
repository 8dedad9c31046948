"""The recorded machine, and the machine that a stack of what-ifs has made of it."""

from dataclasses import dataclass, replace
from typing import Any

from ingest.errors import ScenarioError
from ingest.units import Rate
from replay.graph.arrays import TaskGraph
from whatif.models.fabric import Fabric
from whatif.models.hardware import Accelerator, find, require
from whatif.recorded import Recorded
from whatif.topology import find_topology, shape_of
from whatif.transforms.base import Context

BOTH_WAYS = 2.0
"""Vendors print the rate of NVLink and xGMI with both directions together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link whose rate a what-if may change."""

    name: str
    """In labels."""
    field: str
    """Of `Fabric`."""
    factor: str
    """Of `Factors`."""
    base_option: str
    vendor_factor: float = 1.0
    """What people mean by its rate, in rates of one direction."""


SCALE_UP = Link(
    name="nvlink",
    field="scale_up_bytes_per_s",
    factor="scale_up",
    base_option="--base-nvlink",
    vendor_factor=BOTH_WAYS,
)


def known(graph: TaskGraph, context: Context) -> Context:
    """The context with the recorded machine looked up, unless an earlier what-if did so."""
    if context.fabric is not None:
        return context
    device = recorded_device(graph, context.recorded)
    return replace(
        context,
        device=device,
        topology=find_topology(graph, device, context.recorded),
        fabric=fabric_of(device, context.recorded),
    )


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


def fabric_of(device: Accelerator | None, recorded: Recorded) -> Fabric:
    """Links of the recorded run: as said, else as the catalog has them."""
    scale_up: float | None = recorded.nvlink_bytes_per_s
    if scale_up is None and device is not None and device.scale_up is not None:
        scale_up = device.scale_up.bytes_per_s.value
    latency_ns = recorded.net_latency_ns
    return Fabric(
        scale_up_bytes_per_s=None if scale_up is None else scale_up / BOTH_WAYS,
        scale_up_shape=shape_of(device),
        pcie_bytes_per_s=recorded.pcie_bytes_per_s,
        nic_bytes_per_s=recorded.net_bytes_per_s,
        net_latency_ns=None if latency_ns is None else float(latency_ns),
    )


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
            hint=f"give --base-gpu NAME or {link.base_option} RATE, or a factor like x2",
        )
    return _with(fabric, link, rate.bytes_per_s / link.vendor_factor)


def _with(fabric: Fabric, link: Link, bytes_per_s: float) -> Fabric:
    changed: dict[str, Any] = {link.field: bytes_per_s}
    return replace(fabric, **changed)
