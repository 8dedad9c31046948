"""Replay until durations and schedule agree, where a duration depends on what runs beside it.

Two transfers on one link, or compute beside communication, take longer together than alone. A
coupling says how long: it is built from the unchanged run and its schedule, so that what ran at
the same time in the recording is taken out, and what runs at the same time now is put in.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from replay.engine.run import replay
from replay.engine.schedule import Schedule
from replay.graph.arrays import Int64, TaskGraph

MOST_ROUNDS = 40
FREE_ROUNDS = 20
"""Rounds that take the new durations as they are: what is coupled only to the past is then right
up to a later moment each round. Rounds beyond take the middle of old and new."""
NEAR_ENOUGH = 1e-6
"""Durations agree when all their differences together are at most this part of the schedule."""


class Coupling(Protocol):
    """Durations that follow from what runs at the same time."""

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
    schedule = replay(plain, residuals=residuals)
    best = _Tried(graph=plain, schedule=schedule, off_ns=np.iinfo(np.int64).max)
    tried = plain
    for attempt in range(MOST_ROUNDS):
        implied_ns = _implied(plain, schedule, couplings)
        off_ns = int(np.abs(implied_ns - tried.tasks.dur_ns).sum())
        if off_ns < best.off_ns:
            best = _Tried(graph=tried, schedule=schedule, off_ns=off_ns)
        if off_ns <= NEAR_ENOUGH * _length_ns(schedule):
            break
        if attempt >= FREE_ROUNDS:
            implied_ns = (implied_ns + tried.tasks.dur_ns) // 2
        tried = replace(plain, tasks=replace(plain.tasks, dur_ns=implied_ns))
        schedule = replay(tried, residuals=residuals)
    return best.graph, best.schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    graph: TaskGraph
    schedule: Schedule
    off_ns: int
    """How far its durations are from those that its schedule implies, all together."""


def _implied(plain: TaskGraph, schedule: Schedule, couplings: Sequence[Coupling]) -> Int64:
    """Durations that follow from a schedule; changes of several couplings add up."""
    plain_ns = plain.tasks.dur_ns
    implied_ns = plain_ns.copy()
    for coupling in couplings:
        implied_ns += coupling.durations(plain, schedule) - plain_ns
    return np.maximum(implied_ns, 0)


def _length_ns(schedule: Schedule) -> int:
    return int(schedule.end_ns.max() - schedule.start_ns.min()) if len(schedule.end_ns) else 0
