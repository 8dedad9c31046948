"""Which link binds each collective, and why a what-if about a link finds nothing to change."""

from enum import IntEnum

import numpy as np

from ingest.vocab import TaskKind
from replay.graph.arrays import Bool, Int8, TaskGraph
from whatif.models.fabric import Fabric, Shape
from whatif.topology import BRIDGED, Topology, spread
from whatif.transforms.base import Context, free
from whatif.transforms.machine import owner

NO_COLLECTIVE = "no collective in this trace"
ALL_FIXED = "all collectives were launched before the first step"


class Level(IntEnum):
    """The farthest link that the members of a collective cross."""

    HOST = 0
    """Runs on CPU threads (gloo, MPI): the network of the host, whatever the GPUs have."""
    SCALE_UP = 1
    """Inside one domain of NVLink or xGMI."""
    PCIE = 2
    """Inside a node, without such a link between all members."""
    NIC = 3
    """Between nodes."""
    WAN = 4
    """Between sites."""


def levels(graph: TaskGraph, fabric: Fabric, topology: Topology) -> Int8:
    """Level of each collective."""
    over = spread(graph, topology)
    level = np.full(len(over.domains), Level.SCALE_UP, np.int8)
    if fabric.scale_up_shape == Shape.NONE:
        level[:] = Level.PCIE
    elif fabric.scale_up_shape == Shape.PAIRS:
        level[over.pairs > 1] = Level.PCIE
    level[over.domains > 1] = Level.NIC
    level[over.sites > 1] = Level.WAN
    level[graph.collectives.on_host] = Level.HOST
    return level


def changeable(graph: TaskGraph) -> Bool:
    """Per collective: it has a transfer that a scenario may change."""
    found = np.zeros(len(graph.collectives.kind), bool)
    found[graph.tasks.collective[free(graph, graph.tasks.kind == TaskKind.TRANSFER)]] = True
    return found


def nothing_to_change(graph: TaskGraph) -> str | None:
    """Why no what-if about links can change this run; None where some can."""
    if not len(graph.collectives.kind):
        return NO_COLLECTIVE
    return None if changeable(graph).any() else ALL_FIXED


def why_not_scale_up(graph: TaskGraph, level: Int8, context: Context) -> str:
    """Why no collective takes the scale-up link."""
    if (level == Level.HOST).all():
        return f"the collectives run on the host{backends(graph)}: NVLink does not carry them"
    if context.links.scale_up_shape == Shape.NONE:
        return (
            f"{owner(graph, context.recorded)} has no NVLink or xGMI: its collectives take PCIe "
            "(--pcie) and the network (--net)"
        )
    if (level == Level.PCIE).any():
        return (
            f"no collective stays inside {BRIDGED} GPUs that a bridge joins: PCIe (--pcie) carries "
            "them"
        )
    gpus = context.places.domain_gpus
    return f"no collective stays inside a node of {gpus} GPUs: the network bounds them"


def why_not_network(context: Context) -> str:
    """Why no collective takes the network."""
    return (
        f"no collective crosses nodes: {context.places.told}; --gpus-per-node N or "
        "--topology FILE says otherwise"
    )


def why_not_pcie(graph: TaskGraph, level: Int8, context: Context) -> str:
    """Why no collective takes PCIe, and no copy either."""
    if (level >= Level.NIC).all():
        return "every collective crosses nodes: the network bounds them"
    if (level == Level.HOST).all():
        return f"the collectives run on the host{backends(graph)}: PCIe does not carry them"
    name = owner(graph, context.recorded) or "the recorded GPU"
    return f"no collective takes PCIe: {name} has a link of its own between the GPUs of a node"


def backends(graph: TaskGraph) -> str:
    """Libraries of the communicators in brackets; empty where not recorded."""
    names = {graph.groups[group].backend for group in np.unique(graph.collectives.group)}
    known = sorted({name.rsplit(":", 1)[-1] for name in names if name})
    return f" ({', '.join(known)})" if known else ""
