"""Rows of a query as a table of the report, and the words that summaries share."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from whatif.postmortem.material import Rows
from whatif.report.blocks import Cell, Column, DataTable, Query, Unit
from whatif.report.charts.amounts import told

MOST_ROWS = 30
"""A table that goes on says how many rows it left out."""


def column(name: str, unit: Unit, about: str = "", *, has_bar: bool = False) -> Column:
    """A column in one line."""
    return Column(name=name, unit=unit, about=about, has_bar=has_bar)


def table(  # noqa: PLR0913  (all by keyword: the fields of a table)
    *,
    key: str,
    title: str,
    columns: Mapping[str, Column],
    records: Sequence[Mapping[str, Any]],
    query: Query | None,
    about: str = "",
    most: int = MOST_ROWS,
) -> DataTable:
    """A table of the columns named, in their order; of more than `most` rows it has the first.

    Args:
        key: of the block.
        title: of the block.
        columns: by their name in the records.
        records: one mapping a row; fractions of a nanosecond are rounded.
        query: that gives the rows.
        about: what a reader should know.
        most: rows at most.
    """
    return DataTable(
        key=key,
        title=title,
        columns=tuple(columns.values()),
        rows=tuple(
            tuple(cell(record[name], one.unit) for name, one in columns.items())
            for record in records[:most]
        ),
        about=about,
        query=query,
        left_out=max(len(records) - most, 0),
    )


def rows_table(
    rows: Rows,
    *,
    key: str,
    title: str,
    columns: Mapping[str, Column],
    about: str = "",
    most: int = MOST_ROWS,
) -> DataTable:
    """The same of the rows of a query as they are."""
    return table(
        key=key,
        title=title,
        columns=columns,
        records=rows.dicts(),
        query=rows.query,
        about=about,
        most=most,
    )


def cell(value: Any, unit: Unit) -> Cell:  # noqa: ANN401  (whatever a query gives)
    """A value of a query as a cell: times and sizes are whole, lists are text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if unit in {Unit.NS, Unit.BYTES, Unit.COUNT} and isinstance(value, float):
        return round(value)
    if isinstance(value, (int, float)):
        return value
    return str(value)


def total(records: Iterable[Mapping[str, Any]], name: str) -> float:
    """Sum of a column; what is not known counts nothing."""
    return float(sum(record[name] or 0 for record in records))


def time_text(dur_ns: float) -> str:
    """As tables show it."""
    return told(dur_ns, Unit.NS)


def size_text(size_bytes: float) -> str:
    """As tables show it."""
    return told(size_bytes, Unit.BYTES)
