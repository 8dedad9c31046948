"""The strict replay beside the recording, step by step and rank by rank."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from replay.graph.arrays import Int64, TaskGraph
from replay.results.fidelity import Baseline, StartError, start_error
from replay.results.unexplained import path_unexplained_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A step of the run, or a rank's mean step; lengths in ns."""

    number: int
    """Step as recorded, or rank."""
    measured_ns: int
    strict_ns: int
    replayed_ns: int
    """Calibrated."""
    start: StartError
    unexplained_ns: int
    """Residuals and silence of unknown cause on the run's critical path, in this step or on this
    rank."""

    @property
    def strict_error_frac(self) -> float | None:
        """Signed; None where nothing was measured."""
        return (self.strict_ns - self.measured_ns) / self.measured_ns if self.measured_ns else None


def by_step(graph: TaskGraph, base: Baseline) -> Iterator[Judged]:
    """Steps of the run in order; device tasks count in the step that issued them."""
    unexplained_ns = path_unexplained_ns(graph, base.path)
    starts_ns = base.schedule.start_ns[base.path.task]
    at = np.searchsorted(base.replayed.boundary_ns, starts_ns, side="right") - 1
    at = np.clip(at, 0, len(graph.steps) - 1)
    columns = (base.measured, base.strict, base.replayed)
    per_step: list[Int64] = [column.per_step_ns for column in columns]
    for place, number in enumerate(graph.steps):
        measured_ns, strict_ns, replayed_ns = (int(column[place]) for column in per_step)
        yield Judged(
            number=number,
            measured_ns=measured_ns,
            strict_ns=strict_ns,
            replayed_ns=replayed_ns,
            start=start_error(graph, base.strict_schedule, graph.tasks.step == place),
            unexplained_ns=int(unexplained_ns[at == place].sum()),
        )


def by_rank(graph: TaskGraph, base: Baseline) -> Iterator[Judged]:
    """Mean step of each rank by its own boundaries, in the order of `graph.ranks`."""
    unexplained_ns = path_unexplained_ns(graph, base.path)
    on_rank = graph.tasks.rank[base.path.task]
    for place, info in enumerate(graph.ranks):
        yield Judged(
            number=info.rank,
            measured_ns=base.measured.rank_mean_ns(place),
            strict_ns=base.strict.rank_mean_ns(place),
            replayed_ns=base.replayed.rank_mean_ns(place),
            start=start_error(graph, base.strict_schedule, graph.tasks.rank == info.rank),
            unexplained_ns=int(unexplained_ns[on_rank == info.rank].sum()),
        )
