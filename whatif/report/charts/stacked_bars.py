"""Bars of parts that add up to a whole: where time goes on each rank."""

from markupsafe import Markup

from whatif.report.blocks import StackedBars, Unit
from whatif.report.charts.amounts import told
from whatif.report.charts.frame import Drawing, Frame, Key, axis_across, legend, plot, rows_of
from whatif.report.charts.palette import marks
from whatif.report.charts.scale import from_zero
from whatif.report.charts.svg import element, per_cent, title

RIGHT_PX = 88
"""Room for the whole, behind the bars."""


def draw(block: StackedBars) -> Drawing:
    """A row for each category, the whole behind it, shares of all rows in the legend."""
    rows = rows_of(block.categories)
    wholes = [
        sum(part.values[at] or 0 for part in block.parts) for at in range(len(block.categories))
    ]
    scale = from_zero(max(wholes, default=0))
    colours = marks([part.role for part in block.parts])
    drawn = [axis_across(scale, block.unit, rows.height), rows.names()]
    for at, whole in enumerate(wholes):
        before = 0.0
        for part, colour in zip(block.parts, colours, strict=True):
            value = part.values[at] or 0
            if value > 0:
                share = value / whole if whole else 0
                text = (
                    f"{block.categories[at]}: {part.name} {told(value, block.unit)} "
                    f"({told(share, Unit.FRAC)})"
                )
                drawn.append(
                    element(
                        "rect",
                        title(text),
                        x=per_cent(scale.share(before)),
                        y=rows.top(at),
                        width=per_cent(scale.share(value)),
                        height=rows.bar,
                        class_=f"{colour} fill part",
                    )
                )
                before += value
        if at % rows.every == 0:
            drawn.append(_whole(told(whole, block.unit), rows.middle(at) + 4))
    frame = Frame(height=rows.height, left=rows.left, right=RIGHT_PX)
    return Drawing(picture=plot(frame, block.about, *drawn), legend=_legend(block, colours))


def _whole(text: str, y: float) -> Markup:
    return element("text", text, x="100%", dx=6, y=y, class_="value")


def _legend(block: StackedBars, colours: tuple[str, ...]) -> Markup:
    """Each part with its share of the sum over all categories."""
    sums = [sum(value or 0 for value in part.values) for part in block.parts]
    everything = sum(sums)
    return legend(
        [
            Key(
                name=part.name,
                mark=colour,
                amount=told(amount / everything, Unit.FRAC) if everything else "",
            )
            for part, colour, amount in zip(block.parts, colours, sums, strict=True)
        ]
    )
