"""The order of the parts: from a recorded run and a target to the graph of the target."""

from dataclasses import dataclass

from replay.graph.arrays import TaskGraph
from whatif.tape.assemble import assemble
from whatif.tape.cut import cut
from whatif.transforms.relayout.communication import recommunicated
from whatif.transforms.relayout.coverage import Coverage
from whatif.transforms.relayout.kernels import reshaped
from whatif.transforms.relayout.memory import fits
from whatif.transforms.relayout.parts import Ask, Part
from whatif.transforms.relayout.programs import programs_of
from whatif.transforms.relayout.refuse import refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The run in its new layout."""

    graph: TaskGraph
    assumptions: tuple[str, ...]
    known_errors: tuple[str, ...]


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
    return Rebuilt(
        graph=made.tape.graph,
        assumptions=(
            *kernels.assumptions,
            *calls.assumptions,
            *told,
            *fits(ask),
            _coverage(made.tape.graph, (kernels, calls)).told,
        ),
        known_errors=(*kernels.known_errors, *calls.known_errors),
    )


def _coverage(graph: TaskGraph, parts: tuple[Part, ...]) -> Coverage:
    whole = max(int(graph.tasks.dur_ns.sum()), 1)
    scaled, made = (
        min(sum(getattr(part, name) for part in parts) / whole, 1.0)
        for name in ("scaled_ns", "made_ns")
    )
    return Coverage(measured_frac=max(1 - scaled - made, 0.0), scaled_frac=scaled, made_frac=made)
