"""Variants of one run replayed, with what runs at the same time taken into account."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from replay.engine.batch import replay_batch
from replay.engine.run import replay
from replay.engine.schedule import Schedule
from replay.engine.settle import Coupling, settle, settled_schedules
from replay.graph.arrays import Int64, TaskGraph
from replay.results.metrics import StepTimes, step_times, step_times_of_ends
from whatif.couplings.host_overlap import HostOverlap
from whatif.couplings.registry import couplings_of

ROUGH = (HostOverlap,)
Told = tuple[StepTimes, tuple[str, ...]]
"""Step times, and what is taken for granted about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """How variants of an unchanged run replay; that run itself replays as its plain graph."""

    couplings: tuple[Coupling, ...]
    residuals: bool = True

    @classmethod
    def of(
        cls,
        graph: TaskGraph,
        schedule: Schedule,
        *,
        recorded_latency_ns: Int64 | None = None,
        residuals: bool = True,
    ) -> "Answers":
        """For variants of `graph`, whose replay is `schedule` (with residuals or without).

        Args:
            graph: of the unchanged run.
            schedule: its replay.
            recorded_latency_ns: per collective, where a scenario says more than the graph.
            residuals: as for `replay`.
        """
        if recorded_latency_ns is not None:
            calls = replace(graph.collectives, latency_ns=recorded_latency_ns)
            graph = replace(graph, collectives=calls)
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

    @property
    def without_rough(self) -> "Answers | None":
        """The same without what is read off a few operators of the run; None where nothing is."""
        kept = tuple(each for each in self.couplings if not isinstance(each, ROUGH))
        return None if len(kept) == len(self.couplings) else replace(self, couplings=kept)

    def step_times(self, plain: TaskGraph) -> StepTimes:
        """Boundaries of the steps of a variant."""
        return step_times(*self.settled(plain))

    def told_of_all(self, plain: Sequence[TaskGraph], *, with_words: bool = True) -> list[Told]:
        """The same for many at once, with what is taken for granted about each."""
        graphs = plain if self.residuals else _without_residuals(plain)
        found: dict[int, Told] = {}
        for places in _alike(graphs):
            told = self._told_of_alike([graphs[place] for place in places], with_words=with_words)
            found.update(zip(places, told, strict=True))
        return [found[place] for place in range(len(plain))]

    def _told_of_alike(self, some: Sequence[TaskGraph], *, with_words: bool) -> Iterator[Told]:
        at = some[0].boundaries.task
        if not self.couplings:
            for graph, ends_ns in zip(some, replay_batch(some, at), strict=True):
                yield step_times_of_ends(graph, ends_ns), ()
            return
        for graph, schedule in zip(some, settled_schedules(some, self.couplings, at), strict=True):
            words = self.assumptions(graph, schedule) if with_words else ()
            yield step_times_of_ends(graph, schedule.end_ns[at]), words


def _alike(graphs: Sequence[TaskGraph]) -> Iterable[list[int]]:
    """Places of variants that have the same tasks; a what-if may have added some."""
    alike: dict[tuple[int, int], list[int]] = {}
    for place, graph in enumerate(graphs):
        alike.setdefault((graph.n_tasks, id(graph.boundaries.task)), []).append(place)
    return alike.values()


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
