"""Lines or points over a common x: steps of each rank, memory over time."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from whatif.report.blocks import Lines, Part
from whatif.report.charts.amounts import told
from whatif.report.charts.frame import (
    ALL,
    Drawing,
    Frame,
    Key,
    axis_across,
    axis_up,
    left_for,
    legend,
    numbered,
    plot,
    stretched,
)
from whatif.report.charts.palette import SERIES, marks
from whatif.report.charts.scale import Scale, around
from whatif.report.charts.svg import element, per_cent, title

HEIGHT_PX = 200.0
MOST_POINTS = 150
"""Of a line; beyond them only the line is drawn."""
MOST_BESIDE = 60
"""Points side by side across a phone."""
DASHES = (None, "6 3", "2 3", "8 3 2 3")
"""Lines of the same colour differ by them."""
SHAPES = (
    "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
    "M-3-3h6v6h-6z",
    "M0-4l3.7 6.6h-7.4z",
)
"""Circle, square and triangle about (0, 0), px. Points differ by them as well as by colour, and as
there are 3 of these and 8 colours, 24 lines have marks of their own."""


def draw(block: Lines) -> Drawing:
    """Lines with points where few, marked places numbered along the top."""
    values = tuple(value for part in block.lines for value in part.values if value is not None)
    if not values or not block.x:
        return Drawing(picture=Markup(), remark="Nothing was recorded for this chart.")
    x_scale, y_scale = _along(block), around(values)
    colours = marks([line.role for line in block.lines])
    drawn = [
        axis_across(x_scale, block.x_unit, HEIGHT_PX, name=block.x_name),
        axis_up(y_scale, block.y_unit, HEIGHT_PX),
        *_marked(block, x_scale),
    ]
    if not block.has_points:
        paths = [
            _path(block.x, line, (x_scale, y_scale), colour, _dash(at))
            for at, (line, colour) in enumerate(zip(block.lines, colours, strict=True))
        ]
        drawn.append(stretched(*paths))
    if block.has_points or len(block.x) <= MOST_POINTS:
        for at, colour in enumerate(colours):
            drawn.append(
                element(
                    "g",
                    *_points(block, block.lines[at], (x_scale, y_scale), colour, _shape(at)),
                    transform=_aside(block, at),
                )
            )
    frame = Frame(
        height=HEIGHT_PX, left=left_for(y_scale, block.y_unit), right=20, top=20, bottom=38
    )
    keys = [
        Key(
            name=line.name,
            mark=colour,
            is_line=not block.has_points,
            dash=_dash(at),
            shape=_shape(at),
        )
        for at, (line, colour) in enumerate(zip(block.lines, colours, strict=True))
    ]
    return Drawing(
        picture=plot(frame, block.about, *drawn),
        legend=legend(keys),
        notes=tuple(f"{told(x, block.x_unit)}: {word}" for x, word in block.marks),
        remark="" if y_scale.low == 0 else "The axis up does not begin at zero.",
    )


def _dash(at: int) -> str | None:
    return DASHES[at // len(SERIES) % len(DASHES)]


def _shape(at: int) -> str:
    return SHAPES[at % len(SHAPES)]


def _along(block: Lines) -> Scale:
    """From the first to the last x; separate points, and one alone, have air at the sides."""
    low, high = min(block.x), max(block.x)
    places = len(set(block.x))
    if places == 1:
        return Scale(low=low - 0.5, high=high + 0.5)
    if block.is_log_x and low > 0:
        return Scale(low=low, high=high, is_log=True)
    air = (high - low) / (places - 1) / 2 if block.has_points else 0
    return Scale(low=low - air, high=high + air)


def _aside(block: Lines, at: int) -> str | None:
    """Points of several lines at one x stand beside each other, not on top, while there is room."""
    if not block.has_points or len(set(block.x)) * len(block.lines) > MOST_BESIDE:
        return None
    return f"translate({(at - (len(block.lines) - 1) / 2) * 5:g} 0)"


def _marked(block: Lines, x_scale: Scale) -> Iterator[Markup]:
    for number, (x, word) in enumerate(block.marks, start=1):
        place = per_cent(x_scale.share(x))
        yield element("line", title(word), x1=place, x2=place, y1=-4, y2=HEIGHT_PX, class_="marked")
        yield numbered(number, place, -7)


def _path(
    x: Sequence[float],
    line: Part,
    scales: tuple[Scale, Scale],
    colour: str,
    dash: str | None,
) -> Markup:
    """The line, broken where a value is not known."""
    across, up = scales
    told_, is_open = [], False
    for at, value in zip(x, line.values, strict=True):
        if value is not None:
            place = f"{across.share(at) * ALL:.1f} {(1 - up.share(value)) * ALL:.1f}"
            told_.append(f"{'L' if is_open else 'M'}{place}")
        is_open = value is not None
    return element("path", d="".join(told_), class_=f"{colour} line", stroke_dasharray=dash)


def _points(
    block: Lines, line: Part, scales: tuple[Scale, Scale], colour: str, shape: str
) -> Iterator[Markup]:
    across, up = scales
    for x, value in zip(block.x, line.values, strict=True):
        if value is not None:
            named = f"{block.x_name} {told(_whole(x), block.x_unit)}"
            mark = element(
                "path",
                title(f"{line.name}, {named}: {told(value, block.y_unit)}"),
                d=shape,
                class_=f"{colour} fill part",
            )
            yield element(
                "svg",
                mark,
                x=per_cent(across.share(x)),
                y=(1 - up.share(value)) * HEIGHT_PX,
                overflow="visible",
            )


def _whole(value: float) -> float:
    return int(value) if value == round(value) else value
