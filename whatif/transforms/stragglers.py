"""No rank slower than its peers: every task takes the lower median over its twins."""

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
        twin = _twins(graph, ids)
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


def _twins(graph: TaskGraph, ids: Int64) -> Int64:
    """Per task a number that it shares with the same task of the other ranks of its role.

    The same = equal name, lane role, kind and step, and the same place among the equal ones of its
    own rank.
    """
    tasks = graph.tasks
    same = _equal_work(graph, ids)
    order = np.lexsort((tasks.ts_ns[ids], tasks.rank[ids], same))
    run = np.cumsum(_differs(same[order], tasks.rank[ids][order])) - 1
    ordinal = np.empty(len(ids), np.int64)
    ordinal[order] = np.arange(len(ids)) - np.searchsorted(run, run, side="left")
    by_twin = np.lexsort((ordinal, same))
    twin = np.empty(len(ids), np.int64)
    twin[by_twin] = np.cumsum(_differs(same[by_twin], ordinal[by_twin])) - 1
    return twin


def _equal_work(graph: TaskGraph, ids: Int64) -> Int64:
    """Name, kind, step, role of the lane and role of the rank as one number."""
    tasks = graph.tasks
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
        (tasks.step[ids] + 1, len(graph.steps) + 1),
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
