"""Another rate of the link between the accelerators of a node."""

from dataclasses import replace

from msgspec import Struct

from ingest.units import BytesPerSecond, Rate, parse_rate
from replay.graph.arrays import Bool, Int8, TaskGraph
from whatif.models.collectives.model import SOURCE
from whatif.transforms.base import Applied, Context
from whatif.transforms.machine import BOTH_WAYS, SCALE_UP, known, owner, with_rate
from whatif.transforms.reach import (
    Level,
    changeable,
    levels,
    nothing_to_change,
    why_not_scale_up,
)
from whatif.transforms.retime import retimed


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
        label = f"nvlink {rate.understood}"
        now = known(graph, context)
        level = levels(graph, now.links, now.places)
        carried = (level == Level.SCALE_UP) & changeable(graph)
        if not carried.any():
            reason = nothing_to_change(graph) or why_not_scale_up(graph, level, now)
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        fabric = with_rate(now.links, SCALE_UP, rate, graph)
        if fabric == now.links:
            reason = "the factor is 1"
            if rate.factor is None:
                reason = f"{owner(graph, now.recorded) or 'the link'} already has {rate.understood}"
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        result = retimed(graph, now, replace(now, fabric=fabric))
        return Applied(
            graph=result.graph,
            label=label,
            context=result.context,
            assumptions=(
                _base_told(now),
                now.places.told,
                *_others_told(graph, level, carried),
                SOURCE,
                *_unsized(graph),
            ),
        )


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
    note = f". {device.note}" if device.note else ""
    return f"base: {device.name}, {device.scale_up.link} {shown} (catalog){note}"


def _others_told(graph: TaskGraph, level: Int8, carried: Bool) -> tuple[str, ...]:
    """Collectives that another link binds."""
    others = ~carried & changeable(graph) & (level != Level.HOST)
    on_host = level == Level.HOST
    told = []
    if others.any():
        told.append(
            f"{int(others.sum())} of {len(level)} collectives leave the link's domain and stay: "
            "a slower link bounds them"
        )
    if on_host.any():
        told.append(f"{int(on_host.sum())} collectives run on the host and stay")
    return tuple(told)


def _unsized(graph: TaskGraph) -> tuple[str, ...]:
    """Said where the model has no size to go by (kernels without NCCL metadata)."""
    sizes = graph.collectives.size_bytes
    unknown = int((sizes < 0).sum())
    if not unknown:
        return ()
    return (f"{unknown} of {len(sizes)} collectives have no size: measured time stands for bytes",)
