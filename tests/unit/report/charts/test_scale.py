"""Places along an axis and the round values beside it."""

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whatif.report.charts.scale import Scale, around, from_zero

FINITE = st.floats(min_value=-1e15, max_value=1e15, allow_nan=False)


def test_places_are_shares_of_the_axis() -> None:
    scale = Scale(low=10, high=20)
    assert [scale.share(value) for value in (5, 10, 15, 20, 99)] == [0, 0, 0.5, 1, 1]


def test_a_log_axis_gives_each_decade_the_same() -> None:
    scale = Scale(low=1, high=1000, is_log=True)
    assert [round(scale.share(value), 9) for value in (1, 10, 100, 1000)] == [
        0,
        round(1 / 3, 9),
        round(2 / 3, 9),
        1,
    ]
    assert scale.ticks(5) == (1, 10, 100, 1000)


def test_a_short_log_axis_has_values_between_decades() -> None:
    assert Scale(low=0.5, high=8, is_log=True).ticks(4) == (0.5, 1, 2, 5)


def test_values_are_round_after_division_by_the_unit() -> None:
    assert Scale(low=0, high=50e6).ticks(4, divisor=1e6) == (0, 20e6, 40e6)
    assert Scale(low=405e6, high=424e6).ticks(4, divisor=1e6) == (405e6, 410e6, 415e6, 420e6)


@given(FINITE, FINITE)
def test_ticks_lie_on_the_axis_and_are_few(a: float, b: float) -> None:
    if isclose(a, b, rel_tol=1e-6, abs_tol=1e-6):
        return
    scale = Scale(low=min(a, b), high=max(a, b))
    ticks = scale.ticks(4)
    slack = 1e-6 * (scale.high - scale.low)
    assert all(scale.low - slack <= tick <= scale.high + slack for tick in ticks)
    assert 1 <= len(ticks) <= 6


def test_bars_begin_at_zero_and_points_where_they_are() -> None:
    assert from_zero(0).high == 1
    assert around((70.0, 74.0)).low > 60
    assert around((1.0, 74.0)).low == 0
    assert around((5.0,)).high > 5


@pytest.mark.parametrize("values", [(3.0, 3.0), (0.0, 0.0), (-2.0, -2.0)])
def test_equal_values_still_have_an_axis(values: tuple[float, float]) -> None:
    scale = around(values)
    assert scale.low <= values[0] <= scale.high
