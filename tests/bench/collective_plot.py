"""Predicted over measured time by size, one line per pair, as SVG."""

import math
from collections.abc import Iterator, Mapping, Sequence

from tests.bench.svg import COLOURS, drawing

WIDTH, HEIGHT, LEFT, TOP, LEGEND = 560, 320, 60, 20, 250
FIRST, LAST = 1 << 10, 1 << 34
LEAST, MOST = 0.25, 4.0
TICKS = {1 << 10: "1 KiB", 1 << 16: "64 KiB", 1 << 20: "1 MiB", 1 << 26: "64 MiB", 1 << 32: "4 GiB"}
RATIOS = (0.25, 0.5, 0.9, 1.0, 1.1, 2.0, 4.0)
Line = Sequence[tuple[float, float]]


def ratios_by_size(lines: Mapping[str, Line]) -> str:
    """The drawing; points are (size in bytes, predicted over measured)."""
    drawn = [*_frame()]
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        y = TOP + 20 + 20 * number
        x = LEFT + WIDTH + 20
        drawn.append(f'<line x1="{x}" y1="{y}" x2="{x + 18}" y2="{y}" stroke="{colour}"/>')
        drawn.append(f'<text x="{x + 24}" y="{y + 4}">{name}</text>')
        path = " ".join(f"{_x(size):.1f},{_y(ratio):.1f}" for size, ratio in points)
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    width, height = LEFT + WIDTH + LEGEND, TOP + HEIGHT + 50
    return drawing(width, height, drawn)


def _frame() -> Iterator[str]:
    box = f'x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}"'
    yield f'<rect {box} fill="none" stroke="#444"/>'
    for ratio in RATIOS:
        y = _y(ratio)
        dashes = "" if ratio == 1 else "4 3"
        line = f'x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + WIDTH}" y2="{y:.1f}"'
        yield f'<line {line} stroke="#bbb" stroke-dasharray="{dashes}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{ratio:g}</text>'
    for size, word in TICKS.items():
        yield f'<text x="{_x(size):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{word}</text>'
    middle = LEFT + WIDTH / 2
    yield f'<text x="{middle}" y="{TOP + HEIGHT + 38}" text-anchor="middle">size of the call</text>'
    turned = f'transform="rotate(-90 14 {TOP + HEIGHT / 2})"'
    text = "predicted / measured time"
    yield f'<text x="14" y="{TOP + HEIGHT / 2}" text-anchor="middle" {turned}>{text}</text>'


def _x(size: float) -> float:
    return LEFT + WIDTH * math.log(size / FIRST) / math.log(LAST / FIRST)


def _y(ratio: float) -> float:
    held = min(max(ratio, LEAST), MOST)
    return TOP + HEIGHT - HEIGHT * math.log(held / LEAST) / math.log(MOST / LEAST)
