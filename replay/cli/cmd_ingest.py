"""`replay ingest`: traces into one store."""

from pathlib import Path
from typing import Annotated

import typer

from replay.cli import console, options
from replay.cli.reading import reading
from replay.cli.writing import counted


def ingest(
    traces: options.Traces,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The store; without it, the cache."),
    ] = None,
    strict: options.Strict = False,
    no_cache: options.NoCache = False,
    cache_dir: options.CacheDir = None,
    window: options.Window = None,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact", help="Take host names, user names and paths out of the store; wants -o."
        ),
    ] = False,
) -> None:
    """Read traces into a DuckDB store and print where it lies.

    \b
    replay ingest traces/
    replay ingest traces/ -o run.duckdb
    replay ingest traces/ --redact -o run.duckdb     without names of people and machines
    """
    from replay.api import ingest as read

    with reading(
        strict=strict,
        no_cache=no_cache,
        cache_dir=cache_dir,
        window=window,
        output=output,
        redact=redact,
    ) as how:
        stored = read(traces, options=how)
    console.report_failed(stored.reading.failed)
    state = "was there already" if stored.reading.is_cached else "written"
    console.talk(
        f"{counted(stored.files, 'file')}, {counted(stored.events, 'event')}, "
        f"{stored.reading.store_bytes / 1e6:,.1f} MB {state}, {stored.reading.seconds:.1f} s"
    )
    console.show(f"{stored.reading.store}\n")
