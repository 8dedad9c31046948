"""Another way of the library to move a collective: its algorithm, reduction in switches."""

from dataclasses import replace

import numpy as np
from msgspec import Struct

from ingest.errors import ScenarioError, UsageError, nearest
from ingest.vocab import CollectiveKind
from replay.graph.arrays import Bool, TaskGraph
from whatif.models.collectives.algorithms import can
from whatif.models.collectives.constants import SHIPPED, silicon_of
from whatif.models.fabric import Algorithm, Shape
from whatif.transforms.base import Applied, Context
from whatif.transforms.machine import known, owner
from whatif.transforms.reach import Level, levels
from whatif.transforms.relink import Relinking, relinked

SWITCH_ONLY = (Algorithm.NVLS, Algorithm.NVLS_TREE)
BETWEEN_NODES = (
    Algorithm.NVLS_TREE,
    Algorithm.COLLNET,
    Algorithm.HIERARCHICAL,
    Algorithm.PAT,
)
ON, OFF = "on", "off"


class InNetwork(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="in_network",
):
    """Let the switches reduce, inside nodes (NVLS) and between them (SHARP), or forbid it."""

    state: str
    """`on` or `off`."""

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        if self.state not in (ON, OFF):
            raise UsageError(f"`{self.state}` is neither on nor off", hint="--in-network on")

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--in-network {self.state}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Move the reductions that a switch on their way could do."""
        now = known(graph, context)
        fabric = replace(now.links, in_network=self.state == ON)
        change = Relinking(
            label=f"in-network reduction {self.state}",
            before=now,
            after=replace(now, fabric=fabric),
            concerned=_reduced_on_gpus(graph),
            why_none="no collective of this run is an all-reduce of GPUs",
            why_same=f"it is {self.state} already",
            only_library=True,
            why_unmoved=self._why_unmoved(graph, now),
            why_others_stay="no switch can reduce them, or none is faster",
            told=(_as_library(now),),
        )
        return relinked(graph, context, change)

    def _why_unmoved(self, graph: TaskGraph, context: Context) -> str:
        level = levels(graph, context.links, context.places)[_reduced_on_gpus(graph)]
        between = (level >= Level.NIC).any()
        if self.state == OFF:
            if not switch_reduces(context):
                return f"nothing reduces in a switch: {_no_switch(graph, context)}"
            return "by the collective model these all-reduces are as fast without the switch"
        if not between and not switch_reduces(context):
            return f"no all-reduce crosses nodes, and {_no_switch(graph, context)}"
        if not between:
            return "inside a node the switch may reduce already, and no all-reduce crosses nodes"
        return "by the collective model reduction in the switches is no faster here"


class CollectiveAlgo(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="collective_algo",
):
    """Force an algorithm where it can do the collective; the others keep theirs."""

    algorithm: str

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        if self.algorithm not in set(Algorithm):
            raise UsageError(
                f"no algorithm `{self.algorithm}`",
                hint=nearest(self.algorithm, [str(each) for each in Algorithm], limit=9),
            )

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--collective-algo {self.algorithm}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Move the collectives that the algorithm can do.

        Raises:
            ScenarioError: the machine cannot do it.
        """
        algorithm = Algorithm(self.algorithm)
        now = known(graph, context)
        if algorithm in SWITCH_ONLY and not switch_reduces(now):
            raise ScenarioError(
                f"`{algorithm}` reduces in the switch of a node, and {_no_switch(graph, now)}",
                hint="ring and tree need no switch; --gpu H100 has one",
            )
        able = np.array([can(algorithm, kind) for kind in CollectiveKind])
        change = Relinking(
            label=f"collective algorithm {algorithm}",
            before=now,
            after=replace(now, fabric=replace(now.links, algorithm=algorithm)),
            concerned=able[graph.collectives.kind] & ~graph.collectives.on_host,
            why_none=f"no collective of this run can be done by `{algorithm}`",
            why_same=f"`{algorithm}` is forced already",
            only_library=True,
            why_unmoved=_why_kept(graph, now, algorithm),
            why_others_stay=f"`{algorithm}` cannot do them, or is what they take",
            told=(_as_library(now),),
        )
        return relinked(graph, context, change)


def switch_reduces(context: Context) -> bool:
    """The switch of a node can reduce; also where the accelerator is not known."""
    links = context.links
    if links.scale_up_shape != Shape.SWITCH:
        return False
    silicon = silicon_of(SHIPPED, links.architecture)
    return links.architecture is None or silicon.in_switch_frac is not None


def _why_kept(graph: TaskGraph, context: Context, algorithm: Algorithm) -> str:
    """Why no collective takes another time when the algorithm is forced."""
    level = levels(graph, context.links, context.places)
    between = (level >= Level.NIC).any()
    if algorithm in BETWEEN_NODES and not between:
        return f"`{algorithm}` is for several nodes, and no collective crosses nodes"
    if algorithm is Algorithm.PAT and context.places.gpus_per_node > 1:
        return f"`{algorithm}` is for one GPU in each node"
    if algorithm is Algorithm.NVLS and not (level == Level.SCALE_UP).any():
        return f"`{algorithm}` is for one node, and every collective crosses nodes"
    return f"by the collective model these collectives take `{algorithm}` by themselves"


def _reduced_on_gpus(graph: TaskGraph) -> Bool:
    """Per collective: a switch could do its sum."""
    calls = graph.collectives
    found: Bool = (calls.kind == CollectiveKind.ALL_REDUCE) & ~calls.on_host
    return found


def _no_switch(graph: TaskGraph, context: Context) -> str:
    return f"{owner(graph, context.recorded) or 'the recorded GPU'} has no switch that can"


def _as_library(context: Context) -> str:
    """What the recorded run is taken to do."""
    forced = context.links.algorithm
    return (
        "base: the algorithm that the model finds fastest, as the library would pick it"
        if forced is None
        else f"base: `{forced}`, set before"
    )
