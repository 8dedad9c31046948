"""Charts as SVG: marks lie where their numbers say, and names cannot break out."""

import re
from xml.etree import ElementTree as ET

import pytest

from tests.unit.postmortem import sample_report as sample
from whatif.report.blocks import (
    Change,
    Dot,
    Lines,
    Part,
    Piece,
    Scatter,
    StackedBars,
    Timeline,
    Unit,
    Waterfall,
)
from whatif.report.charts.as_table import table_of
from whatif.report.charts.draw import Chart, draw

CHARTS = (
    sample.stacked(),
    sample.lines(),
    sample.memory(),
    sample.ranges(),
    sample.waterfall(),
    sample.scatter(),
    sample.timeline(),
)
CLEAN = str.maketrans({"\x07": None})
"""XML, unlike the page's last pass, does not let it through."""


def _tree(chart: Chart) -> ET.Element:
    return ET.fromstring(str(draw(chart).picture).translate(CLEAN))


def _share(text: str) -> float:
    return float(text.rstrip("%")) / 100


def _titles(chart: Chart) -> list[str]:
    return [str(found.text) for found in _tree(chart).iter("title")]


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.key)
def test_a_chart_is_well_formed_and_says_what_it_shows(chart: Chart) -> None:
    picture = _tree(chart).find("svg")
    assert picture is not None
    assert picture.get("role") == "img"
    assert picture.get("aria-label") == chart.about


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.key)
def test_nothing_lies_outside_of_the_picture(chart: Chart) -> None:
    for found in _tree(chart).iter():
        for name in ("x", "cx", "x1", "x2"):
            place = found.get(name, "0")
            if place.endswith("%"):
                assert -0.001 <= _share(place) <= 1.001
        if found.tag == "rect" and found.get("width", "").endswith("%"):
            assert _share(found.get("x", "0%").rstrip("%")) + _share(found.get("width", "")) < 1.002


def test_bars_are_as_long_as_their_values() -> None:
    rects = list(_tree(sample.stacked()).iter("rect"))
    first = [found for found in rects if "rank 0" in "".join(found.itertext())]
    widths = [_share(found.get("width", "")) for found in first]
    assert widths == [0.62, 0.18, 0.2]
    starts = [_share(found.get("x", "")) for found in first]
    assert starts == [0, 0.62, 0.8]


def test_a_part_without_value_has_no_mark_and_is_unknown_in_the_table() -> None:
    assert not [text for text in _titles(sample.stacked()) if text.startswith("rank 0: copies")]
    assert table_of(sample.stacked()).rows[0][3] is None


def test_marks_tell_their_numbers() -> None:
    assert "rank 1: compute 31.00 ms (62.0 %)" in _titles(sample.stacked())
    assert "rank 7, step 12: 71.20 ms" in _titles(sample.lines())
    assert "optimizer: -1.80 ms" in _titles(sample.waterfall())
    assert "--network-scale 2: 42.00 ms (41.00-46.00 ms)" in _titles(sample.ranges())


def test_the_levels_of_a_waterfall_reach_its_end() -> None:
    rows = table_of(sample.waterfall()).rows
    assert [row[2] for row in rows][-2:] == [424_000_000, 424_000_000]


def test_changes_of_one_direction_keep_the_colour_of_their_role() -> None:
    chart = Waterfall(
        key="w",
        title="w",
        about="w",
        unit=Unit.NS,
        start=10,
        start_name="a",
        end=15,
        end_name="b",
        changes=(Change(name="c", role="gemm", change=5),),
    )
    assert "c-gemm" in draw(chart).picture
    assert "c-up" in draw(sample.waterfall()).picture


def test_a_line_is_broken_where_a_value_is_unknown() -> None:
    chart = Lines(
        key="l",
        title="l",
        about="l",
        x_name="x",
        x_unit=Unit.COUNT,
        x=(1, 2, 3, 4, 5),
        y_unit=Unit.NS,
        lines=(Part(name="a", role="host", values=(1, 2, None, 4, 5)),),
    )
    (path,) = [
        found.get("d", "")
        for found in _tree(chart).iter("path")
        if str(found.get("class", "")).endswith(" line")
    ]
    assert re.findall("[ML]", path) == ["M", "L", "M", "L"]


def test_points_of_no_two_lines_look_alike() -> None:
    lines = tuple(Part(name=f"rank {at}", role="series", values=(1, 2)) for at in range(24))
    chart = Lines(
        key="l", title="l", about="l", x_name="x", x_unit=Unit.COUNT, x=(1, 2), y_unit=Unit.NS,
        lines=lines, has_points=True,
    )  # fmt: skip
    looks = {(found.get("class"), found.get("d")) for found in _tree(chart).iter("path")}
    assert len(looks) == len(lines)
    keys = ET.fromstring(str(draw(chart).legend)).iter("path")
    assert {(found.get("class", "") + " part", found.get("d")) for found in keys} == looks


def test_points_at_zero_of_a_log_axis_are_counted() -> None:
    chart = sample.scatter()
    from msgspec.structs import replace

    dots = (replace(chart.dots[0], x=0.0), *chart.dots[1:])
    assert "1 points at zero" in draw(replace(chart, dots=dots)).remark


@pytest.mark.parametrize(
    "chart",
    [
        StackedBars(key="s", title="", about="", unit=Unit.NS, categories=(), parts=()),
        StackedBars(
            key="s",
            title="",
            about="",
            unit=Unit.NS,
            categories=("a",),
            parts=(Part(name="p", role="x", values=(0,)),),
        ),
        Lines(
            key="l", title="", about="", x_name="x", x_unit=Unit.NS, x=(), y_unit=Unit.NS, lines=()
        ),
        Lines(
            key="l",
            title="",
            about="",
            x_name="x",
            x_unit=Unit.NS,
            x=(3.0,),
            y_unit=Unit.NS,
            lines=(Part(name="a", role="x", values=(2.0,)),),
        ),
        Scatter(
            key="c",
            title="",
            about="",
            x_name="",
            x_unit=Unit.COUNT,
            y_name="",
            y_unit=Unit.COUNT,
            is_log=True,
            dots=(),
        ),
        Timeline(key="t", title="", about="", lanes=(), pieces=()),
        Timeline(
            key="t",
            title="",
            about="",
            lanes=("a",),
            pieces=(Piece(lane="a", name="n", role="x", ts_ns=0, dur_ns=0),),
        ),
        Waterfall(
            key="w",
            title="",
            about="",
            unit=Unit.NS,
            start=0,
            start_name="",
            end=0,
            end_name="",
            changes=(),
        ),
    ],
)
def test_charts_of_nothing_are_drawn_too(chart: Chart) -> None:
    draw(chart)
    table_of(chart)


def test_many_ranks_stay_low_and_have_every_fourth_label() -> None:
    ranks = tuple(f"rank {rank}" for rank in range(256))
    chart = StackedBars(
        key="s",
        title="",
        about="",
        unit=Unit.NS,
        categories=ranks,
        parts=(Part(name="compute", role="compute", values=(5,) * 256),),
    )
    tree = _tree(chart)
    labels = [found for found in tree.iter("text") if found.get("class") == "label"]
    assert len(labels) == 64


def test_points_of_groups_that_are_no_roles_have_colours_and_names_of_their_own() -> None:
    drawn = draw(
        Scatter(
            key="c",
            title="",
            about="",
            x_name="",
            x_unit=Unit.COUNT,
            y_name="",
            y_unit=Unit.COUNT,
            is_log=False,
            dots=tuple(
                Dot(name=role, role=role, x=at, y=at) for at, role in enumerate(("8", "16"), 1)
            ),
        )
    )
    assert "s-1" in drawn.legend
    assert "s-2" in drawn.legend
    assert "s-2 fill dot" in drawn.picture
