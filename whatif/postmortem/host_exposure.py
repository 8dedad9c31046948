"""Which group the communication of runs without devices belongs to, and what work hides of it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ingest.vocab import LaneKind, TaskKind
from replay.engine.schedule import Schedule
from replay.graph.arrays import Int64, TaskGraph
from replay.results.cover import cover, disjoint
from replay.results.metrics import step_times


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """Communication of a group, ns per step in the mean of the ranks."""

    hidden_ns: float
    """The threads that carry the step work."""
    exposed_ns: float
    exposed_wait_ns: float
    """Part of it in which nothing of the rank moves data either."""


def host_exposure(graph: TaskGraph, schedule: Schedule) -> Mapping[int, Exposure]:
    """By index of the group; exposed time of all groups is that of the breakdown.

    A moment belongs to the member that came first of those that run. Ranks with device work have
    no part in it: the tables tell theirs.
    """
    sums: dict[int, Int64] = {}
    for info in graph.ranks:
        for group, parts in _of_rank(graph, schedule, info.rank).items():
            sums[group] = sums.get(group, np.zeros(3, np.int64)) + parts
    share = len(graph.ranks) * len(graph.steps)
    return {
        group: Exposure(
            hidden_ns=int(parts[0]) / share,
            exposed_ns=int(parts[1]) / share,
            exposed_wait_ns=int(parts[2]) / share,
        )
        for group, parts in sums.items()
    }


def _of_rank(graph: TaskGraph, schedule: Schedule, rank: int) -> dict[int, Int64]:
    """Hidden, exposed and exposed waiting of each group inside the steps, ns in all."""
    tasks = graph.tasks
    mine = tasks.rank == rank
    members = np.flatnonzero(mine & (tasks.kind == TaskKind.ARRIVE) & _on_link(graph))
    if not len(members):
        return {}
    window = step_times(graph, schedule).boundary_ns[[0, -1]]
    members = members[np.argsort(schedule.start_ns[members], kind="stable")]
    lo_ns, hi_ns = disjoint(
        np.clip(schedule.start_ns[members], *window), np.clip(schedule.end_ns[members + 1], *window)
    )
    working = np.flatnonzero(mine & _working(graph, rank))
    moving = np.concatenate([working, members + 1])
    hidden_ns = cover(schedule.start_ns[working], schedule.end_ns[working]).within(lo_ns, hi_ns)
    busy_ns = cover(schedule.start_ns[moving], schedule.end_ns[moving]).within(lo_ns, hi_ns)
    parts = np.stack([hidden_ns, hi_ns - lo_ns - hidden_ns, hi_ns - lo_ns - busy_ns], axis=1)
    group = graph.collectives.group[tasks.collective[members]]
    return {int(one): parts[group == one].sum(axis=0) for one in np.unique(group)}


def _on_link(graph: TaskGraph) -> Int64:
    links = np.array([lane.kind == LaneKind.LINK for lane in graph.lanes] + [False], bool)
    found: Int64 = links[graph.tasks.lane]
    return found


def _working(graph: TaskGraph, rank: int) -> Int64:
    """Host work of the threads that carry steps, of all threads of a rank without such."""
    tasks = graph.tasks
    steps = np.array([lane.steps for lane in graph.lanes] + [False], bool)[tasks.lane]
    host = (tasks.kind == TaskKind.HOST_WORK) | (tasks.kind == TaskKind.HOST_CALL)
    carrying = host & steps
    found: Int64 = carrying if (carrying & (tasks.rank == rank)).any() else host
    return found
