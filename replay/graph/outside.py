"""Members that may wait for ranks that are not in the files."""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import EdgeKind, TaskKind
from replay.graph.arrays import Bool, Collectives, TaskGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideWaiters:
    """Per task: transfers that the end of an arrival holds back, which is where such a wait is.

    The others know whom they wait for, and these are all in the files (or had moved on before).
    """

    for_all: Bool
    """Those that wait for the meeting of a collective that lacks members."""
    alone: Bool
    """Those that wait for some members, one of which is missing."""

    @property
    def either(self) -> Bool:
        """Both."""
        both: Bool = self.for_all | self.alone
        return both


def incomplete(calls: Collectives) -> Bool:
    """Per collective, whether members are missing in the files."""
    missing: Bool = calls.members_seen < calls.members_expected
    return missing


def outside_waiters(graph: TaskGraph) -> OutsideWaiters:
    """Which transfers may begin after a wait for members that are not in the files."""
    tasks, edges = graph.tasks, graph.edges
    dst = np.repeat(np.arange(graph.n_tasks), np.diff(edges.start))
    missing = np.append(incomplete(graph.collectives), False)[tasks.collective]
    held = np.isin(edges.kind, (EdgeKind.COLLECTIVE, EdgeKind.P2P)) & ~edges.from_start
    held &= (missing & (tasks.kind == TaskKind.TRANSFER))[dst]
    for_all, alone = np.zeros(graph.n_tasks, bool), np.zeros(graph.n_tasks, bool)
    for_all[dst[held & (tasks.kind[edges.src] == TaskKind.MEET)]] = True
    alone[dst[held & (edges.src == dst - 1)]] = True
    return OutsideWaiters(for_all=for_all, alone=alone)
