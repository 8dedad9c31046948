"""Blocks of a page as data: tables, charts and words, which HTML, Markdown and JSON show.

Values are raw (integer ns, bytes, fractions of 1); a column says its unit, and whoever shows it
formats it. Null stands for what is not known. All but words have a key, unique in the report
(`kernels.top`), and may be details, which pages show folded under their title.
"""

from enum import StrEnum

import msgspec

Cell = str | int | float | bool | None


class Unit(StrEnum):
    """What a number counts; renderers know how each is written."""

    TEXT = "text"
    CODE = "code"
    """Text as typed: a flag, a command, a kernel's name."""
    COUNT = "count"
    NS = "ns"
    """Shown in ms with two decimals, below 0.1 ms in us."""
    FRAC = "frac"
    """Share of 1, shown in per cent."""
    FACTOR = "factor"
    """Shown as 1.08x."""
    BYTES = "bytes"
    BYTES_PER_S = "bytes_per_s"
    FLOPS_PER_S = "flops_per_s"
    FLOPS_PER_BYTE = "flops_per_byte"


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """The SQL that gives the figures of a block, to be typed as it stands."""

    sql: str
    """One read-only statement on the tables of the run, values written in."""
    command: str
    """`replay sql TRACE --query NAME --param …`, or with the statement."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a table."""

    name: str
    unit: Unit
    about: str = ""
    """What it means, where its name does not tell; becomes a tooltip and a definition."""
    has_bar: bool = False
    """A bar behind each value shows its share of the largest."""


class DataTable(msgspec.Struct, frozen=True, kw_only=True, tag="table"):
    """Rows; the first column names each row."""

    key: str
    """Unique in the report: `kernels.top`."""
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    about: str = ""
    query: Query | None = None
    left_out: int = 0
    """Rows that there are beyond these."""
    is_map: bool = False
    """Numbers are shaded by where they lie between the least and the most of the whole table."""
    is_detail: bool = False


class Words(msgspec.Struct, frozen=True, kw_only=True, tag="words"):
    """A paragraph or two."""

    paragraphs: tuple[str, ...]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One colour of a chart."""

    name: str
    role: str
    """Decides the colour on all charts: a name of `charts.palette.ROLES`, `other` for the rest."""
    values: tuple[float | None, ...]


class StackedBars(msgspec.Struct, frozen=True, kw_only=True, tag="stacked_bars"):
    """A horizontal bar for each category; its parts add up to the whole."""

    key: str
    title: str
    about: str
    """The alternative text: what a reader who does not see the chart should know."""
    unit: Unit
    categories: tuple[str, ...]
    parts: tuple[Part, ...]
    """Values in the order of the categories."""
    query: Query | None = None
    is_detail: bool = False


class Lines(msgspec.Struct, frozen=True, kw_only=True, tag="lines"):
    """Lines over a common x: a step strip (x = step number), memory over time, distributions."""

    key: str
    title: str
    about: str
    x_name: str
    x_unit: Unit
    x: tuple[float, ...]
    y_unit: Unit
    lines: tuple[Part, ...]
    marks: tuple[tuple[float, str], ...] = ()
    """Places on x with a word: an outlier, a peak."""
    has_points: bool = False
    """Separate points, no line between them."""
    is_log_x: bool = False
    query: Query | None = None
    is_detail: bool = False


class RangeBar(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its range."""

    name: str
    value: float
    low: float
    high: float


class Ranges(msgspec.Struct, frozen=True, kw_only=True, tag="ranges"):
    """Values with ranges against a baseline: predicted steps."""

    key: str
    title: str
    about: str
    unit: Unit
    baseline: float
    baseline_name: str
    bars: tuple[RangeBar, ...]
    is_detail: bool = False


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One bar of a waterfall, signed."""

    name: str
    role: str
    change: float


class Waterfall(msgspec.Struct, frozen=True, kw_only=True, tag="waterfall"):
    """From one total to another, part by part: start + all changes = end."""

    key: str
    title: str
    about: str
    unit: Unit
    start: float
    start_name: str
    end: float
    end_name: str
    changes: tuple[Change, ...]
    query: Query | None = None
    is_detail: bool = False


class Dot(msgspec.Struct, frozen=True, kw_only=True):
    """A point of a scatter plot."""

    name: str
    role: str
    x: float
    y: float
    weight: float = 1.0
    """Decides the area."""


class Roof(msgspec.Struct, frozen=True, kw_only=True):
    """A line that bounds the points, through these places (straight on the scales drawn)."""

    name: str
    points: tuple[tuple[float, float], ...]


class Scatter(msgspec.Struct, frozen=True, kw_only=True, tag="scatter"):
    """Points under roofs: kernels against the roofline, collectives against the link."""

    key: str
    title: str
    about: str
    x_name: str
    x_unit: Unit
    y_name: str
    y_unit: Unit
    is_log: bool
    """Both axes."""
    dots: tuple[Dot, ...]
    roofs: tuple[Roof, ...] = ()
    query: Query | None = None
    is_detail: bool = False


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of time on a lane."""

    lane: str
    name: str
    role: str
    ts_ns: int
    """After the origin of the timeline."""
    dur_ns: int


class Timeline(msgspec.Struct, frozen=True, kw_only=True, tag="timeline"):
    """Pieces on lanes over time: the critical path as it moves between ranks."""

    key: str
    title: str
    about: str
    lanes: tuple[str, ...]
    pieces: tuple[Piece, ...]
    query: Query | None = None
    is_detail: bool = False


Block = DataTable | Words | StackedBars | Lines | Ranges | Waterfall | Scatter | Timeline


def details(*blocks: Block) -> tuple[Block, ...]:
    """The blocks as details; words stay as they are."""
    return tuple(
        block if isinstance(block, Words) else msgspec.structs.replace(block, is_detail=True)
        for block in blocks
    )
