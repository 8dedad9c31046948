"""Numbers as they are written, by unit."""

import pytest

from whatif.report.blocks import Cell, Unit
from whatif.report.charts.amounts import axis_unit, printable, told, told_change, told_range


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, Unit.NS, "-"),
        (True, Unit.TEXT, "yes"),
        (0, Unit.NS, "0 ms"),
        (99_999, Unit.NS, "100.00 us"),
        (100_000, Unit.NS, "0.10 ms"),
        (-99_000, Unit.NS, "-99.00 us"),
        (1_234_567_890, Unit.NS, "1,234.57 ms"),
        (0.615, Unit.FRAC, "61.5 %"),
        (0.0042, Unit.FRAC, "0.42 %"),
        (0, Unit.FRAC, "0.0 %"),
        (1.084, Unit.FACTOR, "1.08x"),
        (0, Unit.BYTES, "0 B"),
        (999, Unit.BYTES, "999 B"),
        (66_000_000_000, Unit.BYTES, "66 GB"),
        (4.515e11, Unit.BYTES_PER_S, "452 GB/s"),
        (9.89e14, Unit.FLOPS_PER_S, "989 TFLOP/s"),
        (12.5, Unit.FLOPS_PER_BYTE, "12.5 FLOP/B"),
        (1_200, Unit.COUNT, "1,200"),
        (2.0, Unit.COUNT, "2"),
        (2.25, Unit.COUNT, "2.2"),
        ("gemm", Unit.CODE, "gemm"),
        ("8 of 8", Unit.COUNT, "8 of 8"),
    ],
)
def test_a_value_is_written_by_its_unit(value: Cell, unit: Unit, text: str) -> None:
    assert told(value, unit) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (371_200_000, 379_100_000, "371.20-379.10 ms"),
        (50_000, 379_100_000, "50.00 us - 379.10 ms"),
        (5_000_000, 5_000_001, "5.00 ms"),
    ],
)
def test_a_range_has_its_unit_once(low: int, high: int, text: str) -> None:
    assert told_range(low, high, Unit.NS) == text


def test_a_change_has_its_sign() -> None:
    assert [told_change(ns, Unit.NS) for ns in (9_800_000, -1_800_000, 0)] == [
        "+9.80 ms",
        "-1.80 ms",
        "0 ms",
    ]


@pytest.mark.parametrize(
    ("largest", "unit", "divisor", "name"),
    [
        (50_000_000, Unit.NS, 1e6, "ms"),
        (50_000, Unit.NS, 1e3, "us"),
        (66e9, Unit.BYTES, 1e9, "GB"),
        (1, Unit.FRAC, 0.01, "%"),
        (12, Unit.COUNT, 1, ""),
    ],
)
def test_an_axis_has_one_unit(largest: float, unit: Unit, divisor: float, name: str) -> None:
    found = axis_unit(largest, unit)
    assert (found.divisor, found.name) == (divisor, name)


def test_what_cannot_be_shown_is_marked() -> None:
    assert printable("a\x00b\u202ec\n\td") == "a\ufffdb\ufffdc\n\td"
