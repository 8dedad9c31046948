"""The order of the parts: from a recorded run and a target to the graph of the target."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from replay.graph.arrays import TaskGraph
from replay.graph.work import UNKNOWN
from whatif.description.described import Described
from whatif.models.coverage import Coverage
from whatif.models.memory.told import MemoryTold
from whatif.parallelism import layout_of
from whatif.tape.assemble import assemble
from whatif.tape.cut import cut
from whatif.tape.segments import Program, Tape
from whatif.transforms.base import Context
from whatif.transforms.relayout.communication import recommunicated
from whatif.transforms.relayout.copies import with_spread
from whatif.transforms.relayout.coverage import coverage
from whatif.transforms.relayout.exchanges.tied import with_tied_sums
from whatif.transforms.relayout.kernels import reshaped
from whatif.transforms.relayout.memory import fits, judged
from whatif.transforms.relayout.messages import without_messages
from whatif.transforms.relayout.network import networked
from whatif.transforms.relayout.parts import Ask
from whatif.transforms.relayout.programs import programs_of, stage_layers
from whatif.transforms.relayout.refuse import refuse
from whatif.transforms.relayout.settle import settled
from whatif.transforms.relayout.structure import same_structure


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The run in its new layout."""

    graph: TaskGraph
    described: Described
    """Of it."""
    context: Context
    """The machine, with links that the recorded run did not need."""
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
    doubts = refuse(graph, ask.described, ask.target)
    world = ask.target.degrees.world
    context, network = networked(graph, ask.context, world)
    ask = replace(ask, context=context)
    kernels = reshaped(cut(graph, ask.described.labels), ask)
    calls = recommunicated(kernels.tape, ask)
    programs, told = programs_of(calls.tape, ask)
    made = assemble(_without_old_messages(calls.tape, ask), programs, world_size=world)
    tied = with_tied_sums(graph, settled(made.tape, programs, ask), programs, ask)
    done = tied.tape
    rests_on = coverage(graph, done.graph)
    spread = with_spread(done.graph, graph, ask.described.labels, context.bound)
    memory = judged(ask, graph.work, context.first_device)
    return Rebuilt(
        graph=_with_peak(spread, memory),
        described=_described(done, programs, ask),
        context=context,
        assumptions=(
            *network,
            *calls.assumptions,
            *told,
            *tied.assumptions,
            *doubts,
            *kernels.assumptions,
            *fits(memory),
            *_dropped(made.dropped_edges, done.graph),
            rests_on.told,
        ),
        known_errors=(*kernels.known_errors, *calls.known_errors),
        rests_on=rests_on,
        memory=memory,
    )


def _without_old_messages(tape: Tape, ask: Ask) -> Tape:
    """Programs with another order have messages between stages of their own."""
    return tape if same_structure(ask.before, ask.target) else without_messages(tape, ask)


def _described(tape: Tape, programs: Sequence[Program], ask: Ask) -> Described:
    return replace(
        ask.described,
        shape=ask.target,
        layout=layout_of(tape.graph),
        labels=tape.labels,
        stage_of_rank={program.rank: program.stage for program in programs},
        stage_layers=tuple(
            tuple(sorted(layer for chunk in chunks for layer in chunk))
            for chunks in stage_layers(ask)
        ),
    )


def _dropped(edges: int, graph: TaskGraph) -> tuple[str, ...]:
    """Said where an order of tasks in the recording has no counterpart."""
    if not edges:
        return ()
    of_all = edges / max(len(graph.edges.src), 1)
    return (f"{edges:,} recorded orders of two tasks ({of_all:.1%}) have no counterpart",)


def _with_peak(graph: TaskGraph, memory: MemoryTold | None) -> TaskGraph:
    """The graph with the peak that its layout has, for what-ifs about the device behind it."""
    if graph.work.peak_bytes <= 0:
        return graph
    peak = None if memory is None else memory.after.peak_bytes
    work = replace(graph.work, peak_bytes=UNKNOWN if peak is None else round(peak))
    return replace(graph, work=work)
