"""Public tables of a run as Parquet, Arrow or CSV files, some rows at a time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from ingest.errors import TraceError, UsageError
from replay.export.files import refuse_no_folder, refuse_place, whole_file, whole_folder
from replay.run import Run, refuse_unknown

ALL = "all"
_ROWS = 122_880
"""Held in memory at a time, and a row group of Parquet."""
_WIDE = ("HUGEINT", "UHUGEINT", "DECIMAL(38,0)")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTable:
    """A table that was written."""

    name: str
    path: Path
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What was written, and what could not be."""

    written: tuple[WrittenTable, ...]
    left_out: tuple[tuple[str, str], ...]
    """Table and reason: those of the replay, where there is nothing to replay."""
    failed: tuple[tuple[str, str], ...]
    """Trace file and reason of those that could not be read, so the rows lack them."""


Writer = Callable[[Path, Any], Any]
"""A path and a schema of pyarrow -> something with `write_batch`, to be closed by `with`."""
WRITERS: Mapping[str, Writer] = {
    ".parquet": pa_parquet.ParquetWriter,
    ".arrow": pa.ipc.new_file,
    ".csv": pa_csv.CSVWriter,
}
_FOLDER_FORM = ".parquet"


def refuse_output(table: str, output: Path) -> None:
    """What cannot be written, known before anything is read.

    Raises:
        UsageError: no such form, no folder.
    """
    if table == ALL:
        refuse_no_folder(output)
        return
    if output.suffix.lower() not in WRITERS:
        known = ", ".join(WRITERS)
        raise UsageError(f"`{output}`: which form?", hint=f"end it in {known}")
    refuse_place(output)


def write_tables(run: Run, table: str, output: Path) -> Tables:
    """One table to a file, or all of them to a folder.

    Args:
        run: open.
        table: its name, or `all`.
        output: ends in `.parquet`, `.arrow` or `.csv`; with `all` a folder, made where it is not
            there, of Parquet files.

    Raises:
        UsageError: no such table, no such form, no folder.
        TraceError: one table of the replay is asked for, and there is nothing to replay.
        OSError: a file cannot be written.
    """
    refuse_output(table, output)
    if table != ALL:
        refuse_unknown(table, run.tables)
        return Tables(written=(_write(run, table, output),), left_out=(), failed=run.failed)
    written, left_out = [], []
    with whole_folder(output) as part:
        for name in run.tables:
            try:
                made = _write(run, name, part / f"{name}{_FOLDER_FORM}")
            except TraceError as error:
                left_out.append((name, str(error)))
            else:
                written.append(replace(made, path=output / made.path.name))
    return Tables(written=tuple(written), left_out=tuple(left_out), failed=run.failed)


def _write(run: Run, table: str, output: Path) -> WrittenTable:
    writer = WRITERS[output.suffix.lower()]
    described = run.describe(table).rows
    as_text = output.suffix.lower() == ".csv"
    columns = ", ".join(_column(name, kind, as_text=as_text) for name, kind, _ in described)
    reader = run.batches(f'SELECT {columns} FROM "{table}"', rows=_ROWS)  # noqa: S608  (our names)
    rows = 0
    with whole_file(output) as part:
        with writer(part, reader.schema) as file:
            for batch in reader:
                rows += batch.num_rows
                file.write_batch(batch)
        size = part.stat().st_size
    return WrittenTable(name=table, path=output, rows=rows, size_bytes=size)


def _column(name: str, kind: str, *, as_text: bool) -> str:
    """Sums of whole numbers as they are in the tables; in CSV a list as its text."""
    if kind in _WIDE:
        return f'CAST("{name}" AS BIGINT) AS "{name}"'
    if as_text and kind.endswith("]"):
        return f'CAST("{name}" AS VARCHAR) AS "{name}"'
    return f'"{name}"'
