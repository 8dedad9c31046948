"""Another rate of the link between the accelerators of a node."""

from dataclasses import replace

from msgspec import Struct

from ingest.units import BytesPerSecond, Rate, parse_rate
from replay.graph.arrays import TaskGraph
from whatif.models.fabric import Shape
from whatif.topology import spread
from whatif.transforms.base import Applied, Context
from whatif.transforms.machine import BOTH_WAYS, SCALE_UP, known, owner, with_rate
from whatif.transforms.reach import Level, levels, why_not_scale_up
from whatif.transforms.relink import UNMOVED, Relinking, relinked


class Nvlink(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="nvlink"
):
    """Give the scale-up link (NVLink, xGMI) another rate."""

    rate: str
    """`900GBps` as vendors print it (both directions), or a factor like `x2`."""

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        parse_rate(self.rate)

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--nvlink {self.rate}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Move the transfers that the link carries by the collective model.

        Raises:
            ScenarioError: an absolute rate, and the base is not known.
        """
        rate = parse_rate(self.rate)
        now = known(graph, context)
        level = levels(graph, now.links, now.places)
        carried = level == Level.SCALE_UP
        carried |= (level >= Level.NIC) & (spread(graph, now.places).largest > 1)
        carried &= now.links.scale_up_shape != Shape.NONE
        after = now
        if carried.any():
            after = replace(now, fabric=with_rate(now.links, SCALE_UP, rate, graph))
        why_same = "the factor is 1"
        if rate.factor is None:
            why_same = f"{owner(graph, now.recorded) or 'the link'} already has {rate.understood}"
        change = Relinking(
            label=f"{link_name(now)} {rate.understood}",
            before=now,
            after=after,
            concerned=carried,
            why_none=why_not_scale_up(graph, level, now),
            why_unmoved=UNMOVED
            if (level == Level.SCALE_UP).any()
            else why_not_scale_up(graph, level, now),
            why_same=why_same,
            told=(_base_told(now),),
        )
        return relinked(graph, context, change)


def link_name(context: Context) -> str:
    """What the link is called on this machine."""
    device = context.device
    is_xgmi = device is not None and device.scale_up and "GMI" in device.scale_up.link.upper()
    return "xGMI" if is_xgmi else "nvlink"


def _base_told(context: Context) -> str:
    """What the link had before, and how that is known."""
    now = context.links.scale_up_bytes_per_s
    if now is None:
        return "base: not known, a factor needs none"
    device = context.device
    shown = Rate(BytesPerSecond(BOTH_WAYS * now), None).understood
    if context.anchor is not None and context.anchor.fabric != context.fabric:
        return f"base: {shown}, set before"
    if context.recorded.nvlink is not None:
        return f"base: {shown} (given)"
    assert device is not None, "else the rate is not known"
    assert device.scale_up is not None, "else the rate is not known"
    return f"base: {device.name}, {device.scale_up.link} {shown} (catalog)"
