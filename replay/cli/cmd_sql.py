"""`replay sql`: rows of one query on the tables of a run, or a shell to ask many."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ingest.errors import UsageError
from replay.cli import console, options
from replay.cli.options import RowsFormat, SavedFormat
from replay.cli.reading import reading
from replay.cli.writing import counted, require_place

if TYPE_CHECKING:
    from replay.queries.load import Query, Value
    from replay.run import Run

ROWS_ON_TERMINAL = 100
SUFFIXES = {
    ".csv": SavedFormat.CSV,
    ".json": SavedFormat.JSON,
    ".parquet": SavedFormat.PARQUET,
    ".md": SavedFormat.MARKDOWN,
    ".txt": SavedFormat.TABLE,
}
CUT = (SavedFormat.TABLE, SavedFormat.MARKDOWN)


def sql(
    trace: options.Trace,
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="QUERY", help="One read-only SQL query; else stdin.", show_default=False
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("-f", "--file", metavar="FILE", help="The query from a file."),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A named query; `replay queries` lists them."),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Value of $NAME in the query; may be repeated."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write to .csv, .json, .parquet, .md or .txt."
        ),
    ] = None,
    format_: Annotated[
        SavedFormat | None,
        typer.Option(
            "--format",
            help="How to print the rows; a table where nothing is said. parquet needs -o.",
        ),
    ] = None,
    json: options.Json = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Rows of a table to show, 0 for all. On a terminal 100, else all.",
        ),
    ] = None,
    strict: options.Strict = False,
    no_cache: options.NoCache = False,
    cache_dir: options.CacheDir = None,
    window: options.Window = None,
) -> None:
    """Run SQL on the tables of a run.

    \b
    replay sql traces/ "SELECT rank, count(*) FROM kernel GROUP BY rank"
    replay sql traces/ --query kernel_times --param ranks=0 --param top=5
    replay sql traces/ "FROM kernel" -o kernels.parquet
    replay sql traces/                           a shell, where stdin is a terminal

    The dialect is DuckDB's; `replay schema` lists the tables. Times are ns after the run's origin.
    Stores are read-only: a query that would write is refused.
    """
    from replay.api import open_run
    from replay.cli.shell import Shell

    asked = _asked(text, file, query)
    form = _form(SavedFormat.JSON if json else format_, output, limit)
    given = _given(param or [])
    shown = _shown(limit, form, output)
    if asked is None and (given or output):
        raise UsageError("--param and -o need a query", hint="replay sql TRACE QUERY -o FILE")
    if output is not None:
        require_place(output, [trace])
    with reading(strict=strict, no_cache=no_cache, cache_dir=cache_dir, window=window) as how:
        opened = open_run(trace, options=how)
    with opened as run:
        console.report_failed(run.failed)
        if asked is None:
            Shell(
                run, form=RowsFormat(form), limit=ROWS_ON_TERMINAL if limit is None else limit
            ).loop()
            return
        values = _values(asked, given, is_named=query is not None)
        if output is None:
            _show(run, asked.text, values, RowsFormat(form), shown)
        else:
            _save(run, asked.text, values, form, output, shown)


def _asked(text: str | None, file: Path | None, name: str | None) -> "Query | None":
    """The query, from wherever it comes; None: ask on the terminal."""
    from replay.queries.load import load, parse

    if sum(given is not None for given in (text, file, name)) > 1:
        raise UsageError(
            "one query is wanted", hint="give QUERY, or -f FILE, or --query NAME, not two of them"
        )
    if name is not None:
        return load(name)
    if file is not None:
        return parse(_read(file), name=file.stem)
    if text is not None:
        return parse(text, name="query")
    if sys.stdin.isatty() and sys.stdout.isatty():
        return None
    typed = sys.stdin.read()
    if not typed.strip():
        raise UsageError("no query is given", hint='for example: replay sql TRACE "FROM kernel"')
    return parse(typed, name="query")


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"`{file}` is no SQL file: {error.reason}") from error


def _form(given: SavedFormat | None, output: Path | None, limit: int | None) -> SavedFormat:
    form = given or (SavedFormat.TABLE if output is None else SUFFIXES.get(output.suffix.lower()))
    if form is None:
        known = ", ".join(SUFFIXES)
        raise UsageError(f"`{output}`: which format?", hint=f"end it in {known}, or give --format")
    if form is SavedFormat.PARQUET and output is None:
        raise UsageError("--format parquet needs a file", hint="give one with -o FILE.parquet")
    if limit is not None and form not in CUT:
        raise UsageError(f"--limit is for tables; {form} is never cut", hint="put LIMIT in the SQL")
    return form


def _given(params: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in params]
    for text, (name, equals, _) in zip(params, pairs, strict=True):
        if not equals or not name:
            raise UsageError(f"`--param {text}` has no value", hint="write NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _values(query: "Query", given: Mapping[str, str], *, is_named: bool) -> "dict[str, Value]":
    """Typed by the header where the query has one, else by what the value reads as."""
    from replay.queries.load import loose

    if query.params or is_named:
        return query.values(given)
    return {name: loose(value) for name, value in given.items()}


def _shown(limit: int | None, form: SavedFormat, output: Path | None) -> int | None:
    """Rows to show; None is all."""
    if limit is not None:
        return limit or None
    on_screen = output is None and form is SavedFormat.TABLE and sys.stdout.isatty()
    return ROWS_ON_TERMINAL if on_screen else None


def _show(
    run: "Run", text: str, values: "dict[str, Value]", form: RowsFormat, limit: int | None
) -> None:
    from replay.cli.rows import Room, write_rows

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    console.show(write_rows(run.rows(text, values, limit=limit), form, Room(width=width)))


def _save(
    run: "Run",
    text: str,
    values: "dict[str, Value]",
    form: SavedFormat,
    output: Path,
    limit: int | None,
) -> None:
    from replay.cli.rows import WHOLE, write_rows
    from replay.export.files import whole_file

    with whole_file(output) as part:
        if form is SavedFormat.PARQUET:
            frame = run.sql(text, **values)
            rows = len(frame)
            frame.write_parquet(part)
        else:
            table = run.rows(text, values, limit=limit)
            rows = len(table.rows)
            part.write_text(write_rows(table, RowsFormat(form), WHOLE), encoding="utf-8")
    console.talk(f"{counted(rows, 'row')} written to {output}")
