"""Rows as a table to read, as CSV, or as one JSON array of objects."""

import csv
import io
from typing import Any

import msgspec

from ingest.errors import UsageError
from replay.api import Table
from replay.cli.options import RowsFormat

LONGEST_CELL = 60
"""Characters of a cell in a table to read; CSV and JSON are never cut."""


def write_rows(table: Table, form: RowsFormat) -> str:
    """The rows in one of the forms, with a final newline.

    Raises:
        UsageError: as JSON, two columns of one name: an object holds only one of them.
    """
    if form is RowsFormat.JSON:
        return _json(table)
    if form is RowsFormat.CSV:
        return _csv(table)
    return _aligned(table)


def _json(table: Table) -> str:
    twice = [name for name in table.names if table.names.count(name) > 1]
    if twice:
        raise UsageError(
            f"two columns are called `{twice[0]}`", hint="name each with AS to get them as JSON"
        )
    objects = [dict(zip(table.names, row, strict=True)) for row in table.rows]
    return msgspec.json.format(msgspec.json.encode(objects, enc_hook=str), indent=1).decode() + "\n"


def _csv(table: Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.names)
    writer.writerows(table.rows)
    return text.getvalue()


def _aligned(table: Table) -> str:
    """Numbers to the right, all else to the left; NULL is a dash."""
    columns = list(zip(*table.rows, strict=True)) if table.rows else [()] * len(table.names)
    blocks = [_column(name, values) for name, values in zip(table.names, columns, strict=True)]
    lines = ["  ".join(cells).rstrip() for cells in zip(*blocks, strict=True)]
    return "".join(f"{line}\n" for line in lines)


def _column(name: str, values: tuple[Any, ...]) -> list[str]:
    cells = [name, *(_cell(value) for value in values)]
    width = max(map(len, cells))
    if values and all(value is None or _is_number(value) for value in values):
        return [cell.rjust(width) for cell in cells]
    return [cell.ljust(width) for cell in cells]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    text = f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"
