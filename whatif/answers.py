"""Variants of one run replayed, with what runs at the same time taken into account."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

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

    def step_times(self, plain: TaskGraph) -> StepTimes:
        """Boundaries of the steps of a variant."""
        return step_times(*self.settled(plain))

    def step_times_of_all(self, plain: Sequence[TaskGraph]) -> list[StepTimes]:
        """The same for many, at once."""
        if not self.couplings and self.residuals and plain:
            ends = replay_batch(plain, plain[0].boundaries.task)
            return [step_times_of_ends(plain[0], ends_ns) for ends_ns in ends]
        with ThreadPoolExecutor() as pool:  # the compiled passes hold no lock
            return list(pool.map(self.step_times, plain))
