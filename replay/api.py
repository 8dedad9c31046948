"""What a notebook calls; each command of the command line is one call of it."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

from ingest import pipeline
from ingest.errors import TraceError, UsageError
from ingest.pipeline import IngestOptions
from ingest.store import Store
from ingest.units import Nanos
from replay.asking import Asking
from replay.engine.run import replay
from replay.export.chakra import WrittenTraces, write_execution_traces
from replay.export.files import is_one_file, refuse_traces
from replay.export.tables import Tables, write_tables
from replay.export.timeline import Timelines, read_recording, write_apart, write_together
from replay.graph.arrays import TaskGraph
from replay.graph.build import build
from replay.graph.facts import GraphFacts
from replay.queries.load import Value
from replay.results.causes import find_fetching
from replay.results.clean_step import measured_without_profiler
from replay.results.fidelity import Baseline, baseline
from replay.results.flops import find_flops
from replay.results.frames import host_frames
from replay.results.kernel_work import find_kernel_work
from replay.results.metrics import breakdown, step_times
from replay.results.perfetto import Version
from replay.run import Run, describe
from replay.table import Table
from whatif.compare.contract import Diff
from whatif.compare.diff import diff as compared
from whatif.compare.gate import Limit
from whatif.compare.prediction import read_prediction as read_prediction
from whatif.compare.side import Side
from whatif.compare.verify import Verification
from whatif.compare.verify import verify as verified
from whatif.levers import lever_table
from whatif.levers import levers as short_levers
from whatif.many import Ranges
from whatif.postmortem.build import build_report
from whatif.postmortem.contract import Report
from whatif.postmortem.material import Material
from whatif.postmortem.replays import Replays
from whatif.recorded import NOTHING_SAID as TRACE_TELLS
from whatif.recorded import Recorded
from whatif.report.answer import Answer
from whatif.report.columns import to_type
from whatif.report.findings import Findings, Reading
from whatif.report.levers import LeversAnswer, levers_answer
from whatif.report.rates import NOTHING_SAID, Workload
from whatif.report.reading import read_run
from whatif.report.run_facts import RunFacts, run_facts
from whatif.report.solve import SolveAnswer, solve_answer
from whatif.report.sweep import SweepAnswer, sweep_answer
from whatif.report.view import answer_of
from whatif.scenario import Scenario
from whatif.solve import Knob
from whatif.solve import solve as solved
from whatif.study import Study, study
from whatif.sweep import Point, Unchanged
from whatif.sweep import sweep as swept
from whatif.transforms.absent import with_modelled_transfers
from whatif.unprofiled import Unprofiled, without_profiler

Paths = Sequence[Path | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The part of a run that counts; None is all of it."""

    ranks: tuple[int, ...] | None = None
    steps: range | None = None
    """Recorded step numbers, half-open."""

    def as_values(self) -> dict[str, Value]:
        """Parameters of the named queries that know parts of a run."""
        return {
            "ranks": None if self.ranks is None else ",".join(map(str, self.ranks)),
            "first_step": None if self.steps is None else self.steps.start,
            "last_step": None if self.steps is None else self.steps.stop - 1,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Where the tables of a run lie."""

    reading: Reading
    files: int
    events: int


WHOLE = Window()
DEFAULTS = IngestOptions()
UNCHANGED = Scenario()


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
        return _found(
            run,
            scenario,
            window=window,
            unprofiled_step_ns=unprofiled_step_ns,
            workload=workload,
            with_levers=with_levers,
        )


def _found(
    run: pipeline.Run,
    scenario: Scenario,
    *,
    window: Window,
    unprofiled_step_ns: Nanos | None,
    workload: Workload,
    with_levers: bool,
) -> Findings:
    """What is found in an open run."""
    began = perf_counter()
    as_read, facts = _graph_of(run, window)
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
        reading=replace(_reading(run), seconds=perf_counter() - began),
    )


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
        found = _found(
            opened,
            scenario,
            window=window,
            unprofiled_step_ns=unprofiled_step_ns,
            workload=workload,
            with_levers=True,
        )
        asking = Asking(run, trace=_typed(paths, run), window=window.as_values())
        table = lever_table(found.graph, found.baseline)
        told = run_facts(
            found.graph, found.facts, found.baseline, files_failed=len(found.reading.failed)
        )
        material = Material(
            name=_named(paths),
            trace=_typed(paths, run),
            command=command or _spelled(paths, scenario, window),
            findings=found,
            answer=answer_of(found),
            levers=levers_answer(told, table),
            sources=asking.sources(),
            ask=asking,
            replays=Replays(found.graph, found.baseline, table),
            recorded=scenario.base,
            comparison=(
                None
                if before is None
                else diff(before, _side(opened, _called(paths), window), limit)
            ),
        )
        return build_report(material, program=program())


def program() -> str:
    """Name and version; run from a folder that is not installed, it has no version."""
    try:
        return f"trace-replay {version('trace-replay')}"
    except PackageNotFoundError:
        return "trace-replay, not installed"


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


def _called(paths: Paths) -> str:
    """The paths as one word or a few."""
    return " ".join(str(path) for path in paths)


def _named(paths: Paths) -> str:
    """What a person would call the run: the last words of its paths, as many as tell them apart."""
    places = list(dict.fromkeys(Path(path).resolve() for path in paths))
    for words in range(1, max((len(place.parts) for place in places), default=1)):
        names = ["/".join(place.parts[-words:]) for place in places]
        if len(set(names)) == len(names):
            return " ".join(names)
    return " ".join(map(str, places))


def _typed(paths: Paths, run: Run) -> str:
    """The run as one TRACE: `replay sql` takes one, so several files are named by their store."""
    return shlex.quote(str(paths[0] if len(paths) == 1 else run.path))


def side(paths: Paths, *, window: Window = WHOLE, options: IngestOptions = DEFAULTS) -> Side:
    """Read and replay a run as it is, for `diff` and `verify`.

    Raises:
        UserError: as `analyse`.
    """
    with pipeline.open_run(paths, options=options) as run:
        return _side(run, _called(paths), window)


def _side(run: pipeline.Run, name: str, window: Window) -> Side:
    """An open run as it is compared."""
    graph, facts = _graph_of(run, window)
    base, fetching = baseline(graph, facts), find_fetching(run.store)
    return Side(
        name=name,
        graph=graph,
        facts=facts,
        baseline=base,
        reading=read_run(graph, base, facts, fetching),
        fetching=fetching,
        frames=host_frames(run.store, graph, facts),
        failed=_failed(run),
    )


def diff(a: Side, b: Side, limit: Limit | None = None) -> Diff:
    """What accounts for the difference of two runs; `a` is the baseline.

    Args:
        a: of `side`.
        b: of `side`.
        limit: how much slower `b` may be.
    """
    return compared(a, b, limit)


def verify(
    prediction: Answer, run: Side, *, name: str = "prediction", limit: Limit | None = None
) -> Verification:
    """How good a prediction was.

    Args:
        prediction: an answer to a what-if, also one that `read_prediction` reads from a file.
        run: made later, of `side`.
        name: of the prediction.
        limit: how far off it may be.
    """
    return verified(prediction, name, run, limit)


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

    @property
    def told(self) -> RunFacts:
        """What every answer says of it."""
        failed = len(self.reading.failed)
        return run_facts(self.graph, self.facts, self.baseline, files_failed=failed)

    def on(self, recorded: Recorded) -> Unchanged:
        """The run and its replay, were something else said of the recorded machine."""
        if recorded == self.recorded:
            return self.graph, self.baseline
        step_ns = None if self.unprofiled is None else self.unprofiled.step_ns
        graph, base, _ = _replayed(self.as_read, self.facts, recorded, step_ns)
        return graph, base


def replay_run(
    paths: Paths,
    *,
    recorded: Recorded = TRACE_TELLS,
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
        as_read, facts = _graph_of(run, window)
        reading = _reading(run)
    graph, base, unprofiled = _replayed(as_read, facts, recorded, unprofiled_step_ns)
    return Replayed(
        recorded=recorded,
        graph=graph,
        facts=facts,
        baseline=base,
        unprofiled=unprofiled,
        reading=replace(reading, seconds=perf_counter() - began),
        as_read=as_read,
    )


def _graph_of(run: pipeline.Run, window: Window) -> tuple[TaskGraph, GraphFacts]:
    """The graph of a part of a run, with what its kernels compute and move."""
    built = build(run.store, ranks=window.ranks, steps=window.steps)
    work = find_kernel_work(run.store, built.graph.names, built.facts)
    return replace(built.graph, work=work), built.facts


def _replayed(
    as_read: TaskGraph, facts: GraphFacts, recorded: Recorded, unprofiled_step_ns: Nanos | None
) -> tuple[TaskGraph, Baseline, Unprofiled | None]:
    """The graph that what-ifs start from, its replay, and what was done to the host."""
    graph = with_modelled_transfers(as_read, recorded)
    base = baseline(graph, facts)
    if unprofiled_step_ns is None:
        return graph, base, None
    return without_profiler(graph, base, unprofiled_step_ns)


def levers(run: Replayed, scenario: Scenario = UNCHANGED) -> LeversAnswer:
    """What every lever of the run would give, on top of a scenario.

    Raises:
        ScenarioError: the scenario does not fit the run.
    """
    return levers_answer(run.told, lever_table(run.graph, run.baseline, scenario))


def sweep(
    run: Replayed,
    points: Sequence[Point],
    *,
    ranges: Ranges | None = None,
    progress: Callable[[float], None] = lambda _share: None,
) -> SweepAnswer:
    """The run under every scenario of a grid, as `whatif.sweep.grid` makes it.

    Raises:
        ScenarioError: no point fits the run.
    """
    found = swept(run.on, points, ranges=ranges, progress=progress)
    return sweep_answer(run.told, found)


LEAST_GOAL, MOST_GOAL = 1e-6, 1e6
"""Speedups that may be asked for: 10 ms is 3 hours with the least, 10 ns with the most."""
MOST_STEP_NS = 24 * 3600 * 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A step that shall be met; exactly one of the two is given."""

    speedup: float | None = None
    """Against the replayed run."""
    step_ns: Nanos | None = None

    def __post_init__(self) -> None:
        """Refuse none, both, and what is no speed."""
        if (self.speedup is None) == (self.step_ns is None):
            raise UsageError("a goal is --speedup or --step, one of them", hint="--speedup 1.3")
        if self.speedup is not None and not LEAST_GOAL <= self.speedup <= MOST_GOAL:
            raise UsageError(
                f"`{self.speedup:g}` is no speedup to be had",
                hint=f"from {LEAST_GOAL:g} to {MOST_GOAL:,.0f}, for example --speedup 1.3",
            )
        if self.step_ns is not None and self.step_ns < 1:
            raise UsageError(f"{self.step_ns} ns is no step", hint="for example --step 30ms")
        if self.step_ns is not None and self.step_ns > MOST_STEP_NS:
            raise UsageError("a goal of more than a day is no step", hint="for example --step 30ms")

    def in_ns(self, replayed_ns: Nanos) -> Nanos:
        """The longest step that meets it, at least 1 ns."""
        if self.speedup is not None:
            return Nanos(max(int(replayed_ns / self.speedup), 1))
        assert self.step_ns is not None, "one of the two is given"
        return self.step_ns


def solve(
    run: Replayed, knob: Knob, goal: Goal, *, flag: Callable[[float], str] = "{:g}".format
) -> SolveAnswer:
    """How much of one what-if the goal needs.

    Args:
        run: read and replayed.
        knob: the what-if, with a number.
        goal: a speedup or a step.
        flag: the knob with a value, as it is typed.

    Raises:
        ScenarioError: no value of the knob fits the run.
    """
    goal_ns = goal.in_ns(run.baseline.replayed.mean_ns)
    found = solved(run.graph, run.baseline, knob, goal_ns)
    return solve_answer(run.told, found, knob.name, flag)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Timelines that were written, with what they show."""

    timelines: Timelines
    steps_ns: Mapping[str, Nanos]
    """Mean step of each version, by its label."""
    labels: tuple[str, ...]
    """The what-ifs as they were understood."""
    reading: Reading


def export_timeline(
    paths: Paths,
    scenario: Scenario = UNCHANGED,
    *,
    output: Path,
    window: Window = WHOLE,
    unprofiled_step_ns: Nanos | None = None,
    options: IngestOptions = DEFAULTS,
) -> Exported:
    """Draw the recorded run and the predicted one for trace viewers.

    Without a what-if the second is the strict replay, in which nothing is fitted to a single task;
    after `unprofiled_step_ns` it is the replay that meets that step.

    Args:
        paths: as `analyse`.
        scenario: what is predicted.
        output: `.json` or `.json.gz`: all in one Chrome trace. Any other name: a folder of one
            trace per rank and version, as the profiler would write it.
        window: the part of the run to draw; with `steps` only those.
        unprofiled_step_ns: as `analyse`.
        options: how traces are read.

    Raises:
        UserError: as `analyse`; the file would lie in no folder or over a trace.
        OSError: a file cannot be written.
    """
    refuse_traces(output, paths)
    began = perf_counter()
    with pipeline.open_run(paths, options=options) as run:
        as_read, facts = _graph_of(run, window)
        graph, base, unprofiled = _replayed(as_read, facts, scenario.base, unprofiled_step_ns)
        other, labels = _other_version(graph, base, scenario, is_scaled=unprofiled is not None)
        recorded = Version(
            label="recorded", graph=as_read, schedule=replay(as_read), is_recorded=True
        )
        versions = (recorded, other)
        is_cut = window.steps is not None
        recording = read_recording(run.store, as_read, facts, versions, cut=is_cut)
        steps_ns = {one.label: step_times(one.graph, one.schedule).mean_ns for one in versions}
        head: dict[str, object] = {
            "program": program(),
            "what_ifs": list(labels),
            "step_ns": steps_ns,
        }
        write = write_together if is_one_file(output) else write_apart
        written = write(recording, output, head)
        reading = replace(_reading(run), seconds=perf_counter() - began)
    return Exported(timelines=written, steps_ns=steps_ns, labels=labels, reading=reading)


def _other_version(
    graph: TaskGraph, base: Baseline, scenario: Scenario, *, is_scaled: bool
) -> tuple[Version, tuple[str, ...]]:
    """What stands beside the recording, and the what-ifs as understood."""
    if scenario.transforms:
        asked = study(graph, base, scenario)
        predicted = Version(
            label="predicted", graph=asked.graph, schedule=asked.schedule, is_recorded=False
        )
        return predicted, asked.labels
    schedule = base.schedule if is_scaled else base.strict_schedule
    return Version(label="replayed", graph=graph, schedule=schedule, is_recorded=False), ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTraces:
    """Execution traces that were written, with what they show."""

    written: WrittenTraces
    step_ns: Nanos
    """Mean step on the schedule."""
    labels: tuple[str, ...]
    """The what-ifs as they were understood."""
    reading: Reading


def export_chakra(
    paths: Paths,
    scenario: Scenario = UNCHANGED,
    *,
    output: Path,
    window: Window = WHOLE,
    unprofiled_step_ns: Nanos | None = None,
    options: IngestOptions = DEFAULTS,
) -> ExportedTraces:
    """Write Chakra execution traces of the predicted run, or of the recorded one.

    Args:
        paths: as `analyse`.
        scenario: what is predicted; without what-ifs the run as recorded.
        output: a folder.
        window: `ranks` of the run; `steps` choose what `step_ns` is the mean of.
        unprofiled_step_ns: as `analyse`.
        options: how traces are read.

    Raises:
        UserError: as `analyse`; the folder is a file.
        OSError: a file cannot be written.
    """
    refuse_traces(output, paths)
    began = perf_counter()
    with pipeline.open_run(paths, options=options) as run:
        as_read, facts = _graph_of(run, window)
        reading = _reading(run)
    graph, base, _ = _replayed(as_read, facts, scenario.base, unprofiled_step_ns)
    schedule, labels = base.schedule, tuple[str, ...]()
    if scenario.transforms:
        asked = study(graph, base, scenario)
        graph, schedule, labels = asked.graph, asked.schedule, asked.labels
    return ExportedTraces(
        written=write_execution_traces(graph, schedule, output),
        step_ns=step_times(graph, schedule).mean_ns,
        labels=labels,
        reading=replace(reading, seconds=perf_counter() - began),
    )


def export_tables(
    paths: Paths, table: str, output: Path, *, options: IngestOptions = DEFAULTS
) -> Tables:
    """Write a public table of a run to a file, or all of them to a folder.

    Args:
        paths: as `analyse`.
        table: its name, or `all`.
        output: `.parquet`, `.arrow` or `.csv`; with `all` a folder of Parquet files.
        options: how traces are read.

    Raises:
        UsageError: no such table or form.
        TraceError: the traces cannot be read.
        OSError: a file cannot be written.
    """
    refuse_traces(output, paths)
    with open_run(paths, options=options) as run:
        return write_tables(run, table, output)


def on_base(asked: Study, unprofiled: Unprofiled | None) -> Study:
    """The study with the base that it started from among its assumptions."""
    if unprofiled is None:
        return asked
    return replace(asked, assumptions=(unprofiled.assumption, *asked.assumptions))


def ingest(paths: Paths, *, options: IngestOptions = DEFAULTS) -> Stored:
    """Read traces into a store.

    Raises:
        TraceError: none of them can be read, or one cannot and `options.strict`.
        UsageError: a file that is no store lies where the store shall be written.
    """
    began = perf_counter()
    if options.output is not None and options.output.exists():
        _refuse_other_files(options.output)
    with pipeline.open_run(paths, options=options) as run:
        files, events = run.store.rows("SELECT count(*), sum(n_events) FROM trace")[0]
        reading = replace(_reading(run), seconds=perf_counter() - began)
    return Stored(reading=reading, files=files, events=int(events))


def _refuse_other_files(output: Path) -> None:
    """A store may be written anew; a trace, or whatever else lies there, is never overwritten."""
    try:
        Store.open(output).close()
    except TraceError as error:
        raise UsageError(
            f"`{output}` is there already and is no store of this version: not overwritten",
            hint="give -o another name, or delete that file first",
        ) from error


def _failed(run: pipeline.Run) -> tuple[tuple[str, str], ...]:
    return tuple((file.path.name, file.reason) for file in run.failed)


def _reading(run: pipeline.Run) -> Reading:
    return Reading(
        failed=_failed(run),
        store=run.path if run.path.exists() else None,
        store_bytes=run.bytes_on_disk,
        is_cached=run.cached,
        seconds=0.0,
        clean_step_ns=measured_without_profiler(run.store),
    )


def open_run(paths: Path | str | Paths, *, options: IngestOptions = DEFAULTS) -> Run:
    """Open a run for queries: a trace, a folder, a store, or several files of one run.

    Raises:
        TraceError: the traces cannot be read.
    """
    several = [paths] if isinstance(paths, str | Path) else paths
    return Run(pipeline.open_run(several, options=options), announce=options.announce)


def sql(
    paths: Paths,
    query: str,
    params: Mapping[str, object] | None = None,
    *,
    options: IngestOptions = DEFAULTS,
) -> Table:
    """Rows of one read-only query on the tables of a run.

    Raises:
        UsageError: the SQL is not right, or would write.
        TraceError: the traces cannot be read.
    """
    with open_run(paths, options=options) as run:
        return run.rows(query, params)


def schema(
    table: str | None = None, *, paths: Paths = (), options: IngestOptions = DEFAULTS
) -> Table:
    """The tables with their meaning, or the columns of one; of a run's store where given.

    Raises:
        UsageError: no such table.
        TraceError: the traces cannot be read.
    """
    if not paths:
        with Store.create(Path(":memory:")) as store:
            store.make_views()
            return describe(store, table)
    with open_run(paths, options=options) as run:
        return run.describe(table)
