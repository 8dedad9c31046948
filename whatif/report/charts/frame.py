"""What charts share: margins in pixels, axes, legends, rows with labels."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from whatif.report.blocks import Unit
from whatif.report.charts.amounts import axis_unit, told
from whatif.report.charts.scale import Scale
from whatif.report.charts.svg import cut, element, per_cent

TICKS_ACROSS = 4
TICKS_UP = 5
LETTER_PX = 7.0
"""Width of a letter of 12 px, on the wide side."""
LONGEST_BESIDE = 13
"""Letters of a label that still stands left of its row; longer ones stand above it."""
LONGEST_ABOVE = 46
"""Letters that fit a phone."""
MOST_TALL_ROWS = 16
MOST_LOW_ROWS = 40
ALL = 1000
"""Side of the square that lines are drawn in, before it is stretched to the plot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The plot's height and margins, in px; its width is what the page gives."""

    height: float
    left: int = 8
    right: int = 12
    top: int = 6
    bottom: int = 24


def plot(frame: Frame, about: str, *marks: Markup) -> Markup:
    """The SVG in its margins; `about` is read to who does not see it."""
    margins = f"padding:{frame.top}px {frame.right}px {frame.bottom}px {frame.left}px"
    drawn = element(
        "svg",
        *marks,
        role="img",
        aria_label=about,
        width="100%",
        height=frame.height,
        class_="chart",
    )
    return element("div", drawn, class_="plot", style=margins)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Where the rows of a chart of bars lie."""

    labels: tuple[str, ...]
    is_above: bool
    """The label stands above its bar."""
    pitch: float
    """Px from one row to the next."""
    bar: float
    """Height of a bar, px."""
    every: int
    """Each that many rows have their label."""

    @property
    def height(self) -> float:
        """Of all rows, px."""
        return self.pitch * len(self.labels)

    @property
    def left(self) -> int:
        """Margin for the labels, px."""
        if self.is_above:
            return 2
        return round(max(map(len, self.labels), default=0) * LETTER_PX) + 12

    def top(self, at: int) -> float:
        """Upper edge of a bar, px."""
        air = self.pitch - self.bar
        return at * self.pitch + (air - 2 if self.is_above else air / 2)

    def middle(self, at: int) -> float:
        """Middle of a bar, px."""
        return self.top(at) + self.bar / 2

    def names(self) -> Markup:
        """The labels."""
        shown = range(0, len(self.labels), self.every)
        return Markup("").join(self._name(at) for at in shown)

    def _name(self, at: int) -> Markup:
        label = self.labels[at]
        if self.is_above:
            text = cut(label, LONGEST_ABOVE)
            whole = (element("title", label),) if text != label else ()
            return element("text", text, *whole, x="0", y=self.top(at) - 5, class_="label")
        y = self.middle(at) + 4
        return element("text", label, x="-8", y=y, class_="label", text_anchor="end")


def rows_of(labels: Sequence[str]) -> Rows:
    """Rows for these labels: beside the bars where short, and lower where there are many."""
    is_above = any(len(label) > LONGEST_BESIDE for label in labels)
    if is_above:
        pitch, bar, every = 36.0, 14.0, 1
    elif len(labels) <= MOST_TALL_ROWS:
        pitch, bar, every = 24.0, 16.0, 1
    elif len(labels) <= MOST_LOW_ROWS:
        pitch, bar, every = 16.0, 12.0, 1
    else:
        pitch, bar, every = 6.0, 5.0, 4
    return Rows(labels=tuple(labels), is_above=is_above, pitch=pitch, bar=bar, every=every)


def axis_across(scale: Scale, unit: Unit, height: float, *, name: str = "") -> Markup:
    """Hairlines, values below them, and the unit at the right end of the line of values."""
    texts = tick_texts(scale, unit, TICKS_ACROSS)
    lines = [
        element("line", x1=per_cent(at), x2=per_cent(at), y1=0, y2=height, class_="grid")
        for at, _ in texts
    ]
    words = [
        element("text", text, x=per_cent(at), y=height + 15, text_anchor=_anchor(at), class_="tick")
        for at, text in texts
    ]
    if name:
        words.append(
            element("text", name, x="100%", y=height + 31, text_anchor="end", class_="axis")
        )
    return Markup("").join([*lines, *words])


def _anchor(share: float) -> str:
    """Values at the ends stay inside the figure."""
    return "start" if share < 0.02 else "middle"  # noqa: PLR2004  (the left end)


def axis_up(scale: Scale, unit: Unit, height: float) -> Markup:
    """Hairlines across and values left of the plot."""
    marks = []
    for share, text in tick_texts(scale, unit, TICKS_UP):
        y = (1 - share) * height
        marks.append(element("line", x1="0", x2="100%", y1=y, y2=y, class_="grid"))
        marks.append(element("text", text, x="-8", y=y + 4, text_anchor="end", class_="tick"))
    return Markup("").join(marks)


def tick_texts(scale: Scale, unit: Unit, most: int) -> list[tuple[float, str]]:
    """Shares of the axis and what is written there, the unit with the last (log: with each)."""
    if scale.is_log:
        return _log_texts(scale, unit, most)
    counted = axis_unit(max(abs(scale.low), abs(scale.high)), unit)
    values = scale.ticks(most, divisor=counted.divisor)
    if unit is Unit.COUNT:
        values = tuple(value for value in values if value == round(value))
    texts = _alike([value / counted.divisor for value in values])
    if texts and counted.name:
        gap = "" if counted.name in {"x"} else " "
        texts[-1] += f"{gap}{counted.name}"
    return [(scale.share(value), text) for value, text in zip(values, texts, strict=True)]


def _alike(values: Sequence[float]) -> list[str]:
    """All with as many decimals as the one that needs most."""
    needed = [f"{value:.6f}".rstrip("0").partition(".")[2] for value in values]
    digits = max(map(len, needed), default=0)
    return [f"{value:,.{digits}f}" for value in values]


def _log_texts(scale: Scale, unit: Unit, most: int) -> list[tuple[float, str]]:
    """Without the unit in all but the last where the letters would not fit a phone."""
    values = scale.ticks(most)
    texts = [told(_whole(value), unit) for value in values]
    if unit is Unit.FLOPS_PER_BYTE:
        texts[:-1] = [text.partition(" ")[0] for text in texts[:-1]]
    return [(scale.share(value), text) for value, text in zip(values, texts, strict=True)]


def _whole(value: float) -> float:
    return int(value) if value == round(value) else value


def left_for(scale: Scale, unit: Unit) -> int:
    """Margin that the values left of a plot need, px."""
    longest = max((len(text) for _, text in tick_texts(scale, unit, TICKS_UP)), default=1)
    return round(longest * LETTER_PX) + 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An entry of a legend."""

    name: str
    mark: str
    """Class of the colour."""
    is_line: bool = False
    dash: str | None = None
    shape: str = ""
    """Outline of its points about (0, 0), px; empty for an area."""
    amount: str = ""
    """A figure told behind the name."""


def legend(keys: Sequence[Key]) -> Markup:
    """Names of the parts with their colours."""
    return element("ul", *map(_entry, keys), class_="legend")


def _entry(key: Key) -> Markup:
    if key.is_line:
        sample = element(
            "line", x1=0, x2=18, y1=6, y2=6, class_=f"{key.mark} line", stroke_dasharray=key.dash
        )
    elif key.shape:
        sample = element(
            "path", d=key.shape, transform="translate(9 6) scale(1.5)", class_=f"{key.mark} fill"
        )
    else:
        sample = element("rect", x=3, y=0, width=12, height=12, class_=f"{key.mark} fill")
    swatch = element("svg", sample, width=18, height=12, aria_hidden="true")
    amount = (element("span", key.amount, class_="amount"),) if key.amount else ()
    return element("li", swatch, element("span", key.name), *amount)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A chart as a page shows it."""

    picture: Markup
    legend: Markup = field(default_factory=Markup)
    notes: tuple[str, ...] = ()
    """Numbered places of the picture, in words."""
    remark: str = ""
    """What a reader must know of the axes."""


def stretched(*lines: Markup) -> Markup:
    """Lines drawn in a square of `ALL`, stretched to the plot; strokes keep their width."""
    return element(
        "svg",
        *lines,
        width="100%",
        height="100%",
        viewBox=f"0 0 {ALL} {ALL}",
        preserveAspectRatio="none",
        class_="stretched",
    )


def numbered(number: int, x: str, y: float, *, beside_px: float | None = None) -> Markup:
    """A small number at a place, or so far right of it; it is told under the picture."""
    anchor = "middle" if beside_px is None else "start"
    return element("text", str(number), x=x, dx=beside_px, y=y, class_="number", text_anchor=anchor)
