"""Rows as a table to read, as Markdown, as CSV, or as one JSON array of objects."""

import csv
import io
from dataclasses import dataclass
from typing import Any

import msgspec

from ingest.errors import UsageError
from replay.cli.options import RowsFormat
from replay.table import Table

LONGEST_CELL = 60
"""Characters of a cell in a table to read; the other forms are never cut."""
NARROWER = (40, 24)
"""The same where a terminal has no room for all columns."""
PLAN = ("explain_key", "explain_value")
"""Columns of EXPLAIN: a drawing, shown as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much a table to read may take; None is as much as it needs."""

    cell: int | None = LONGEST_CELL
    width: int | None = None


ROOM = Room()
WHOLE = Room(cell=None)


def write_rows(table: Table, form: RowsFormat, room: Room = ROOM) -> str:
    """The rows in one of the forms, with a final newline; what a table leaves out, it says.

    Raises:
        UsageError: as JSON, two columns of one name: an object holds only one of them.
    """
    if form is RowsFormat.JSON:
        return _json(table)
    if form is RowsFormat.CSV:
        return _csv(table)
    text = _markdown(table) if form is RowsFormat.MARKDOWN else _aligned(table, room)
    return text + _rows_left_out(table)


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


def _markdown(table: Table) -> str:
    numbers = [_is_numeric(values) for values in _columns(table)]
    lines = [
        [_marked(name) for name in table.names],
        ["---:" if number else "---" for number in numbers],
        *([_marked(_text(value)) for value in row] for row in table.rows),
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _marked(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|")


def _aligned(table: Table, room: Room) -> str:
    """Numbers to the right, all else to the left; NULL is a dash."""
    if table.names == PLAN:
        return "".join(f"{drawing.rstrip()}\n" for _, drawing in table.rows)
    columns = _columns(table)
    for longest in (room.cell, *NARROWER):
        blocks = [
            _column(name, values, longest)
            for name, values in zip(table.names, columns, strict=True)
        ]
        shown = _fitting([len(block[0]) for block in blocks], room.width)
        if shown == len(blocks):
            break
    lines = ["  ".join(cells).rstrip() for cells in zip(*blocks[:shown], strict=True)]
    notes = [_cells_cut(columns[:shown], longest), _columns_left_out(table.names[shown:])]
    return "".join(f"{line}\n" for line in [*lines, *filter(None, notes)])


def _columns(table: Table) -> list[tuple[Any, ...]]:
    return list(zip(*table.rows, strict=True)) if table.rows else [()] * len(table.names)


def _fitting(widths: list[int], width: int | None) -> int:
    """How many columns fit, and never none."""
    if width is None:
        return len(widths)
    ends = [sum(widths[: count + 1]) + 2 * count for count in range(len(widths))]
    return max(1, sum(end <= width for end in ends))


def _column(name: str, values: tuple[Any, ...], longest: int | None) -> list[str]:
    cells = [name, *(_cut(_text(value), longest) for value in values)]
    width = max(map(len, cells))
    if _is_numeric(values):
        return [cell.rjust(width) for cell in cells]
    return [cell.ljust(width) for cell in cells]


def _is_numeric(values: tuple[Any, ...]) -> bool:
    return bool(values) and all(value is None or _is_number(value) for value in values)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: object) -> str:
    """In one line; blanks in front stay, they are the shape of a tree."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"  # noqa: PLR2004  (no 1e+06)
    text = str(value)
    return text if text.isprintable() else " ".join(text.split())


def _cut(text: str, longest: int | None) -> str:
    return text if longest is None or len(text) <= longest else text[: longest - 1] + "…"


def _cells_cut(columns: list[tuple[Any, ...]], longest: int | None) -> str:
    if longest is None:
        return ""
    cut = sum(len(_text(value)) > longest for values in columns for value in values)
    return (
        f"({cut:,} cells cut to {longest} characters; --format csv has them whole)" if cut else ""
    )


def _columns_left_out(names: tuple[str, ...]) -> str:
    if not names:
        return ""
    return f"(columns left out, they do not fit: {', '.join(names)}; --format csv has them)"


def _rows_left_out(table: Table) -> str:
    if not table.left_out:
        return ""
    total = len(table.rows) + table.left_out
    return f"({table.left_out:,} of {total:,} rows left out; --limit 0 shows all)\n"
