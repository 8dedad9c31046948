"""A run as files of other programs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from ingest import pipeline
from ingest.pipeline import IngestOptions
from ingest.units import Nanos
from replay.calls.program import program
from replay.calls.replayed import graph_of, replayed_graph
from replay.calls.stored import open_run, reading_of
from replay.calls.window import DEFAULTS, UNCHANGED, WHOLE, Paths, Window
from replay.engine.run import replay
from replay.export.chakra import WrittenTraces, write_execution_traces
from replay.export.files import is_one_file, refuse_traces
from replay.export.tables import Tables, write_tables
from replay.export.timeline import Timelines, read_recording, write_apart, write_together
from replay.graph.arrays import TaskGraph
from replay.results.fidelity import Baseline
from replay.results.metrics import step_times
from replay.results.timeline.told import Version
from whatif.report.findings import Reading
from whatif.scenario import Scenario
from whatif.study import study


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
        as_read, facts = graph_of(run, window)
        graph, base, unprofiled = replayed_graph(as_read, facts, scenario.base, unprofiled_step_ns)
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
        reading = reading_of(run, began)
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
        as_read, facts = graph_of(run, window)
        graph, base, _ = replayed_graph(as_read, facts, scenario.base, unprofiled_step_ns)
        schedule, labels = base.schedule, tuple[str, ...]()
        if scenario.transforms:
            asked = study(graph, base, scenario)
            graph, schedule, labels = asked.graph, asked.schedule, asked.labels
        written = write_execution_traces(graph, schedule, output)
        return ExportedTraces(
            written=written,
            step_ns=step_times(graph, schedule).mean_ns,
            labels=labels,
            reading=reading_of(run, began),
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
