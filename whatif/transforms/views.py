"""How the links look to a collective: which of them its members reach, and how crowded they are."""

from dataclasses import replace
from enum import IntEnum

import numpy as np

from ingest.vocab import CollectiveKind
from replay.graph.arrays import Int8, TaskGraph
from whatif.models.fabric import Fabric, Shape
from whatif.topology import Topology
from whatif.transforms.reach import Level, levels


class View(IntEnum):
    """How the links look to a collective."""

    WHOLE = 0
    BY_PCIE = 1
    """Where bridges join GPUs by two, the members of the others reach each other by PCIe."""
    CROWDED = 2
    """The network between the switches has less than the cards together."""


def views(graph: TaskGraph, fabric: Fabric, topology: Topology) -> Int8:
    """Per collective, its view."""
    level = levels(graph, fabric, topology)
    found = np.zeros(len(level), np.int8)
    if fabric.scale_up_shape == Shape.PAIRS:
        found[level == Level.PCIE] = View.BY_PCIE
    if topology.oversubscription > 1:
        leaves_rail = graph.collectives.kind == CollectiveKind.ALL_TO_ALL
        found[(level >= Level.NIC) & (leaves_rail | (not topology.rails))] = View.CROWDED
    return found


def seen(fabric: Fabric, topology: Topology, view: View) -> Fabric:
    """The links as they look in a view."""
    if view is View.BY_PCIE:
        return replace(fabric, scale_up_shape=Shape.NONE)
    if view is View.CROWDED and fabric.nic_bytes_per_s is not None:
        return replace(fabric, nic_bytes_per_s=fabric.nic_bytes_per_s / topology.oversubscription)
    return fabric
