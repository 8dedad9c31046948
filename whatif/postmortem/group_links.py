"""What each process group is for, over which link it runs, and how fast that link could be."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from replay.graph.arrays import Group, Int8, TaskGraph
from whatif.models.fabric import Fabric, Shape
from whatif.parallelism import group_label, layout_of
from whatif.recorded import Recorded
from whatif.topology import spread
from whatif.transforms.base import Context
from whatif.transforms.machine import known
from whatif.transforms.reach import Level, levels

PLACES: Mapping[Level, str] = {
    Level.HOST: "on the hosts' network",
    Level.SCALE_UP: "inside a node",
    Level.PCIE: "inside a node, by PCIe",
    Level.NIC: "across nodes",
    Level.WAN: "across sites",
}
TO_SAY: Mapping[Level, str] = {
    Level.HOST: "say the network of one rank: --base-net RATE",
    Level.SCALE_UP: "name the GPU or its link: --base-gpu NAME or --base-nvlink RATE",
    Level.PCIE: "name the GPU or its link: --base-gpu NAME or --base-pcie RATE",
    Level.NIC: "say the NIC share of one GPU: --base-net RATE, or --topology FILE",
    Level.WAN: "say what joins the sites: --topology FILE",
}
"""What makes the roof known."""

Key = tuple[str, str, tuple[int, ...], int]
"""A group as graph and tables both tell it: name, description, member ranks, size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLink:
    """A process group beside its link."""

    label: str
    role: str
    """`sharded data`, `tensor`, …; `unclear` where nothing tells."""
    level: Level
    roof_bytes_per_s: float | None
    """Bus bandwidth that the link allows; None where it is not known."""
    source: str
    """Where the roof is from, or what it lacks."""

    @property
    def place(self) -> str:
        """Inside a node or across nodes, in words."""
        return PLACES[self.level]


def group_links(graph: TaskGraph, recorded: Recorded) -> Mapping[Key, GroupLink]:
    """Of every communicator of the run.

    Args:
        graph: of the run.
        recorded: what is said of the recorded machine.

    Raises:
        UserError: what is said of the machine is wrong, as `whatif.transforms.machine.known`.
    """
    if not len(graph.collectives.kind):
        return {}
    context = known(graph, Context(recorded=recorded))
    layout = layout_of(graph)
    level = levels(graph, context.links, context.places)
    inside = spread(graph, context.places).largest
    found: dict[Key, GroupLink] = {}
    for number, (group, role) in enumerate(zip(graph.groups, layout.roles, strict=True)):
        mine = graph.collectives.group == number
        if not mine.any():
            continue
        farthest = _usual(level[mine])
        size = max(role.size, group.size)
        roof = _roof(context.links, farthest, size, int(np.median(inside[mine])))
        found[key_of(group)] = GroupLink(
            label=group_label(group, size),
            role=str(role.axis),
            level=farthest,
            roof_bytes_per_s=roof,
            source=_source(context, farthest, roof),
        )
    return found


def key_of(group: Group) -> Key:
    """Of a communicator of the graph."""
    return group.name, group.description, tuple(group.ranks), len(group.ranks) or group.size


def key_of_row(row: Mapping[str, Any]) -> Key:
    """Of a row of the query `comm_by_group`."""
    text = row["member_ranks"] or ""
    ranks = tuple(int(rank) for rank in text.split(",")) if text else ()
    return row["name"] or "", row["description"] or "", ranks, len(ranks) or row["members"] or 0


def _usual(level: Int8) -> Level:
    """The level that most calls of a group have."""
    return Level(int(np.bincount(level).argmax()))


def _roof(fabric: Fabric, level: Level, size: int, inside: int) -> float | None:
    """Bus bandwidth that the link of a level allows, bytes per second.

    A ring passes every link at the bus bandwidth. In a mesh a member has one link for each other
    one. Across nodes each of the `inside` members of a node brings its NIC, and no ring is faster
    than the links inside.
    """
    up, nic = fabric.scale_up_bytes_per_s, fabric.nic_bytes_per_s
    if level is Level.SCALE_UP and up is not None and fabric.scale_up_shape == Shape.MESH:
        return up * min(max(size - 1, 1), fabric.mesh_links) / fabric.mesh_links
    if level is Level.NIC and nic is not None:
        joined = nic * max(inside, 1)
        return joined if up is None else min(joined, up)
    of_level = {Level.SCALE_UP: up, Level.PCIE: fabric.pcie_bytes_per_s, Level.HOST: nic}
    return of_level.get(level, fabric.wan_bytes_per_s if level is Level.WAN else None)


def _source(context: Context, level: Level, roof: float | None) -> str:
    if roof is None:
        return f"not known: {TO_SAY[level]}"
    said = context.recorded
    given = {
        Level.SCALE_UP: said.nvlink,
        Level.PCIE: said.pcie,
        Level.NIC: said.net or said.topology,
        Level.HOST: said.net or said.topology,
        Level.WAN: said.topology,
    }[level]
    if given is not None:
        return f"{gigabytes(roof)} as given"
    device = context.device
    assert device is not None, "what was not given is from the catalog"
    link = "PCIe" if level is Level.PCIE or device.scale_up is None else device.scale_up.link
    return f"{link} of {device.name}: {gigabytes(roof)} one way (catalog)"


def gigabytes(bytes_per_s: float) -> str:
    """`450 GB/s`."""
    return f"{bytes_per_s / 1e9:,.4g} GB/s"
