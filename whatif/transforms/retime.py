"""The one way in which a change of links, places or sizes becomes other transfer times.

Every transfer takes `measured * model(new) / model(measured on)`: the model's level cancels, and
only how its parts change counts.
"""

from dataclasses import dataclass, replace

import numpy as np

from ingest.vocab import TaskKind
from replay.graph.arrays import Bool, Int64, TaskGraph
from whatif.models.collectives import model
from whatif.models.collectives.calls import Calls
from whatif.topology import Topology, spread
from whatif.transforms.base import Anchor, Context, free, with_durations
from whatif.transforms.reach import Level, levels


@dataclass(frozen=True, slots=True, kw_only=True)
class Retimed:
    """A graph on other links."""

    graph: TaskGraph
    context: Context
    moved: Bool
    """Per collective: a transfer of it takes another time than before."""


def retimed(
    graph: TaskGraph, before: Context, after: Context, *, changed: TaskGraph | None = None
) -> Retimed:
    """Transfers as they are on the links and in the places of `after`.

    Args:
        graph: as the stack has left it.
        before: the machine that its transfers take place on; `machine.known` has filled it.
        after: the machine to be.
        changed: the same tasks with other collectives or groups (sizes, members), where a what-if
            changes those too; it gets the new times.
    """
    target = graph if changed is None else changed
    anchor = _anchor(graph, before)
    ids = np.flatnonzero(free(graph, graph.tasks.kind == TaskKind.TRANSFER))
    level = levels(graph, before.links, before.places)
    ids = ids[level[graph.tasks.collective[ids]] == Level.SCALE_UP]
    then_ns = _on(anchor, ids, graph, before)
    now_ns = _on(anchor, ids, target, after)
    old_ns = graph.tasks.dur_ns[ids]
    ratio = np.divide(now_ns, then_ns, out=np.ones(len(ids)), where=then_ns > 0)
    new_ns = np.where(old_ns == then_ns, now_ns, np.rint(old_ns * ratio)).astype(np.int64)
    dur_ns = graph.tasks.dur_ns.copy()
    dur_ns[ids] = new_ns
    moved = np.zeros(len(graph.collectives.kind), bool)
    moved[graph.tasks.collective[ids[new_ns != old_ns]]] = True
    return Retimed(
        graph=with_durations(target, dur_ns) if moved.any() else target,
        context=replace(after, anchor=anchor),
        moved=moved,
    )


def _anchor(graph: TaskGraph, context: Context) -> Anchor:
    """The measured state; the present one where tasks or collectives were added or taken away."""
    anchor = context.anchor
    if (
        anchor is not None
        and anchor.graph.n_tasks == graph.n_tasks
        and len(anchor.graph.collectives.kind) == len(graph.collectives.kind)
    ):
        return anchor
    return Anchor(graph=graph, fabric=context.links, topology=context.places)


def _on(anchor: Anchor, ids: Int64, graph: TaskGraph, context: Context) -> Int64:
    """Time of transfers in another situation than the one that they were measured in, ns."""
    fabric, topology = context.links, context.places
    measured_ns = anchor.graph.tasks.dur_ns[ids]
    same = fabric == anchor.fabric and topology == anchor.topology
    if same and graph.collectives is anchor.graph.collectives:
        return measured_ns
    number = graph.tasks.collective[ids].astype(np.int64)
    return model.scaled_ns(
        measured_ns,
        before=calls_of(anchor.graph, anchor.topology, number),
        base=anchor.fabric,
        after=calls_of(graph, topology, number),
        new=fabric,
        bound=context.bound,
    )


def calls_of(graph: TaskGraph, topology: Topology, number: Int64) -> Calls:
    """Collectives as the model describes them, one row per entry of `number`."""
    calls, over = graph.collectives, spread(graph, topology)
    return Calls(
        kind=calls.kind[number].astype(np.int64),
        size_bytes=calls.size_bytes[number],
        members=calls.members_expected[number].astype(np.int64),
        nodes=over.domains[number],
        largest_node=over.largest[number],
        sites=over.sites[number],
    )
