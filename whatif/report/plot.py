"""A chart in characters: the step over one axis, with its range where there is one line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log

from ingest.units import format_ms

LETTERS = "abcdefgh"
ALONE = "●"
BAR = "│"
BASELINE = "·"
HEIGHT = 14
LEAST_WIDTH = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points of one line; all columns have the same length."""

    name: str
    x: tuple[float, ...]
    y_ns: tuple[int, ...]
    low_ns: tuple[int, ...]
    high_ns: tuple[int, ...]


def chart(series: Sequence[Series], x_label: str, baseline_ns: int, width: int) -> Iterator[str]:
    """The lines of the chart; at most `len(LETTERS)` series, the rest is the caller's to tell."""
    has_bars = len(series) == 1
    lowest = min(min(one.low_ns if has_bars else one.y_ns) for one in series)
    highest = max(max(one.high_ns if has_bars else one.y_ns) for one in series)
    margin = max(len(format_ms(lowest)), len(format_ms(highest))) + 2
    canvas = _Canvas(
        xs=sorted({x for one in series for x in one.x}),
        lowest=lowest,
        highest=highest,
        width=max(width - margin, LEAST_WIDTH),
    )
    canvas.line(baseline_ns)
    marks = [ALONE] if len(series) == 1 else LETTERS
    if has_bars:
        (alone,) = series
        for x, low_ns, high_ns in zip(alone.x, alone.low_ns, alone.high_ns, strict=True):
            canvas.bar(x, low_ns, high_ns)
    for one, mark in zip(series, marks, strict=False):
        for x, y_ns in zip(one.x, one.y_ns, strict=True):
            canvas.put(x, y_ns, mark)
    yield from canvas.lines(margin, x_label)
    if len(series) > 1:
        yield from (f"  {mark} {one.name}" for one, mark in zip(series, marks, strict=False))


class _Canvas:
    """Cells of the chart, the highest step in the first row."""

    def __init__(self, *, xs: list[float], lowest: int, highest: int, width: int) -> None:
        self._xs = xs
        self._is_log = is_geometric(xs)
        self._lowest, self._highest = lowest, highest
        self._width = width
        self._cells = [[" "] * width for _ in range(HEIGHT)]

    def _column(self, x: float) -> int:
        first, last = self._xs[0], self._xs[-1]
        if first == last:
            return self._width // 2
        share = (x - first) / (last - first)
        if self._is_log:
            share = log(x / first) / log(last / first)
        return round(share * (self._width - 1))

    def _row(self, y_ns: int) -> int:
        span = self._highest - self._lowest
        share = (self._highest - y_ns) / span if span else 0.5
        return round(share * (HEIGHT - 1))

    def put(self, x: float, y_ns: int, mark: str) -> None:
        """One character; two series in one cell are a plus."""
        row, column = self._row(y_ns), self._column(x)
        taken = self._cells[row][column] in {*LETTERS, "+"}
        self._cells[row][column] = "+" if taken else mark

    def bar(self, x: float, low_ns: int, high_ns: int) -> None:
        """From the low to the high end of a range."""
        for row in range(self._row(high_ns), self._row(low_ns) + 1):
            self._cells[row][self._column(x)] = BAR

    def line(self, y_ns: int) -> None:
        """The unchanged run, where it is in sight."""
        if self._lowest <= y_ns <= self._highest:
            self._cells[self._row(y_ns)] = [BASELINE] * self._width

    def lines(self, margin: int, x_label: str) -> Iterator[str]:
        """With both axes."""
        span = self._highest - self._lowest
        for row, cells in enumerate(self._cells):
            y_ns = self._highest - round(span * row / (HEIGHT - 1))
            told = format_ms(y_ns) if row % 4 == 0 or row == HEIGHT - 1 else ""
            yield f"{told:>{margin - 2}} ┤{''.join(cells)}".rstrip()
        yield f"{'':{margin}}{self._ticks()}"
        label = f"{x_label}, log" if self._is_log else x_label
        yield f"{'':{margin}}{label:^{self._width}}".rstrip()

    def _ticks(self) -> str:
        """The values of the axis under their columns, as many as do not touch."""
        line = ""
        last = f"{self._xs[-1]:g}"
        for x in self._xs[:-1]:
            text, at = f"{x:g}", self._column(x)
            free = at >= len(line) + (2 if line else 0)
            if free and at + len(text) + 2 <= self._width - len(last):
                line = f"{line:<{at}}{text}"
        return f"{line:<{self._width - len(last)}}{last}"


def is_geometric(xs: Sequence[float]) -> bool:
    """Neighbours are rather a ratio apart than a difference."""
    if len(xs) < 3 or xs[0] <= 0:  # noqa: PLR2004  (two points are both)
        return False
    gaps = [after - before for before, after in pairwise(xs)]
    ratios = [log(after / before) for before, after in pairwise(xs)]
    return max(ratios) / min(ratios) < max(gaps) / min(gaps)
