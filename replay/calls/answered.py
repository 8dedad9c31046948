"""One scenario: read, replayed, answered."""

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

from ingest import pipeline
from ingest.pipeline import IngestOptions
from ingest.units import Nanos
from replay.calls.replayed import graph_of
from replay.calls.stored import reading_of
from replay.calls.window import DEFAULTS, UNCHANGED, WHOLE, Paths, Window
from replay.graph.arrays import TaskGraph
from replay.results.causes import find_fetching
from replay.results.fidelity import baseline
from replay.results.flops import find_flops
from replay.results.metrics import breakdown
from whatif.levers import levers as short_levers
from whatif.report.answer import Answer
from whatif.report.findings import Findings
from whatif.report.rates import NOTHING_SAID, Workload
from whatif.report.reading import read_run
from whatif.report.view import answer_of
from whatif.scenario import Scenario
from whatif.study import Study, study
from whatif.transforms.absent import with_modelled_transfers
from whatif.unprofiled import Unprofiled, without_profiler


def analyse(
    paths: Paths,
    scenario: Scenario = UNCHANGED,
    *,
    window: Window = WHOLE,
    unprofiled_step_ns: Nanos | None = None,
    options: IngestOptions = DEFAULTS,
    workload: Workload = NOTHING_SAID,
) -> Answer:
    """Read traces (or a store), replay them, and answer the scenario.

    With `unprofiled_step_ns`, the mean step measured without the profiler, host work is scaled so
    that the replay meets it, and the scenario starts from there.

    Raises:
        UserError: the traces cannot be read or the scenario does not fit them; its children tell.
    """
    found = examine(
        paths,
        scenario,
        window=window,
        unprofiled_step_ns=unprofiled_step_ns,
        options=options,
        workload=workload,
    )
    return answer_of(found)


def examine(  # noqa: PLR0913  (all but the first two by keyword, each a choice of its own)
    paths: Paths,
    scenario: Scenario = UNCHANGED,
    *,
    window: Window = WHOLE,
    unprofiled_step_ns: Nanos | None = None,
    options: IngestOptions = DEFAULTS,
    workload: Workload = NOTHING_SAID,
    with_levers: bool = True,
) -> Findings:
    """The same with everything that the answer is written from: graph, schedules, levers.

    Raises:
        UserError: as `analyse`.
    """
    with pipeline.open_run(paths, options=options) as run:
        return found_in(
            run,
            scenario,
            window=window,
            unprofiled_step_ns=unprofiled_step_ns,
            workload=workload,
            with_levers=with_levers,
        )


def found_in(  # noqa: PLR0913  (as `examine`)
    run: pipeline.Run,
    scenario: Scenario,
    *,
    window: Window,
    unprofiled_step_ns: Nanos | None,
    workload: Workload,
    with_levers: bool,
    told_graph: Callable[[TaskGraph], None] = lambda _: None,
) -> Findings:
    """What is found in an open run; `told_graph` is given the graph of a whole run as read."""
    began = perf_counter()
    as_read, facts = graph_of(run, window)
    if window == WHOLE:
        told_graph(as_read)
    fetching = find_fetching(run.store)
    flops = find_flops(run.store, as_read, facts)
    graph = with_modelled_transfers(as_read, scenario.base)
    base, unprofiled = baseline(graph, facts), None
    run_reading = read_run(graph, base, facts, fetching)
    if unprofiled_step_ns is not None:
        graph, base, unprofiled = without_profiler(graph, base, unprofiled_step_ns)
    asked = study(graph, base, scenario) if scenario.transforms else None
    saving = short_levers(graph, base) if with_levers else None
    return Findings(
        graph=graph,
        facts=facts,
        baseline=base,
        breakdown=breakdown(graph, base.schedule),
        run=run_reading,
        workload=workload,
        flops=flops,
        fetching=fetching,
        study=None if asked is None else on_base(asked, unprofiled),
        levers=saving,
        unprofiled=unprofiled,
        reading=reading_of(run, began),
    )


def on_base(asked: Study, unprofiled: Unprofiled | None) -> Study:
    """The study with the base that it started from among its assumptions."""
    if unprofiled is None:
        return asked
    return replace(asked, assumptions=(unprofiled.assumption, *asked.assumptions))
