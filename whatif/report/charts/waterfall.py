"""From one total to another, change by change."""

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from whatif.report.blocks import Waterfall
from whatif.report.charts.amounts import told, told_change
from whatif.report.charts.frame import Drawing, Frame, Key, Rows, axis_across, legend, plot, rows_of
from whatif.report.charts.palette import mark
from whatif.report.charts.scale import Scale
from whatif.report.charts.svg import element, per_cent, title

RIGHT_PX = 92
FLAT_FRAC = 0.5
"""Of the larger total: where all levels lie above it, the axis begins below the lowest level, or
changes could not be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    name: str
    low: float
    high: float
    level: float
    """Where the next row begins."""
    colour: str
    amount: str


def draw(block: Waterfall) -> Drawing:
    """Start, changes and end as rows; each change begins where the one before ended."""
    lines = list(_rows(block))
    scale, is_cut = _scale([end for line in lines for end in (line.low, line.high)][1:])
    rows = rows_of([line.name for line in lines])
    drawn = [
        axis_across(scale, block.unit, rows.height),
        *(_joint(line, rows, scale, at) for at, line in enumerate(lines[:-1])),
        *(_bar(line, rows, scale, at) for at, line in enumerate(lines)),
        rows.names(),
    ]
    frame = Frame(height=rows.height, left=rows.left, right=RIGHT_PX)
    return Drawing(
        picture=plot(frame, block.about, *drawn),
        legend=_legend(block),
        remark="The axis does not begin at zero." if is_cut else "",
    )


def _rows(block: Waterfall) -> Iterator[_Row]:
    yield _Row(
        name=block.start_name,
        low=0,
        high=block.start,
        level=block.start,
        colour="c-other",
        amount=told(block.start, block.unit),
    )
    level = block.start
    for change in block.changes:
        after = level + change.change
        yield _Row(
            name=change.name,
            low=min(level, after),
            high=max(level, after),
            level=after,
            colour=_colour(block, change.role, change.change),
            amount=told_change(change.change, block.unit),
        )
        level = after
    yield _Row(
        name=block.end_name,
        low=0,
        high=block.end,
        level=block.end,
        colour="c-other",
        amount=told(block.end, block.unit),
    )


def _goes_both_ways(block: Waterfall) -> bool:
    signs = {change.change > 0 for change in block.changes if change.change}
    return len(signs) > 1


def _colour(block: Waterfall, role: str, change: float) -> str:
    """By sign where some grow and some shrink, else by role."""
    if _goes_both_ways(block):
        return "c-up" if change > 0 else "c-down"
    return mark(role)


def _scale(ends: list[float]) -> tuple[Scale, bool]:
    """Of the levels, and whether it begins above zero."""
    levels = [end for end in ends if end]
    low, high = min(levels, default=0.0), max(levels, default=1.0)
    if low > FLAT_FRAC * high > 0:
        room = (high - low) or high * 0.1
        return Scale(low=low - 0.5 * room, high=high + 0.05 * room), True
    return Scale(low=min(low, 0.0), high=high if high > min(low, 0.0) else low + 1.0), False


def _bar(line: _Row, rows: Rows, scale: Scale, at: int) -> Markup:
    low, high = scale.share(line.low), scale.share(line.high)
    return element(
        "g",
        title(f"{line.name}: {line.amount}"),
        element("rect", x=0, y=rows.top(at), width="100%", height=rows.bar, class_="reach"),
        element(
            "rect",
            x=per_cent(low),
            y=rows.top(at),
            width=per_cent(max(high - low, 0.002)),
            height=rows.bar,
            class_=f"{line.colour} fill part",
        ),
        element("text", line.amount, x="100%", dx=6, y=rows.middle(at) + 4, class_="value"),
        class_="hit",
    )


def _joint(line: _Row, rows: Rows, scale: Scale, at: int) -> Markup:
    place = per_cent(scale.share(line.level))
    return element(
        "line",
        x1=place,
        x2=place,
        y1=rows.top(at) + rows.bar,
        y2=rows.top(at + 1),
        class_="joint",
    )


def _legend(block: Waterfall) -> Markup:
    if not _goes_both_ways(block):
        return Markup()
    return legend([Key(name="longer", mark="c-up"), Key(name="shorter", mark="c-down")])
