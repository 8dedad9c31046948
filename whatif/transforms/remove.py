"""Take tasks out: they cost nothing, and what they ordered stays in order."""

from dataclasses import replace

import numpy as np
from msgspec import Struct

from ingest.vocab import EdgeKind, TaskKind
from replay.graph.arrays import NONE, Bool, Edges, Int32, Int64, TaskGraph, Tasks
from replay.graph.csr import destinations
from whatif.transforms.base import Applied, Context, free
from whatif.transforms.host_calls import SYNCHRONISE, call_kinds, callers_of_only
from whatif.transforms.rewire import rewired
from whatif.transforms.select import names_sync, select

NO_WAITS = (
    "threads do not wait in these calls; what they read or free afterwards is taken to be there"
)


class Remove(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="remove"
):
    """Remove the selected tasks and the calls that launched only them; a collective as a whole."""

    where: str

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--remove {self.where}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the tasks free of cost and the members of their collectives independent."""
        selected = select(graph, self.where)
        label = f"remove {self.where}"
        chosen = free(graph, selected)
        chosen, widened = _whole_collectives(graph, chosen)
        if not chosen.any():
            reason = "all selected tasks were launched before the first step"
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        if names_sync(self.where):
            return Applied(
                graph=_without_waits(graph, chosen),
                label=label,
                context=context,
                assumptions=(NO_WAITS,),
            )
        assumptions = ["a removed task still keeps its place in the order of its thread or stream"]
        if widened:
            assumptions.append(f"{widened} collectives are removed on all ranks: none can do alone")
        return Applied(
            graph=_without(graph, chosen),
            label=label,
            context=context,
            assumptions=tuple(assumptions),
        )


def _without_waits(graph: TaskGraph, chosen: Bool) -> TaskGraph:
    """The graph where the chosen blocking calls do not wait; those that only wait take no time.

    What a call does beside waiting (a copy, giving memory back) stays.
    """
    tasks, edges = graph.tasks, graph.edges
    wait = chosen & (tasks.kind == TaskKind.HOST_WAIT)
    idle = chosen & np.isin(call_kinds(graph), [int(kind) for kind in SYNCHRONISE])
    freed = wait[destinations(graph)] & (edges.kind == EdgeKind.HOST_SYNC)
    changed = replace(
        tasks,
        dur_ns=np.where(idle, 0, tasks.dur_ns),
        residual_ns=np.where(wait | idle, 0, tasks.residual_ns),
    )
    return rewired(replace(graph, tasks=changed), ~freed)


def taken_out(graph: TaskGraph, chosen: Bool) -> TaskGraph:
    """The graph without the chosen tasks, whole collectives and the calls that launched only them.

    None of the chosen is fixed.
    """
    return _without(graph, _whole_collectives(graph, chosen)[0])


def _without(graph: TaskGraph, chosen: Bool) -> TaskGraph:
    gone = chosen | callers_of_only(graph, chosen)
    tasks = graph.tasks
    changed = replace(
        tasks,
        dur_ns=np.where(gone, 0, tasks.dur_ns),
        residual_ns=np.where(gone, _early_end(tasks), tasks.residual_ns),
    )
    return replace(graph, tasks=changed, edges=_freed(graph, gone))


def _whole_collectives(graph: TaskGraph, chosen: Bool) -> tuple[Bool, int]:
    """With one member go all; also how many collectives had members that were not selected.

    Members that began before the first step stay, with their arrivals.
    """
    tasks = graph.tasks
    member = (tasks.kind == TaskKind.TRANSFER) & ~tasks.fixed
    member[np.flatnonzero(member) - 1] = True
    removed = np.zeros(len(graph.collectives.kind) + 1, bool)
    removed[tasks.collective[chosen & (tasks.kind == TaskKind.TRANSFER)]] = True
    removed[NONE] = False
    all_members = member & removed[tasks.collective]
    left = all_members & ~chosen & (tasks.kind == TaskKind.TRANSFER)
    of_any = np.isin(tasks.kind, (TaskKind.ARRIVE, TaskKind.TRANSFER))
    return np.where(of_any, all_members, chosen), len(np.unique(tasks.collective[left]))


def _early_end(tasks: Tasks) -> Int64:
    """Residual without length: none, but what overlapped its cause ends no later than before."""
    residual_ns: Int64 = np.minimum(tasks.residual_ns + tasks.dur_ns, 0)
    return residual_ns


def _freed(graph: TaskGraph, gone: Bool) -> Edges:
    """Gone tasks wait for no lag, and gone members only for their own arrival.

    The edge from the meeting to a transfer (or from the arrivals before it) becomes one from the
    member's own arrival, which is the task before: the order of visits stays valid.
    """
    edges, tasks = graph.edges, graph.tasks
    dst = destinations(graph)
    into_gone = gone[dst]
    meets = np.isin(edges.kind, (EdgeKind.COLLECTIVE, EdgeKind.P2P))
    own = into_gone & meets & (tasks.kind[dst] == TaskKind.TRANSFER)
    src: Int32 = np.where(own, dst - 1, edges.src).astype(np.int32)
    return replace(
        edges, src=src, lag_ns=np.where(into_gone, np.minimum(edges.lag_ns, 0), edges.lag_ns)
    )
