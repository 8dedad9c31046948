"""A scatter plot on two logarithmic axes as SVG, with the diagonal and a band around it."""

import math
from collections.abc import Iterator, Mapping, Sequence

from tests.bench.svg import COLOURS, drawing

SIZE, LEFT, TOP, LEGEND = 480, 60, 20, 230
TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
Point = tuple[float, float]


def scatter(points: Mapping[str, Sequence[Point]], across: str, up: str) -> str:
    """The drawing; points by the name of their set."""
    every = [value for group in points.values() for point in group for value in point]
    low, high = min(every) / 1.2, max(every) * 1.2
    lines = [*_frame(low, high, across, up)]
    for number, (name, group) in enumerate(points.items()):
        colour = COLOURS[number % len(COLOURS)]
        y = TOP + 20 + 20 * number
        x = LEFT + SIZE + 20
        lines.append(f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>')
        lines.append(f'<text x="{x + 10}" y="{y + 4}">{name}</text>')
        for first, second in group:
            at = f'cx="{_x(first, low, high):.1f}" cy="{_y(second, low, high):.1f}"'
            lines.append(f'<circle {at} r="2.5" fill="{colour}" fill-opacity="0.6"/>')
    width, height = LEFT + SIZE + LEGEND, TOP + SIZE + 50
    return drawing(width, height, lines)


def _frame(low: float, high: float, across: str, up: str) -> Iterator[str]:
    """Axes, the diagonal, and what is a factor of the root of two from it."""
    yield f'<rect x="{LEFT}" y="{TOP}" width="{SIZE}" height="{SIZE}" fill="none" stroke="#444"/>'
    for factor, dashes in ((1.0, ""), (math.sqrt(2), "4 3"), (1 / math.sqrt(2), "4 3")):
        first, last = max(low, low / factor), min(high, high / factor)
        start = f'x1="{_x(first, low, high):.1f}" y1="{_y(first * factor, low, high):.1f}"'
        end = f'x2="{_x(last, low, high):.1f}" y2="{_y(last * factor, low, high):.1f}"'
        yield f'<line {start} {end} stroke="#999" stroke-dasharray="{dashes}"/>'
    for tick in TICKS:
        if low <= tick <= high:
            x, y = _x(tick, low, high), _y(tick, low, high)
            yield f'<text x="{x:.1f}" y="{TOP + SIZE + 16}" text-anchor="middle">{tick:g}</text>'
            yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'
    middle = LEFT + SIZE / 2
    yield f'<text x="{middle}" y="{TOP + SIZE + 38}" text-anchor="middle">{across}</text>'
    turned = f'transform="rotate(-90 14 {TOP + SIZE / 2})"'
    yield f'<text x="14" y="{TOP + SIZE / 2}" text-anchor="middle" {turned}>{up}</text>'


def _x(value: float, low: float, high: float) -> float:
    return LEFT + SIZE * math.log(value / low) / math.log(high / low)


def _y(value: float, low: float, high: float) -> float:
    return TOP + SIZE - SIZE * math.log(value / low) / math.log(high / low)
