"""Charts in characters, on few enough cells to check by eye."""

import pytest

from whatif.report.plot import HEIGHT, Series, chart, is_geometric

MS = 1_000_000


def line(name: str, *steps_ms: int, spread_ms: int = 0) -> Series:
    y_ns = tuple(step * MS for step in steps_ms)
    return Series(
        name=name,
        x=tuple(float(place + 1) for place in range(len(steps_ms))),
        y_ns=y_ns,
        low_ns=tuple(step - spread_ms * MS for step in y_ns),
        high_ns=tuple(step + spread_ms * MS for step in y_ns),
    )


def test_a_falling_line_goes_from_the_upper_left_to_the_lower_right() -> None:
    lines = list(chart([line("", 40, 27, 14)], "nvlink GBps", 100 * MS, 40))
    assert lines[0] == "40.00 ms ┤●"
    assert lines[HEIGHT - 1] == "14.00 ms ┤" + " " * 29 + "●"
    marks = [(at, text.index("●")) for at, text in enumerate(lines) if "●" in text]
    assert [row for row, _ in marks] == sorted(row for row, _ in marks)
    assert lines[HEIGHT] == "          1             2              3"
    assert lines[HEIGHT + 1].strip() == "nvlink GBps"


def test_the_range_of_a_single_line_is_drawn_as_bars() -> None:
    lines = [text.ljust(40) for text in chart([line("", 40, 30, 20, spread_ms=10)], "x", 0, 40)]
    bars = [sum(text[column] == "│" for text in lines[:HEIGHT]) for column in (10, 24, 39)]
    assert bars == [6, 7, 7], "rows of 3 ms: 20 ms are seven or eight of them, one is the point"


def test_several_lines_have_letters_and_a_legend_and_no_bars() -> None:
    lines = list(chart([line("one", 9, 6, 3, spread_ms=1), line("two", 8, 5, 3)], "x", 0, 40))
    assert lines[-2:] == ["  a one", "  b two"]
    assert "│" not in "".join(lines)
    assert "+" in lines[HEIGHT - 1], "both end in one cell"


def test_the_unchanged_run_is_a_line_where_it_is_in_sight() -> None:
    assert any("····" in text for text in chart([line("", 40, 20)], "x", 30 * MS, 40))
    assert not any("····" in text for text in chart([line("", 40, 20)], "x", 50 * MS, 40))


def test_a_flat_line_is_drawn_too() -> None:
    assert any("●" in text for text in chart([line("", 5, 5, 5)], "x", 5 * MS, 40))


@pytest.mark.parametrize(
    ("xs", "expected"),
    [([1, 2, 4, 8], True), ([1, 2, 3, 4], False), ([450, 900, 1350], False), ([0, 1, 10], False)],
)
def test_an_axis_of_equal_ratios_is_told(xs: list[float], expected: bool) -> None:  # noqa: FBT001
    assert is_geometric(xs) is expected
