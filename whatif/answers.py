"""Variants of one run replayed, with what runs at the same time taken into account."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from replay.engine.batch import replay_batch
from replay.engine.run import replay
from replay.engine.schedule import Schedule
from replay.engine.settle import Coupling, settle, settle_batch
from replay.graph.arrays import Int32, Int64, TaskGraph
from replay.results.metrics import StepTimes, step_times, step_times_of_ends
from whatif.couplings.host_overlap import HostOverlap
from whatif.couplings.registry import couplings_of

ROUGH = (HostOverlap,)


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

    def step_times_of_all(self, plain: Sequence[TaskGraph]) -> list[StepTimes]:
        """The same for many, at once; those with other tasks than most one by one."""
        assert self.residuals, "strict replays are not replayed in batches"
        if not plain:
            return []
        usual, _ = Counter(graph.n_tasks for graph in plain).most_common(1)[0]
        alike = [graph for graph in plain if graph.n_tasks == usual]
        ends = iter(self._ends(alike, alike[0].boundaries.task))
        return [
            step_times_of_ends(graph, next(ends))
            if graph.n_tasks == usual
            else self.step_times(graph)
            for graph in plain
        ]

    def _ends(self, plain: Sequence[TaskGraph], at: Int32) -> Int64:
        if self.couplings:
            return settle_batch(plain, self.couplings, at)
        return replay_batch(plain, at)
