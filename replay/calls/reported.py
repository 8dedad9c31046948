"""The post-mortem of a run."""

import shlex
from pathlib import Path

from ingest import pipeline
from ingest.pipeline import IngestOptions
from ingest.units import Nanos
from replay.asking import Asking
from replay.calls.answered import found_in
from replay.calls.compared import diff, name_of, side, side_of
from replay.calls.program import program
from replay.calls.window import DEFAULTS, UNCHANGED, WHOLE, Paths, Window
from replay.run import Run
from whatif.compare.gate import Limit
from whatif.levers import lever_table
from whatif.postmortem.build import build_report
from whatif.postmortem.contract import Report
from whatif.postmortem.material import Material
from whatif.postmortem.replays import Replays
from whatif.report.columns import to_type
from whatif.report.levers import levers_answer
from whatif.report.rates import NOTHING_SAID, Workload
from whatif.report.run_facts import run_facts
from whatif.report.view import answer_of
from whatif.scenario import Scenario


def report(  # noqa: PLR0913  (as `examine`)
    paths: Paths,
    scenario: Scenario = UNCHANGED,
    *,
    command: str | None = None,
    window: Window = WHOLE,
    unprofiled_step_ns: Nanos | None = None,
    options: IngestOptions = DEFAULTS,
    workload: Workload = NOTHING_SAID,
    against: Paths | None = None,
    limit: Limit | None = None,
) -> Report:
    """The post-mortem report of a run: fifteen sections, findings, and the SQL behind them.

    Args:
        paths: as `analyse`.
        scenario: told among the what-ifs of the report.
        command: as it was typed, to make the report again; None spells it out of the arguments.
        window: the part of the run that counts.
        unprofiled_step_ns: as `analyse`.
        options: how traces are read.
        workload: what a step does.
        against: a baseline that this run is compared with, all of its ranks and steps.
        limit: how much slower than the baseline it may be.

    Raises:
        UserError: as `analyse`.
    """
    before = None if against is None else side(against, options=options)
    opened = pipeline.open_run(paths, options=options)
    with Run(opened, announce=options.announce) as run:
        found = found_in(
            opened,
            scenario,
            window=window,
            unprofiled_step_ns=unprofiled_step_ns,
            workload=workload,
            with_levers=False,
            told_graph=run.know_graph,
        )
        asking = Asking(run, trace=_typed(paths, run), window=window.as_values())
        table = lever_table(found.graph, found.baseline)
        material = Material(
            name=_named(paths),
            trace=_typed(paths, run),
            command=command or _spelled(paths, scenario, window),
            findings=found,
            answer=answer_of(found),
            levers=levers_answer(run_facts(found), table),
            sources=asking.sources(),
            ask=asking,
            replays=Replays(found.graph, found.baseline, table),
            recorded=scenario.base,
            comparison=(
                None
                if before is None
                else diff(before, side_of(opened, name_of(paths), window), limit)
            ),
        )
        return build_report(material, program=program())


def _spelled(paths: Paths, scenario: Scenario, window: Window) -> str:
    """The command that does what a call from Python did."""
    words = ["replay report", *(shlex.quote(str(path)) for path in paths)]
    words += [to_type(change.flag) for change in scenario.transforms]
    words += [scenario.base.flags] if scenario.base.flags else []
    if window.ranks is not None:
        words.append(f"--ranks {','.join(map(str, window.ranks))}")
    if window.steps is not None:
        words.append(f"--steps {window.steps.start}:{window.steps.stop}")
    return " ".join(words)


def _named(paths: Paths) -> str:
    """What a person would call the run: the last words of its paths."""
    return " ".join(Path(path).resolve().name for path in paths)


def _typed(paths: Paths, run: Run) -> str:
    """The run as one TRACE: `replay sql` takes one, so several files are named by their store."""
    return shlex.quote(str(paths[0] if len(paths) == 1 else run.path))
