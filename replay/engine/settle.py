"""Replay until durations and schedule agree, where a duration depends on what runs beside it.

Two transfers on one link, or compute beside communication, take longer together than alone. A
coupling says how long: it is built from the unchanged run and its schedule, so that what ran at
the same time in the recording is taken out, and what runs at the same time now is put in.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

import numpy as np

from replay.engine.batch import replay_batch
from replay.engine.kernel import WIDTH
from replay.engine.run import replay
from replay.engine.schedule import Schedule
from replay.graph.arrays import Int32, Int64, TaskGraph

MOST_ROUNDS = 40
FREE_ROUNDS = 20
"""Rounds that take the new durations as they are: what is coupled only to the past is then right
up to a later moment each round. Rounds beyond take the middle of old and new."""
NEAR_ENOUGH = 1e-6
"""Durations agree when all their differences together are at most this part of the schedule."""


class Coupling(Protocol):
    """Durations that follow from what runs at the same time."""

    @property
    def assumption(self) -> str:
        """What it takes for granted, in words, for an answer that it changed."""

    def watched(self, plain: TaskGraph) -> Int64:
        """Tasks of a variant whose times it looks at: all that `schedule` need have."""

    def durations(self, plain: TaskGraph, schedule: Schedule) -> Int64:
        """Duration of every task when all runs as in `schedule`, ns.

        `plain.dur_ns` are durations beside what ran in the recording; they are given back exactly
        where the same still runs beside them.
        """


def settle(
    plain: TaskGraph, couplings: Sequence[Coupling], *, residuals: bool = True
) -> tuple[TaskGraph, Schedule]:
    """The graph with durations that agree with its schedule, and that schedule.

    The plain replay where no coupling changes anything. A fixed number of rounds at most; of those
    tried the one whose durations differ least from what they imply is given back, so that equal
    graphs have equal answers.

    Args:
        plain: with the durations that a scenario asks for, beside what ran in the recording.
        couplings: each changes durations of its own; changes of one task add up.
        residuals: as for `replay`.
    """
    settling = _Settling(plain, couplings)
    while settling.attempt is not None:
        settling.see(replay(settling.attempt, residuals=residuals))
    return settling.graph, settling.schedule


def settled_schedules(
    plain: Sequence[TaskGraph], couplings: Sequence[Coupling], at: Int32 | Int64
) -> Iterator[Schedule]:
    """The schedules that many variants of one graph settle at, in their order, as `settle` would.

    They have the times of the tasks `at` and of those that a coupling watches, and of no others.
    Beside the graphs, the work takes up to 550 bytes per task and processor.
    """
    together = WIDTH * (os.cpu_count() or 1)
    for first in range(0, len(plain), together):
        some = plain[first : first + together]
        settling = [_Settling(graph, couplings) for graph in some]
        watched = _watched(some, couplings, at)
        while pending := [each for each in settling if each.attempt is not None]:
            _see_all(pending, watched)
        yield from (each.schedule for each in settling)


def _watched(plain: Sequence[TaskGraph], couplings: Sequence[Coupling], at: Int32 | Int64) -> Int64:
    """The tasks `at`, and those that a coupling watches in one of the variants."""
    chosen = np.zeros(plain[0].n_tasks, bool)
    chosen[at] = True
    for graph in plain:
        for coupling in couplings:
            chosen[coupling.watched(graph)] = True
    return np.flatnonzero(chosen)


def _see_all(pending: Sequence["_Settling"], watched: Int64) -> None:
    """One round of several, replayed together and then looked at together."""
    attempts = [each.attempt for each in pending if each.attempt is not None]
    rows = replay_batch(attempts, watched)

    def see(place: int) -> None:
        graph = attempts[place]
        start_ns, end_ns = (np.zeros(graph.n_tasks, np.int64) for _ in range(2))
        end_ns[watched] = rows[place]
        start_ns[watched] = rows[place] - graph.tasks.dur_ns[watched]
        pending[place].see(Schedule(start_ns=start_ns, end_ns=end_ns, blocked_by=_UNKNOWN))

    with ThreadPoolExecutor() as pool:  # numpy and the compiled passes hold no lock for long
        list(pool.map(see, range(len(pending))))


_UNKNOWN = np.zeros(0, np.int64)
"""Batches do not say what bound a start, and no coupling asks. Times of other tasks are 0 there:
memory that nobody touches is not even taken."""


class _Settling:
    """The rounds of one graph: what to replay next, and the best of what was replayed."""

    def __init__(self, plain: TaskGraph, couplings: Sequence[Coupling]) -> None:
        self.attempt: TaskGraph | None = plain
        """To be replayed next; None at the end."""
        self.graph = plain
        self.schedule = Schedule(start_ns=_UNKNOWN, end_ns=_UNKNOWN, blocked_by=_UNKNOWN)
        self._plain = plain
        self._couplings = couplings
        self._off_ns = np.iinfo(np.int64).max
        self._rounds = 0

    def see(self, schedule: Schedule) -> None:
        """Take in the replay of the attempt, and choose the next."""
        assert self.attempt is not None, "it has settled"
        tried = self.attempt
        implied_ns = _implied(self._plain, schedule, self._couplings)
        differ = np.flatnonzero(implied_ns != tried.tasks.dur_ns)
        off_ns = int(np.abs(implied_ns[differ] - tried.tasks.dur_ns[differ]).sum())
        if off_ns < self._off_ns:
            self.graph, self.schedule, self._off_ns = tried, schedule, off_ns
        self._rounds += 1
        if off_ns <= NEAR_ENOUGH * _length_ns(schedule) or self._rounds == MOST_ROUNDS:
            self.attempt = None
            return
        if self._rounds > FREE_ROUNDS:
            implied_ns = (implied_ns + tried.tasks.dur_ns) // 2
        tasks = replace(self._plain.tasks, dur_ns=implied_ns)
        self.attempt = replace(self._plain, tasks=tasks)


def _implied(plain: TaskGraph, schedule: Schedule, couplings: Sequence[Coupling]) -> Int64:
    """Durations that follow from a schedule; changes of several couplings add up."""
    if not couplings:
        return plain.tasks.dur_ns
    implied_ns = couplings[0].durations(plain, schedule)
    for coupling in couplings[1:]:
        implied_ns = implied_ns + (coupling.durations(plain, schedule) - plain.tasks.dur_ns)
    return np.maximum(implied_ns, 0)


def _length_ns(schedule: Schedule) -> int:
    return int(schedule.end_ns.max() - schedule.start_ns.min()) if len(schedule.end_ns) else 0
