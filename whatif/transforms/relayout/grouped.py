"""Tasks by what decides their factor, so that it is told once for all that agree in it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ingest.vocab import KernelClass, Phase
from replay.graph.arrays import Bool, Int8, Int64
from replay.graph.work import Float64
from whatif.models.bound import Bound
from whatif.models.places import Part, Pass, Place
from whatif.models.shape import ModelShape
from whatif.tape.segments import Tape
from whatif.transforms.relayout.factors import Factor, Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """Columns with one row per task: its factor, and what it was decided by."""

    where: tuple[Where, ...]
    """Distinct."""
    row: Int64
    """Per task: into `where`."""
    factors: tuple[Factor, ...]
    """One per `where`."""

    def of(self, name: str) -> Float64:
        """A field of the factor of each task."""
        values = np.array([getattr(factor, name) for factor in self.factors], float)
        return values[self.row]

    def size(self, bound: Bound) -> Float64:
        """Of bytes or FLOPs of each task, at an end of the range."""
        return self.of({Bound.NOMINAL: "size", Bound.LOW: "low", Bound.HIGH: "high"}[bound])

    def which(self, holds: Callable[[Where], bool]) -> Bool:
        """Tasks for which that holds."""
        return np.array([holds(where) for where in self.where], bool)[self.row]

    @property
    def same(self) -> Bool:
        """Tasks that stay as they are."""
        return np.array([factor.is_same for factor in self.factors], bool)[self.row]


def factors_of(
    tape: Tape,
    task: Int64,
    kernel_class: Int8,
    model: ModelShape,
    factor: Callable[[Where], Factor],
) -> Factors:
    """The factor of each task.

    Args:
        tape: tasks and labels.
        task: which.
        kernel_class: of each of them.
        model: of the recorded run.
        factor: of what decides it.
    """
    labels, tasks = tape.labels, tape.graph.tasks
    layered = labels.part[task] == Part.LAYER
    dense = (labels.layer[task] >= 0) & (labels.layer[task] < model.dense_layers)
    has_experts = layered & ~dense & (model.experts is not None)
    columns = (
        labels.part[task],
        labels.direction[task],
        labels.place[task],
        kernel_class,
        tasks.phase[task],
        has_experts,
    )
    distinct, row = np.unique(
        np.stack(columns, axis=1).astype(np.int64), axis=0, return_inverse=True
    )
    attention = (tasks.kernel_class == KernelClass.ATTENTION).any()
    where = tuple(
        _where(tuple(each), model, writes_scores=not attention) for each in distinct.tolist()
    )
    return Factors(where=where, row=row.reshape(-1), factors=tuple(factor(each) for each in where))


def _where(row: tuple[int, ...], model: ModelShape, *, writes_scores: bool) -> Where:
    part, direction, place, kernel_class, phase, has_experts = row
    return Where(
        part=Part(part),
        direction=Pass(direction),
        place=Place(place),
        kernel_class=KernelClass(kernel_class),
        phase=Phase(phase),
        has_experts=bool(has_experts),
        shares_experts=model.shared_experts > 0,
        writes_scores=writes_scores,
    )
