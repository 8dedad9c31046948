"""Points under roofs: kernels against the roofline, collectives against the link."""

from collections.abc import Iterator, Sequence
from math import sqrt

from markupsafe import Markup

from whatif.report.blocks import Dot, Roof, Scatter
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
from whatif.report.charts.palette import ALIASES, ROLES, mark, marks
from whatif.report.charts.scale import Scale, around
from whatif.report.charts.svg import element, per_cent, title

HEIGHT_PX = 300.0
NUMBERED = 6
"""Heaviest points that are named under the chart."""
LEAST_PX, MOST_PX = 3.5, 13.0
HOLDS_NUMBER_PX = 8.0
"""A smaller point has its number beside it."""
DASHES = ("7 4", "2 3", "10 3 2 3")


def draw(block: Scatter) -> Drawing:
    """Points by weight, the heaviest numbered; those that a log axis cannot show are told."""
    dots = [dot for dot in block.dots if not block.is_log or (dot.x > 0 and dot.y > 0)]
    hidden = len(block.dots) - len(dots)
    if not dots:
        return Drawing(picture=Markup(), remark="Nothing was recorded for this chart.")
    across, up = _scales(block, dots)
    heaviest = sorted(dots, key=lambda dot: -dot.weight)
    classes = _classes(dots)
    drawn = [
        axis_across(across, block.x_unit, HEIGHT_PX, name=block.x_name),
        axis_up(up, block.y_unit, HEIGHT_PX),
        stretched(*(_roof(roof, across, up, at) for at, roof in enumerate(block.roofs))),
        *(_dot(block, dot, (across, up), heaviest[0].weight, classes) for dot in heaviest),
        *_numbers(heaviest[:NUMBERED], across, up),
    ]
    frame = Frame(height=HEIGHT_PX, left=left_for(up, block.y_unit), right=20, top=14, bottom=38)
    return Drawing(
        picture=plot(frame, block.about, *drawn),
        legend=legend([*_roles(dots, classes), *_roofs(block.roofs)]),
        notes=tuple(_told(block, dot) for dot in heaviest[:NUMBERED]),
        remark=_remark(block, hidden),
    )


def _scales(block: Scatter, dots: Sequence[Dot]) -> tuple[Scale, Scale]:
    """Of the points, and of the roofs' heights (where roofs end sideways says nothing)."""
    xs = tuple(dot.x for dot in dots)
    ys = (*(dot.y for dot in dots), *(_summit(roof) for roof in block.roofs))
    return around(xs, is_log=block.is_log), around(ys, is_log=block.is_log)


def _summit(roof: Roof) -> float:
    return max(y for _, y in roof.points)


def _remark(block: Scatter, hidden: int) -> str:
    up = f"Up: {block.y_name}{', both axes logarithmic' if block.is_log else ''}; area by weight."
    return f"{up} {hidden} points at zero are not shown." if hidden else up


def _roof(roof: Roof, across: Scale, up: Scale, at: int) -> Markup:
    """The line, cut at the edges of the plot by the picture's own bounds."""
    places = [
        f"{_beyond(across, x) * ALL:.1f},{(1 - _beyond(up, y)) * ALL:.1f}" for x, y in roof.points
    ]
    return element(
        "polyline",
        points=" ".join(places),
        class_="roof",
        stroke_dasharray=DASHES[at % len(DASHES)],
    )


def _beyond(scale: Scale, value: float) -> float:
    """Share of the axis, also outside of it: a slope must not bend at the edge."""
    if scale.low <= value <= scale.high:
        return scale.share(value)
    if not scale.is_log:
        return (value - scale.low) / (scale.high - scale.low)
    least = max(value, scale.low * 1e-12)
    wide = Scale(low=min(least, scale.low), high=max(least, scale.high), is_log=True)
    start, end = wide.share(scale.low), wide.share(scale.high)
    return (wide.share(least) - start) / (end - start)


def _classes(dots: Sequence[Dot]) -> dict[str, str]:
    """Class of the style sheet by role; groups that are no roles get colours one after another."""
    names = list(dict.fromkeys(dot.role for dot in dots))
    if any(ALIASES.get(name, name) in ROLES for name in names):
        return {name: mark(name) for name in names}
    return dict(zip(names, marks(names), strict=True))


def _dot(
    block: Scatter,
    dot: Dot,
    scales: tuple[Scale, Scale],
    most: float,
    classes: dict[str, str],
) -> Markup:
    across, up = scales
    return element(
        "circle",
        title(_told(block, dot)),
        cx=per_cent(across.share(dot.x)),
        cy=(1 - up.share(dot.y)) * HEIGHT_PX,
        r=_radius(dot, most),
        class_=f"{classes[dot.role]} fill dot",
    )


def _radius(dot: Dot, most: float) -> float:
    """By the area, in px."""
    share = dot.weight / most if most > 0 else 1.0
    return max(LEAST_PX, MOST_PX * sqrt(max(share, 0.0)))


def _told(block: Scatter, dot: Dot) -> str:
    x, y = told(dot.x, block.x_unit), told(dot.y, block.y_unit)
    return f"{dot.name}: {y} at {x}"


def _numbers(dots: Sequence[Dot], across: Scale, up: Scale) -> Iterator[Markup]:
    for number, dot in enumerate(dots, start=1):
        y = (1 - up.share(dot.y)) * HEIGHT_PX
        radius = _radius(dot, dots[0].weight)
        aside = None if radius >= HOLDS_NUMBER_PX else radius + 3
        yield numbered(number, per_cent(across.share(dot.x)), y + 4, beside_px=aside)


def _roles(dots: Sequence[Dot], classes: dict[str, str]) -> list[Key]:
    names = dict.fromkeys(ALIASES.get(dot.role, dot.role) for dot in dots)
    known = [name for name in names if name in ROLES]
    if not known:
        return [Key(name=name, mark=classes[name]) for name in classes]
    keys = [Key(name=name, mark=mark(name)) for name in known if name != "other"]
    rest = [name for name in names if name not in ROLES or name == "other"]
    return [*keys, *([Key(name=", ".join(rest), mark="c-other")] if rest else [])]


def _roofs(roofs: Sequence[Roof]) -> list[Key]:
    return [
        Key(name=roof.name, mark="roof", is_line=True, dash=DASHES[at % len(DASHES)])
        for at, roof in enumerate(roofs)
    ]
