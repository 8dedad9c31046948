"""Values with their ranges against a baseline: predicted steps."""

from markupsafe import Markup

from whatif.report.blocks import RangeBar, Ranges
from whatif.report.charts.amounts import told, told_range
from whatif.report.charts.frame import Drawing, Frame, Key, Rows, axis_across, legend, plot, rows_of
from whatif.report.charts.scale import Scale, around
from whatif.report.charts.svg import element, per_cent, title

RIGHT_PX = 92
CAP_PX = 4


def draw(block: Ranges) -> Drawing:
    """A dot on its range for each value; the baseline goes through all rows."""
    ends = (block.baseline, *(end for bar in block.bars for end in (bar.low, bar.value, bar.high)))
    scale = around(ends)
    rows = rows_of([bar.name for bar in block.bars])
    at = per_cent(scale.share(block.baseline))
    base = element(
        "line",
        title(f"{block.baseline_name}: {told(block.baseline, block.unit)}"),
        x1=at,
        x2=at,
        y1=0,
        y2=rows.height,
        class_="baseline",
    )
    drawn = [axis_across(scale, block.unit, rows.height), rows.names(), base]
    drawn += [_bar(block, bar, rows, scale, at) for at, bar in enumerate(block.bars)]
    frame = Frame(height=rows.height, left=rows.left, right=RIGHT_PX)
    keys = [
        Key(
            name=block.baseline_name,
            mark="baseline",
            is_line=True,
            amount=told(block.baseline, block.unit),
        ),
        Key(name="value in its range", mark="c-compute"),
    ]
    return Drawing(
        picture=plot(frame, block.about, *drawn),
        legend=legend(keys),
        remark="" if scale.low == 0 else "The axis does not begin at zero.",
    )


def _bar(block: Ranges, bar: RangeBar, rows: Rows, scale: Scale, at: int) -> Markup:
    y = rows.middle(at)
    low, high = per_cent(scale.share(bar.low)), per_cent(scale.share(bar.high))
    ends = [
        element("line", x1=end, x2=end, y1=y - CAP_PX, y2=y + CAP_PX, class_="c-compute line")
        for end in (low, high)
    ]
    text = (
        f"{bar.name}: {told(bar.value, block.unit)} ({told_range(bar.low, bar.high, block.unit)})"
    )
    return element(
        "g",
        title(text),
        element("rect", x=0, y=rows.top(at), width="100%", height=rows.bar, class_="reach"),
        element("line", x1=low, x2=high, y1=y, y2=y, class_="c-compute line"),
        *ends,
        element(
            "circle", cx=per_cent(scale.share(bar.value)), cy=y, r=5, class_="c-compute fill part"
        ),
        element("text", told(bar.value, block.unit), x="100%", dx=8, y=y + 4, class_="value"),
        class_="hit",
    )
