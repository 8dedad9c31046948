"""All couplings of a run."""

from collections.abc import Callable

from replay.engine.schedule import Schedule
from replay.engine.settle import Coupling
from replay.graph.arrays import TaskGraph
from whatif.couplings.contention import contention
from whatif.couplings.host_overlap import host_overlap

BUILDERS: tuple[Callable[[TaskGraph, Schedule], Coupling | None], ...] = (contention, host_overlap)
"""Each builds a coupling from the unchanged run and its schedule; None where nothing overlaps."""


def couplings_of(graph: TaskGraph, schedule: Schedule) -> tuple[Coupling, ...]:
    """The couplings of a run, from its unchanged graph and that graph's replay."""
    built = (build(graph, schedule) for build in BUILDERS)
    return tuple(coupling for coupling in built if coupling is not None)
