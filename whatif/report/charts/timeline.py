"""Pieces of time on lanes: the critical path as it moves between ranks."""

from markupsafe import Markup

from whatif.report.blocks import Piece, Timeline, Unit
from whatif.report.charts.amounts import told
from whatif.report.charts.frame import Drawing, Frame, Key, Rows, axis_across, legend, plot, rows_of
from whatif.report.charts.palette import ALIASES, ROLES, mark
from whatif.report.charts.scale import Scale, from_zero
from whatif.report.charts.svg import element, per_cent, title

LEAST_SHARE = 0.0012
"""Of the width: a piece that can be seen."""


def draw(block: Timeline) -> Drawing:
    """A row for each lane."""
    if not block.pieces:
        return Drawing(picture=Markup(), remark="Nothing was recorded for this chart.")
    scale = from_zero(max(piece.ts_ns + piece.dur_ns for piece in block.pieces))
    rows = rows_of(block.lanes)
    lane_of = {lane: at for at, lane in enumerate(block.lanes)}
    drawn = [
        axis_across(scale, Unit.NS, rows.height),
        *(_lane(rows, at) for at in range(len(block.lanes))),
        rows.names(),
        *(_piece(piece, rows, scale, lane_of[piece.lane]) for piece in block.pieces),
    ]
    frame = Frame(height=rows.height, left=rows.left, right=28)
    return Drawing(picture=plot(frame, block.about, *drawn), legend=_legend(block))


def _lane(rows: Rows, at: int) -> Markup:
    y = rows.middle(at)
    return element("line", x1="0", x2="100%", y1=y, y2=y, class_="grid")


def _piece(piece: Piece, rows: Rows, scale: Scale, lane: int) -> Markup:
    text = (
        f"{piece.lane}, {told(piece.ts_ns, Unit.NS)}: {piece.name}, {told(piece.dur_ns, Unit.NS)}"
    )
    return element(
        "rect",
        title(text),
        x=per_cent(scale.share(piece.ts_ns)),
        y=rows.top(lane),
        width=per_cent(max(piece.dur_ns / scale.high, LEAST_SHARE)),
        height=rows.bar,
        class_=f"{mark(piece.role)} fill",
    )


def _legend(block: Timeline) -> Markup:
    """Roles with their time on all lanes."""
    sums: dict[str, int] = {}
    for piece in block.pieces:
        name = ALIASES.get(piece.role, piece.role)
        sums[name] = sums.get(name, 0) + piece.dur_ns
    ordered = sorted(sums.items(), key=lambda item: -item[1])
    return legend(
        [
            Key(
                name=name, mark=mark(name) if name in ROLES else "c-other", amount=told(ns, Unit.NS)
            )
            for name, ns in ordered
        ]
    )
