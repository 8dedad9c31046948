"""`replay sql`: rows of one query on the tables of a run."""

from typing import Annotated

import typer

from replay.cli import console, options


def sql(
    trace: options.Trace,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="One read-only SQL query.")],
    format_: options.RowsForm = options.RowsFormat.TABLE,
    json: options.Json = False,
    strict: options.Strict = False,
    no_cache: options.NoCache = False,
    cache_dir: options.CacheDir = None,
) -> None:
    """Run SQL on the tables of a run.

    The dialect is DuckDB's; `replay schema` lists the tables. Times are ns after the run's origin.
    """
    from ingest.pipeline import IngestOptions
    from replay.api import sql as run
    from replay.cli.rows import write_rows

    with console.progress() as progress:
        reading = IngestOptions(
            cache=not no_cache, cache_dir=cache_dir, strict=strict, progress=progress
        )
        table = run([trace], query, options=reading)
    console.report_failed(table.failed)
    console.show(write_rows(table, options.RowsFormat.JSON if json else format_))
