"""The network between nodes, where the new ranks no longer fit one."""

from dataclasses import replace

import numpy as np

from ingest.units import BytesPerSecond, Rate
from replay.graph.arrays import TaskGraph
from whatif.transforms.base import Context
from whatif.transforms.machine import USUAL_NIC_BYTES_PER_S, USUAL_NIC_FACTOR


def networked(graph: TaskGraph, context: Context, world: int) -> tuple[Context, tuple[str, ...]]:
    """The machine with places and links for so many ranks, and what was taken for granted.

    Where nothing tells the network and no kind of node is usual, its rate stays unknown: what needs
    it refuses.
    """
    places = context.places
    if places.listed and len({rank for node in places.listed for rank in node}) != world:
        places = replace(places, listed=())
        context = replace(context, topology=places)
    domains = len(np.unique(places.domain_of(np.arange(world, dtype=np.int64))))
    on_hosts = bool(graph.collectives.on_host.any()) or context.device is None
    if domains == 1 or on_hosts:
        return context, ()
    told = f"{world} ranks reach over {domains} nodes: {places.told}"
    usual = USUAL_NIC_BYTES_PER_S.get(context.device.architecture) if context.device else None
    if context.links.nic_bytes_per_s is not None or usual is None:
        return context, (told,)
    rate = BytesPerSecond(usual * USUAL_NIC_FACTOR[context.bound])
    shown = Rate(BytesPerSecond(usual), None).understood
    assumed = (
        f"network between nodes: {shown} per GPU, one direction (usual; --base-net RATE tells)"
    )
    fabric = replace(context.links, nic_bytes_per_s=rate)
    return replace(context, fabric=fabric), (told, assumed)
