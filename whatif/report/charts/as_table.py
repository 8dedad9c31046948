"""The numbers of a chart as a table: for who does not see it, and where nothing can be drawn."""

from whatif.report.blocks import (
    Cell,
    Column,
    DataTable,
    Lines,
    Ranges,
    Scatter,
    StackedBars,
    Timeline,
    Unit,
    Waterfall,
)
from whatif.report.charts.draw import Chart


def table_of(chart: Chart) -> DataTable:
    """All values of a chart, row by row."""
    columns, rows = _contents(chart)
    return DataTable(key=f"{chart.key}.data", title=chart.title, columns=columns, rows=rows)


Contents = tuple[tuple[Column, ...], tuple[tuple[Cell, ...], ...]]


def _contents(chart: Chart) -> Contents:
    match chart:
        case StackedBars():
            return _stacked_bars(chart)
        case Lines():
            return _lines(chart)
        case Ranges():
            return _ranges(chart)
        case Waterfall():
            return _waterfall(chart)
        case Scatter():
            return _scatter(chart)
        case Timeline():
            return _timeline(chart)


def _columns(*named: tuple[str, Unit]) -> tuple[Column, ...]:
    return tuple(Column(name=name, unit=unit) for name, unit in named)


def _stacked_bars(chart: StackedBars) -> Contents:
    columns = _columns(("", Unit.TEXT), *((part.name, chart.unit) for part in chart.parts))
    whole = Column(name="whole", unit=chart.unit)
    rows = []
    for at, category in enumerate(chart.categories):
        values = [part.values[at] for part in chart.parts]
        rows.append((category, *values, sum(value or 0 for value in values)))
    return (*columns, whole), tuple(rows)


def _lines(chart: Lines) -> Contents:
    columns = _columns(
        (chart.x_name, chart.x_unit), *((line.name, chart.y_unit) for line in chart.lines)
    )
    rows = zip(chart.x, *(line.values for line in chart.lines), strict=True)
    return columns, tuple(rows)


def _ranges(chart: Ranges) -> Contents:
    unit = chart.unit
    columns = _columns(("", Unit.TEXT), ("value", unit), ("low", unit), ("high", unit))
    base = (chart.baseline_name, chart.baseline, None, None)
    return columns, (base, *((bar.name, bar.value, bar.low, bar.high) for bar in chart.bars))


def _waterfall(chart: Waterfall) -> Contents:
    columns = _columns(("", Unit.TEXT), ("change", chart.unit), ("level", chart.unit))
    rows: list[tuple[Cell, ...]] = [(chart.start_name, None, chart.start)]
    level = chart.start
    for change in chart.changes:
        level += change.change
        rows.append((change.name, change.change, level))
    return columns, (*rows, (chart.end_name, None, chart.end))


def _scatter(chart: Scatter) -> Contents:
    columns = _columns(
        ("", Unit.CODE),
        ("kind", Unit.TEXT),
        (chart.x_name, chart.x_unit),
        (chart.y_name, chart.y_unit),
    )
    heaviest = sorted(chart.dots, key=lambda dot: -dot.weight)
    return columns, tuple((dot.name, dot.role, dot.x, dot.y) for dot in heaviest)


def _timeline(chart: Timeline) -> Contents:
    columns = _columns(
        ("lane", Unit.TEXT),
        ("start", Unit.NS),
        ("length", Unit.NS),
        ("what", Unit.CODE),
        ("kind", Unit.TEXT),
    )
    rows = ((one.lane, one.ts_ns, one.dur_ns, one.name, one.role) for one in chart.pieces)
    return columns, tuple(rows)
