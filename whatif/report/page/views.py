"""Blocks as templates see them: cells formatted, charts drawn, long tables cut with a word."""

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from whatif.report.blocks import Block, Cell, Column, DataTable, Query, Unit, Words
from whatif.report.charts.amounts import told
from whatif.report.charts.as_table import table_of
from whatif.report.charts.draw import Chart, draw
from whatif.report.charts.svg import cut

MOST_ROWS = 500
"""Of a table on a page; JSON and SQL have all."""
MOST_DATA_ROWS = 60
"""Of the table beside a chart: longer ones no one reads."""
FILTER_FROM = 13
"""Rows from which on a table can be searched."""
LEAST_LINES = 3
"""Of code that is shown as such in a cell."""
LONG = 26
"""Letters of a cell beyond which its column is kept wide on a phone."""
LONGEST_NAME = 120
"""Letters of a name as recorded; the whole is told when it is pointed at."""
LONGEST_TEXT = 600
"""Letters of words, which are ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    """A cell."""

    text: str
    kind: str
    """`text`, `code`, `number`, or `lines` of code, which are folded."""
    raw: float | int | None
    """The number itself, which tables are sorted by."""
    classes: str
    """Of the style sheet; known numbers need none, as `raw` says so."""
    place: str
    """Where the value lies in its column (a bar) or map (a shade), as a variable of the style."""
    whole: str
    """The uncut text; empty where it is not cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadView:
    """Head of a column."""

    name: str
    about: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A table."""

    kind: str = "table"
    key: str
    title: str
    about: str
    heads: tuple[HeadView, ...]
    rows: tuple[tuple[CellView, ...], ...]
    left_out: int
    query: Query | None
    has_filter: bool
    is_detail: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartView:
    """A picture, its legend, and its numbers."""

    kind: str = "chart"
    key: str
    title: str
    about: str
    picture: Markup
    legend: Markup
    notes: tuple[str, ...]
    remark: str
    data: TableView
    query: Query | None
    is_detail: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsView:
    """Paragraphs."""

    kind: str = "words"
    paragraphs: tuple[str, ...]


def view(block: Block) -> TableView | ChartView | WordsView:
    """A block, ready to be put into a template."""
    match block:
        case Words():
            return WordsView(paragraphs=block.paragraphs)
        case DataTable():
            return table_view(block, MOST_ROWS)
        case _:
            return _chart_view(block)


def table_view(table: DataTable, most: int) -> TableView:
    """At most so many rows of a table."""
    shown = table.rows[:most]
    shades = _shades(table)
    return TableView(
        key=table.key,
        title=table.title,
        about=table.about,
        heads=tuple(
            HeadView(name=column.name, about=column.about, kind=_kind(column.unit))
            for column in table.columns
        ),
        rows=tuple(
            tuple(
                _cell(value, column, shade)
                for value, column, shade in zip(row, table.columns, shades, strict=True)
            )
            for row in shown
        ),
        left_out=table.left_out + len(table.rows) - len(shown),
        query=table.query,
        has_filter=len(shown) >= FILTER_FROM,
        is_detail=table.is_detail,
    )


def _kind(unit: Unit) -> str:
    return unit.value if unit in {Unit.TEXT, Unit.CODE} else "number"


def _number(value: Cell) -> float | int | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _numbers(table: DataTable, at: int) -> list[float]:
    return [found for row in table.rows if (found := _number(row[at])) is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shade:
    """How cells of a column show how large they are."""

    kind: str
    """`bar` or `heat`; empty where they do not."""
    least: float
    span: float


def _shades(table: DataTable) -> list[_Shade]:
    """One a column; a map has one for all."""
    none = _Shade(kind="", least=0.0, span=1.0)
    if table.is_map:
        every = [found for at in range(1, len(table.columns)) for found in _numbers(table, at)]
        least = min(every, default=0.0)
        heat = _Shade(kind="heat", least=least, span=max(every, default=0.0) - least or 1.0)
        return [none, *[heat] * (len(table.columns) - 1)]
    return [
        _Shade(kind="bar", least=0.0, span=max(map(abs, _numbers(table, at)), default=0) or 1.0)
        if column.has_bar
        else none
        for at, column in enumerate(table.columns)
    ]


def _cell(value: Cell, column: Column, shade: _Shade) -> CellView:
    raw = _number(value)
    text = told(value, column.unit)
    kind = "lines" if column.unit is Unit.CODE and _is_lines(text) else _kind(column.unit)
    short = cut(text, LONGEST_NAME if kind == "code" else LONGEST_TEXT)
    place = None if raw is None else (abs(raw) - shade.least) / shade.span
    return CellView(
        text=short,
        kind="text" if kind == "code" and value is None else kind,
        raw=raw,
        classes=" ".join(_classes(kind, short, raw, shade.kind)),
        place="" if place is None or not shade.kind else f"--p:{place * 100:.4g}%",
        whole="" if short == text and kind != "lines" else text,
    )


def _is_lines(text: str) -> bool:
    """A statement, rather than a name with an odd letter in it."""
    return text.count("\n") >= LEAST_LINES - 1


def _classes(kind: str, text: str, raw: float | None, shade: str) -> Iterator[str]:
    if kind == "number" and raw is None:
        yield "number"
    if len(text) > LONG:
        yield "long"
    if shade and raw is not None:
        yield shade


def _chart_view(chart: Chart) -> ChartView:
    drawn = draw(chart)
    return ChartView(
        key=chart.key,
        title=chart.title,
        about=chart.about,
        picture=drawn.picture,
        legend=drawn.legend,
        notes=drawn.notes,
        remark=drawn.remark,
        data=table_view(table_of(chart), MOST_DATA_ROWS),
        query=getattr(chart, "query", None),
        is_detail=chart.is_detail,
    )
