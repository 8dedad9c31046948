"""A run that is read and replayed once, and then asked many what-ifs."""

from dataclasses import dataclass, replace
from time import perf_counter

from ingest import pipeline
from ingest.pipeline import IngestOptions
from ingest.units import Nanos
from replay.calls.stored import reading_of
from replay.calls.window import DEFAULTS, WHOLE, Paths, Window
from replay.graph.arrays import TaskGraph
from replay.graph.build import build
from replay.graph.facts import GraphFacts
from replay.results.fidelity import Baseline, baseline
from replay.results.kernel_work import find_kernel_work
from replay.results.task_scopes import find_scopes
from whatif.recorded import NOTHING_SAID, Recorded
from whatif.report.findings import Reading
from whatif.sweep import Unchanged
from whatif.transforms.absent import with_modelled_transfers
from whatif.unprofiled import Unprofiled, without_profiler


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A run that was read and replayed once, to be asked many what-ifs."""

    recorded: Recorded
    """What was said of the recorded machine."""
    graph: TaskGraph
    facts: GraphFacts
    baseline: Baseline
    unprofiled: Unprofiled | None
    reading: Reading
    as_read: TaskGraph
    """Before what is said of the machine bounds transfers, and before the host is scaled."""

    def on(self, recorded: Recorded) -> Unchanged:
        """The run and its replay, were something else said of the recorded machine."""
        if recorded == self.recorded:
            return self.graph, self.baseline
        step_ns = None if self.unprofiled is None else self.unprofiled.step_ns
        graph, base, _ = replayed_graph(self.as_read, self.facts, recorded, step_ns)
        return graph, base


def replay_run(
    paths: Paths,
    *,
    recorded: Recorded = NOTHING_SAID,
    window: Window = WHOLE,
    unprofiled_step_ns: Nanos | None = None,
    options: IngestOptions = DEFAULTS,
) -> Replayed:
    """Read traces (or a store) and replay them as they are, for `levers`, `sweep` and `solve`.

    Args:
        paths: as `analyse`.
        recorded: what is said of the recorded machine, as the scenarios say it.
        window: the part of the run that counts.
        unprofiled_step_ns: mean step measured without the profiler, which the host then meets.
        options: how traces are read.

    Raises:
        UserError: the traces cannot be read, or no host meets the step without the profiler.
    """
    began = perf_counter()
    with pipeline.open_run(paths, options=options) as run:
        as_read, facts = graph_of(run, window)
        graph, base, unprofiled = replayed_graph(as_read, facts, recorded, unprofiled_step_ns)
        return Replayed(
            recorded=recorded,
            graph=graph,
            facts=facts,
            baseline=base,
            unprofiled=unprofiled,
            reading=reading_of(run, began),
            as_read=as_read,
        )


def graph_of(run: pipeline.Run, window: Window) -> tuple[TaskGraph, GraphFacts]:
    """The graph of a part of a run, with what is known of its kernels and around its tasks."""
    built = build(run.store, ranks=window.ranks, steps=window.steps)
    work = find_kernel_work(run.store, built.graph.names, built.facts)
    scopes = find_scopes(run.store, built.graph, built.facts)
    return replace(built.graph, work=work, scopes=scopes), built.facts


def replayed_graph(
    as_read: TaskGraph, facts: GraphFacts, recorded: Recorded, unprofiled_step_ns: Nanos | None
) -> tuple[TaskGraph, Baseline, Unprofiled | None]:
    """The graph that what-ifs start from, its replay, and what was done to the host."""
    graph = with_modelled_transfers(as_read, recorded)
    base = baseline(graph, facts)
    if unprofiled_step_ns is None:
        return graph, base, None
    return without_profiler(graph, base, unprofiled_step_ns)
