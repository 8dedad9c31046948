"""`replay tables`: what a run holds."""

from typing import Annotated

import typer

from replay.cli import console, options
from replay.cli.reading import reading


def tables(
    trace: options.Trace,
    counts: Annotated[
        bool, typer.Option("--counts", help="Also the number of rows of each.")
    ] = False,
    format_: options.RowsForm = options.RowsFormat.TABLE,
    json: options.Json = False,
    strict: options.Strict = False,
    no_cache: options.NoCache = False,
    cache_dir: options.CacheDir = None,
    window: options.Window = None,
) -> None:
    """List the tables of a run.

    \b
    replay tables traces/ --counts

    `replay schema TABLE` has the columns of one.
    """
    from replay.api import open_run
    from replay.cli.rows import WHOLE, write_rows

    with reading(strict=strict, no_cache=no_cache, cache_dir=cache_dir, window=window) as how:
        opened = open_run(trace, options=how)
    with opened as run:
        found = run.describe(with_counts=counts)
    console.report_failed(found.failed)
    console.show(write_rows(found, options.RowsFormat.JSON if json else format_, WHOLE))
