"""The order of the parts: from a recorded run and a target to the graph of the target."""

from dataclasses import dataclass, replace

from replay.graph.arrays import TaskGraph
from replay.graph.work import UNKNOWN
from whatif.models.coverage import Coverage
from whatif.models.memory.told import MemoryTold
from whatif.tape.assemble import assemble
from whatif.tape.cut import cut
from whatif.transforms.machine import recorded_device
from whatif.transforms.relayout.communication import recommunicated
from whatif.transforms.relayout.coverage import coverage
from whatif.transforms.relayout.kernels import reshaped
from whatif.transforms.relayout.memory import fits, judged
from whatif.transforms.relayout.parts import Ask
from whatif.transforms.relayout.programs import programs_of
from whatif.transforms.relayout.refuse import refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The run in its new layout."""

    graph: TaskGraph
    assumptions: tuple[str, ...]
    known_errors: tuple[str, ...]
    rests_on: Coverage
    memory: MemoryTold | None
    """None where nothing is known of it."""


def rebuilt(graph: TaskGraph, ask: Ask) -> Rebuilt:
    """Make the graph of the target.

    Raises:
        ScenarioError: the target cannot be, or the run does not tell enough for it.
    """
    refuse(ask.described, ask.target)
    tape = cut(graph, ask.described.labels)
    kernels = reshaped(tape, ask)
    calls = recommunicated(kernels.tape, ask)
    programs, told = programs_of(calls.tape, ask)
    made = assemble(calls.tape, programs, world_size=ask.target.degrees.world)
    rests_on = coverage(graph, made.tape.graph)
    memory = judged(ask, graph.work, recorded_device(graph, ask.context.recorded))
    return Rebuilt(
        graph=_with_peak(made.tape.graph, memory),
        assumptions=(
            *kernels.assumptions,
            *calls.assumptions,
            *told,
            *fits(memory),
            rests_on.told,
        ),
        known_errors=(*kernels.known_errors, *calls.known_errors),
        rests_on=rests_on,
        memory=memory,
    )


def _with_peak(graph: TaskGraph, memory: MemoryTold | None) -> TaskGraph:
    """The graph with the peak that its layout has, for what-ifs about the device behind it."""
    if graph.work.peak_bytes <= 0:
        return graph
    peak = None if memory is None else memory.after.peak_bytes
    work = replace(graph.work, peak_bytes=UNKNOWN if peak is None else round(peak))
    return replace(graph, work=work)
