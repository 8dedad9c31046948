"""`replay schema`: the tables, and what each column means."""

from pathlib import Path
from typing import Annotated

import typer

from replay.cli import console, options
from replay.cli.reading import reading


def schema(
    first: Annotated[
        str | None,
        typer.Argument(
            metavar="TRACE|TABLE", help="A trace or store, or a table.", show_default=False
        ),
    ] = None,
    second: Annotated[
        str | None,
        typer.Argument(metavar="TABLE", help="A table of that trace.", show_default=False),
    ] = None,
    format_: options.RowsForm = options.RowsFormat.TABLE,
    json: options.Json = False,
    window: options.Window = None,
) -> None:
    """List the tables, or the columns of one.

    \b
    replay schema kernel
    replay schema traces/ kernel --format markdown

    Every trace gives the same tables; with a trace, its own store is read.
    """
    from replay.api import schema as describe
    from replay.cli.rows import WHOLE, write_rows

    trace, table = _meant(first, second)
    with reading(window=window) as how:
        rows = describe(table, paths=[trace] if trace else (), options=how)
    console.report_failed(rows.failed)
    console.show(write_rows(rows, options.RowsFormat.JSON if json else format_, WHOLE))


def _meant(first: str | None, second: str | None) -> tuple[str | None, str | None]:
    """Trace and table; a single word that is no path and looks like a name is a table."""
    if first and not second and first.isidentifier() and not Path(first).exists():
        return None, first
    return first, second
