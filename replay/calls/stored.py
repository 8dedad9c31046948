"""The tables of a run: traces into a store, and rows out of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from ingest import pipeline
from ingest.errors import TraceError, UsageError
from ingest.pipeline import IngestOptions
from ingest.store import Store
from replay.calls.window import DEFAULTS, Paths
from replay.results.clean_step import measured_without_profiler
from replay.run import Run, describe, failed_files, sql_text
from replay.table import Table
from whatif.report.findings import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Where the tables of a run lie."""

    reading: Reading
    files: int
    events: int


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
        files, events = run.store.rows(sql_text("size"))[0]
        reading = reading_of(run, began)
    return Stored(reading=reading, files=files, events=events)


def _refuse_other_files(output: Path) -> None:
    """A store may be written anew; a trace, or whatever else lies there, is never overwritten."""
    try:
        Store.open(output).close()
    except TraceError as error:
        raise UsageError(
            f"`{output}` is there already and is no store of this version: not overwritten",
            hint="give -o another name, or delete that file first",
        ) from error


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


def reading_of(run: pipeline.Run, began: float) -> Reading:
    """How the reading of a run went, until now.

    Args:
        run: open.
        began: of `time.perf_counter`, when the call began.
    """
    return Reading(
        failed=failed_files(run),
        store=run.path if run.path.exists() else None,
        store_bytes=run.bytes_on_disk,
        is_cached=run.cached,
        seconds=perf_counter() - began,
        clean_step_ns=measured_without_profiler(run.store),
    )
