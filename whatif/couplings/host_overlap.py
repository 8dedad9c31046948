"""Host work beside transfers of collectives on the host is slower.

By how much is read off the recording, rank by rank (`replay/graph/host_overlap.py`). What a piece
of work overlapped is taken out of its recorded time, and what it overlaps in a scenario put in. The
rate of the link does not matter to it: that was seen from 500 Mbit/s to links without limit.
"""

from dataclasses import dataclass, replace

import numpy as np

from ingest.vocab import TaskKind
from replay.engine.schedule import Schedule
from replay.graph.arrays import Float64, Int64, TaskGraph
from whatif.couplings.added import added_transfers
from whatif.couplings.contention import ROUNDING_FRAC, ROUNDING_NS
from whatif.couplings.copies import found_in
from whatif.transforms.host_transfers import sends_seen_elsewhere

SCALED = (TaskKind.HOST_WORK, TaskKind.HOST_CALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rank:
    """Host tasks and transfers of one rank."""

    task: Int64
    transfer: Int64
    kept_frac: float
    """Speed beside a transfer, of that alone."""
    alone_frac: Float64
    """Per task: its time alone over that recorded."""

    def inside(self, plain: TaskGraph) -> "list[_Rank]":
        """The same in a variant, with transfers that it added: once per rank that has copies."""
        added, _ = added_transfers(plain, self.transfer)
        if plain.origin is None:
            return [replace(self, transfer=np.concatenate([self.transfer, added]))]
        work, moves = found_in(plain, self.task), found_in(plain, self.transfer)
        transfer = np.concatenate([moves.task, added])
        rank = plain.tasks.rank
        found = []
        for one in np.unique(rank[work.task]).tolist():
            mine = rank[work.task] == one
            found.append(
                replace(
                    self,
                    task=work.task[mine],
                    transfer=transfer[rank[transfer] == one],
                    alone_frac=self.alone_frac[work.row[mine]],
                )
            )
        return found

    def clock(self, schedule: Schedule) -> tuple[Float64, Float64]:
        """Moments, and the work that a thread could have done until each, ns."""
        lo_ns = schedule.start_ns[self.transfer]
        hi_ns = schedule.end_ns[self.transfer]
        if not len(self.transfer):
            ends_ns = np.array([0.0, FAR_NS])
            return ends_ns, ends_ns
        moment_ns, place = np.unique(np.concatenate([lo_ns, hi_ns]), return_inverse=True)
        change = np.concatenate([np.ones(len(lo_ns)), -np.ones(len(hi_ns))])
        running = np.cumsum(np.bincount(place, weights=change, minlength=len(moment_ns)))
        speed = np.where(running[:-1] > 0, self.kept_frac, 1.0)
        done_ns = np.concatenate([[0.0], np.cumsum(np.diff(moment_ns) * speed)])
        ends_ns = moment_ns[[0, -1]] + np.array([-FAR_NS, FAR_NS])
        moment_ns = np.concatenate([ends_ns[:1], moment_ns, ends_ns[1:]])
        return moment_ns, np.concatenate([[-FAR_NS], done_ns, [done_ns[-1] + FAR_NS]])


FAR_NS = 1e15
"""Beyond the first and the last transfer the clock runs at full speed: eleven days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOverlap:
    """What host work would have taken alone, rank by rank."""

    ranks: tuple[_Rank, ...]

    @property
    def assumption(self) -> str:
        """In words."""
        slowest = max(1.0 / rank.kept_frac for rank in self.ranks)
        return (
            f"host work beside host transfers takes up to {slowest:.2f} times as long, as equal "
            "operators of this run did; the range also holds the answer without that"
        )

    def watched(self, plain: TaskGraph) -> Int64:
        """Host work and transfers."""
        nothing = np.zeros(0, np.int64)
        ranks = self._inside(plain)
        return np.concatenate(
            [nothing, *(ids for one in ranks for ids in (one.task, one.transfer))]
        )

    def _inside(self, plain: TaskGraph) -> list[_Rank]:
        return [one for rank in self.ranks for one in rank.inside(plain)]

    def durations(self, plain: TaskGraph, schedule: Schedule) -> Int64:
        """Durations of host work beside the transfers of `schedule`."""
        dur_ns = plain.tasks.dur_ns.copy()
        for rank in self._inside(plain):
            asked_ns = plain.tasks.dur_ns[rank.task].astype(np.float64)
            moment_ns, done_ns = rank.clock(schedule)
            start_ns = schedule.start_ns[rank.task].astype(np.float64)
            begun_ns = np.interp(start_ns, moment_ns, done_ns)
            ends_ns = np.interp(begun_ns + asked_ns * rank.alone_frac, done_ns, moment_ns)
            taken_ns = ends_ns - start_ns
            same = np.abs(taken_ns - asked_ns) <= ROUNDING_NS + ROUNDING_FRAC * asked_ns
            dur_ns[rank.task] = np.where(same, asked_ns, np.rint(taken_ns)).astype(np.int64)
        return dur_ns


def host_overlap(graph: TaskGraph, schedule: Schedule) -> HostOverlap | None:
    """Host work of the ranks that were slower beside transfers; None where none was."""
    tasks = graph.tasks
    transfer = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)
    transfer = transfer[graph.collectives.on_host[tasks.collective[transfer]]]
    transfer = transfer[~sends_seen_elsewhere(graph, transfer)]
    work = np.isin(tasks.kind, [int(kind) for kind in SCALED]) & ~tasks.fixed & (tasks.dur_ns > 0)
    found = []
    for info in graph.ranks:
        mine = transfer[tasks.rank[transfer] == info.rank]
        if info.host_slowdown > 1.0 and len(mine):
            task = np.flatnonzero(work & (tasks.rank == info.rank))
            rank = _Rank(
                task=task,
                transfer=mine,
                kept_frac=1.0 / info.host_slowdown,
                alone_frac=np.ones(len(task)),
            )
            found.append(_with_alone(rank, schedule))
    return HostOverlap(ranks=tuple(found)) if found else None


def _with_alone(rank: _Rank, schedule: Schedule) -> _Rank:
    moment_ns, done_ns = rank.clock(schedule)
    start_ns, end_ns = (
        column[rank.task].astype(np.float64) for column in (schedule.start_ns, schedule.end_ns)
    )
    work_ns = np.interp(end_ns, moment_ns, done_ns) - np.interp(start_ns, moment_ns, done_ns)
    taken_ns = np.maximum(end_ns - start_ns, 1.0)
    return _Rank(
        task=rank.task,
        transfer=rank.transfer,
        kept_frac=rank.kept_frac,
        alone_frac=work_ns / taken_ns,
    )
