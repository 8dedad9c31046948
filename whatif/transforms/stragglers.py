"""No rank slower than its peers: every task takes the lower median over its twins."""

from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from ingest.vocab import TaskKind
from replay.graph.arrays import Bool, Int32, Int64, TaskGraph
from whatif.transforms.base import Applied, Context, with_durations
from whatif.transforms.rank_roles import rank_roles

LEVELLED = (
    TaskKind.KERNEL,
    TaskKind.MEMCPY,
    TaskKind.MEMSET,
    TaskKind.HOST_WORK,
    TaskKind.HOST_CALL,
)


class NoStragglers(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="no_stragglers",
):
    """Device and host tasks take the lower median of their duration over their twins on all ranks.

    Transfers and residuals stay, and so does a task without a twin.
    """

    @property
    def flag(self) -> str:
        """As typed."""
        return "--no-stragglers"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Level the durations over the ranks."""
        label = "no stragglers"
        if len(graph.ranks) == 1:
            reason = "one rank alone has no peers to compare with"
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        tasks = graph.tasks
        ranks = np.array([info.rank for info in graph.ranks], np.int64)
        levelled = np.isin(tasks.kind, LEVELLED) & np.isin(tasks.rank, ranks)
        ids = np.flatnonzero(levelled & ~tasks.fixed & (tasks.lane >= 0))
        twin = twins(graph, ids)
        dur_ns = tasks.dur_ns.copy()
        dur_ns[ids] = _lower_median(twin, tasks.dur_ns[ids])
        if (dur_ns == tasks.dur_ns).all():
            reason = "no task differs from its twins on the other ranks"
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        share = float((np.bincount(twin)[twin] > 1).mean())
        return Applied(
            graph=with_durations(graph, dur_ns),
            label=label,
            context=context,
            assumptions=(f"{share:.0%} of the tasks have a twin on another rank; the rest stay",),
        )


def twins(graph: TaskGraph, ids: Int64, *, over_steps: bool = False) -> Int64:
    """Per task a number that it shares with the same task of the other ranks of its role.

    The same = equal name, lane role, kind and step, and the same place among the equal ones of its
    own rank and step; with `over_steps` tasks of all steps share a number. Host work is known by
    the call that it leads to: its own name is that of the longest of many short things, and so is
    another one on every other rank.
    """
    leads = _leads_to(graph)
    known_by, place = np.unique(leads.call[ids], return_inverse=True)
    before = leads.before[ids]
    same = _equal_work(graph, known_by)
    ordinal = _ordinals(graph, known_by, same)[place]
    if over_steps:
        same = _equal_work(graph, known_by, by_step=False)
    same = same[place]
    order = np.lexsort((ordinal, before, same))
    twin = np.empty(len(ids), np.int64)
    twin[order] = np.cumsum(_differs(same[order], before[order], ordinal[order])) - 1
    return twin


def _ordinals(graph: TaskGraph, ids: Int64, same: Int64) -> Int64:
    """Place of each task among the equal ones of its rank, in the order of time."""
    rank, ts_ns = graph.tasks.rank[ids], graph.tasks.ts_ns[ids]
    order = np.lexsort((ids, ts_ns, rank, same))
    run = np.cumsum(_differs(same[order], rank[order])) - 1
    ordinal = np.empty(len(ids), np.int64)
    ordinal[order] = np.arange(len(ids)) - np.searchsorted(run, run, side="left")
    return ordinal


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leads:
    """What a task is known by, per task of the graph."""

    call: Int64
    """For host work the next call of its thread; for others, and work without one, itself."""
    before: Int64
    """How many host tasks before that call it stands; 0 for the call itself."""


def _leads_to(graph: TaskGraph) -> _Leads:
    tasks = graph.tasks
    call, before = np.arange(graph.n_tasks), np.zeros(graph.n_tasks, np.int64)
    host = np.flatnonzero(np.isin(tasks.kind, (TaskKind.HOST_WORK, TaskKind.HOST_CALL)))
    host = host[np.lexsort((host, tasks.ts_ns[host], tasks.lane[host]))]
    place = np.arange(len(host))
    none = len(host)
    following = np.where(tasks.kind[host] == TaskKind.HOST_CALL, place, none)
    following = np.minimum.accumulate(following[::-1])[::-1]
    known = following < none
    known[known] = tasks.lane[host[following[known]]] == tasks.lane[host[known]]
    call[host[known]] = host[following[known]]
    before[host[known]] = following[known] - place[known]
    return _Leads(call=call, before=before)


def _equal_work(graph: TaskGraph, ids: Int64, *, by_step: bool = True) -> Int64:
    """Name, kind, step (where it counts), role of the lane and role of the rank as one number."""
    tasks = graph.tasks
    step = tasks.step[ids] + 1 if by_step else np.zeros(len(ids), np.int64)
    lane_roles = sorted({lane.role for lane in graph.lanes})
    number = {role: code for code, role in enumerate(lane_roles)}
    role_of_lane = np.array([number[lane.role] for lane in graph.lanes], np.int64)
    role_of_rank = dict(
        zip((info.rank for info in graph.ranks), rank_roles(graph).tolist(), strict=True)
    )
    lane_rank = np.array([role_of_rank.get(lane.rank, 0) for lane in graph.lanes], np.int64)
    lane = tasks.lane[ids]
    key = tasks.name[ids].astype(np.int64) + 1
    for column, values in (
        (tasks.kind[ids], max(TaskKind) + 1),
        (step, len(graph.steps) + 1),
        (role_of_lane[lane], len(lane_roles)),
        (lane_rank[lane], len(graph.ranks)),
    ):
        key = key * values + column
    return key


def _differs(*columns: Int64 | Int32) -> Bool:
    """Where a row differs from the one before; true for the first."""
    differs = np.zeros(len(columns[0]), bool)
    differs[:1] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return differs


def _lower_median(group: Int64, value: Int64) -> Int64:
    """Per row the lower median of its group."""
    order = np.lexsort((value, group))
    count = np.bincount(group)
    first = np.cumsum(count) - count
    median: Int64 = value[order[first + (count - 1) // 2]]
    return median[group]
