"""Noise against textbook values, limits as typed."""

import math

import pytest

from ingest.errors import UsageError
from whatif.compare.gate import judge, parse_limit
from whatif.compare.noise import mean_noise_ns, noise_ns, quantile


def test_noise_is_the_interval_of_welch() -> None:
    """Standard errors 1 and 1 with 2 degrees each: t(4) = 2.78 times the root of 2."""
    spread = math.sqrt(3)
    sample = (10 - spread, 10.0, 10 + spread)
    assert noise_ns(sample, sample) == pytest.approx(2.78 * math.sqrt(2))
    assert mean_noise_ns(sample) == pytest.approx(4.30)


def test_a_single_step_takes_the_spread_of_the_other_run() -> None:
    sample = (8.0, 10.0, 12.0)
    assert noise_ns((9.0,), sample) == pytest.approx(4.30 * math.sqrt(4 + 4 / 3))
    assert noise_ns((9.0,), sample) == noise_ns(sample, (9.0,))
    assert noise_ns((9.0,), (10.0,)) is None
    assert mean_noise_ns((9.0,)) is None


def test_steps_that_do_not_vary_have_no_noise() -> None:
    assert noise_ns((5.0, 5.0), (6.0, 6.0)) == 0


def test_quantiles_fall_to_that_of_the_normal_distribution() -> None:
    values = [quantile(freedom) for freedom in range(1, 40)]
    assert values == sorted(values, reverse=True)
    assert 1.96 < values[-1] < 2.13


@pytest.mark.parametrize(
    ("text", "limit_ns"),
    [("5%", 50_000), ("0.5 %", 5_000), ("12ms", 12_000_000), ("80us", 80_000), ("0", 0)],
)
def test_limits_are_shares_or_times(text: str, limit_ns: int) -> None:
    assert parse_limit(text, "--max-regression").of(1_000_000) == limit_ns


@pytest.mark.parametrize("text", ["5", "five", "-3%", "", "1e9%", "99999%", "%"])
def test_other_limits_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="neither a share nor a time") as caught:
        parse_limit(text, "--max-regression")
    assert "--max-regression 5%" in caught.value.hint


def test_a_limit_is_met_at_its_value() -> None:
    limit = parse_limit("1ms", "--max-regression")
    assert judge(limit, 1_000_000, 10_000_000, None).is_passed
    assert not judge(limit, 1_000_001, 10_000_000, None).is_passed
    assert judge(limit, 1_000_001, 10_000_000, 1_000_001).is_passed
