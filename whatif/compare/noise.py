"""How much two means may differ by chance, by the spread of the steps behind them."""

from collections.abc import Sequence
from math import sqrt

_T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13)
"""Two-sided 95 % quantile of Student's t for 1, 2, ... degrees of freedom; any table has them."""
_T95_OF_MANY = 1.96 + 2.5 / 16
"""Close to the quantile from 16 degrees on, and above it from there."""


def noise_ns(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Half the 95 % interval of the difference of the means of two samples of steps (Welch).

    Where one sample is a single step, its spread is taken to be that of the other; None where both
    are. Steps of one run are taken as independent: slow drifts between runs are not in it.
    """
    spread_a, spread_b = _variance(a), _variance(b)
    if spread_a is None and spread_b is None:
        return None
    if spread_a is None or spread_b is None:
        spread = spread_b if spread_a is None else spread_a
        assert spread is not None, "one of the two is known"
        freedom = max(len(a), len(b)) - 1.0
        return quantile(freedom) * sqrt(spread / len(a) + spread / len(b))
    of_a, of_b = spread_a / len(a), spread_b / len(b)
    both = of_a + of_b
    if not both:
        return 0.0
    freedom = both**2 / (of_a**2 / (len(a) - 1) + of_b**2 / (len(b) - 1))
    return quantile(freedom) * sqrt(both)


def mean_noise_ns(values: Sequence[float]) -> float | None:
    """Half the 95 % interval of the mean of a sample of steps; None of a single one."""
    spread = _variance(values)
    if spread is None:
        return None
    return quantile(len(values) - 1.0) * sqrt(spread / len(values))


def quantile(freedom: float) -> float:
    """Of Student's t, 95 % two-sided; degrees of freedom are rounded down."""
    whole = max(int(freedom + 1e-9), 1)
    return _T95[whole - 1] if whole <= len(_T95) else _T95_OF_MANY


def _variance(values: Sequence[float]) -> float | None:
    if len(values) < 2:  # noqa: PLR2004  (one value has no spread)
        return None
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)
