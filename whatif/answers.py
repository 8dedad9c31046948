"""Variants of one run replayed, with what runs at the same time taken into account."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from replay.engine.batch import replay_batch
from replay.engine.run import replay
from replay.engine.schedule import Schedule
from replay.engine.settle import Coupling, settle
from replay.graph.arrays import Int64, TaskGraph
from replay.results.metrics import StepTimes, step_times, step_times_of_ends
from whatif.couplings.registry import couplings_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """How variants of an unchanged run replay; that run itself replays as its plain graph."""

    couplings: tuple[Coupling, ...]
    residuals: bool = True

    @classmethod
    def of(cls, graph: TaskGraph, schedule: Schedule, *, residuals: bool = True) -> "Answers":
        """For variants of `graph`, whose replay is `schedule` (with residuals or without)."""
        return cls(couplings=couplings_of(graph, schedule), residuals=residuals)

    def settled(self, plain: TaskGraph) -> tuple[TaskGraph, Schedule]:
        """A variant with durations that agree with its schedule, and that schedule."""
        if not self.couplings:
            return plain, replay(plain, residuals=self.residuals)
        return settle(plain, self.couplings, residuals=self.residuals)

    def assumptions(self, plain: TaskGraph, schedule: Schedule) -> tuple[str, ...]:
        """What the couplings that change durations of a variant take for granted."""
        return tuple(
            coupling.assumption
            for coupling in self.couplings
            if (coupling.durations(plain, schedule) != plain.tasks.dur_ns).any()
        )

    def step_times(self, plain: TaskGraph) -> StepTimes:
        """Boundaries of the steps of a variant."""
        return step_times(*self.settled(plain))

    def step_times_of_all(self, plain: Sequence[TaskGraph]) -> list[StepTimes]:
        """The same for many, at once where nothing depends on what runs beside it."""
        if self.couplings:
            return [self.step_times(one) for one in plain]
        return _together(plain if self.residuals else _without_residuals(plain))

    def told_of_all(self, plain: Sequence[TaskGraph]) -> list[tuple[StepTimes, tuple[str, ...]]]:
        """The same with what is taken for granted about each."""
        if not self.couplings:
            return [(times, ()) for times in self.step_times_of_all(plain)]
        settled = [(one, *self.settled(one)) for one in plain]
        return [
            (step_times(graph, schedule), self.assumptions(one, schedule))
            for one, graph, schedule in settled
        ]


def _together(plain: Sequence[TaskGraph]) -> list[StepTimes]:
    """Of variants of one graph; those with other tasks than the rest replay apart."""
    alike: dict[tuple[int, int], list[int]] = {}
    for place, graph in enumerate(plain):
        alike.setdefault((graph.n_tasks, id(graph.boundaries.task)), []).append(place)
    found: dict[int, StepTimes] = {}
    for places in alike.values():
        some = [plain[place] for place in places]
        ends_ns = replay_batch(some, some[0].boundaries.task)
        for place, graph, row_ns in zip(places, some, ends_ns, strict=True):
            found[place] = step_times_of_ends(graph, row_ns)
    return [found[place] for place in range(len(plain))]


def _without_residuals(plain: Sequence[TaskGraph]) -> list[TaskGraph]:
    """All graphs of one size share the column, so that they replay together."""
    none_ns: dict[int, Int64] = {}
    for graph in plain:
        if graph.n_tasks not in none_ns:
            none_ns[graph.n_tasks] = np.zeros(graph.n_tasks, np.int64)
            none_ns[graph.n_tasks].flags.writeable = False
    return [
        replace(one, tasks=replace(one.tasks, residual_ns=none_ns[one.n_tasks])) for one in plain
    ]
