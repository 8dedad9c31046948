"""Values to places along an axis, and round values to write beside it."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, log10

_LOG_STEPS = (1, 2, 5)
SHORT = 2
"""Decades on a log axis below which values between them are written too."""
_ROUND_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
LEAST_SPREAD = 0.05
"""Of the largest value: nearer together, differences are not blown up to the whole height."""
_SLACK = 1e-9
"""Of a step: a tick that rounding puts just outside still counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From `low` to `high`; shares of the axis are 0 to 1."""

    low: float
    high: float
    is_log: bool = False

    def __post_init__(self) -> None:
        """Refuse an axis without length, and logarithms of nothing."""
        assert self.high > self.low, "an axis has a length"
        assert self.low > 0 or not self.is_log, "a log axis starts above zero"

    def share(self, value: float) -> float:
        """Where a value lies; values outside lie at the nearer end."""
        inside = min(max(value, self.low), self.high)
        if self.is_log:
            return log10(inside / self.low) / log10(self.high / self.low)
        return (inside - self.low) / (self.high - self.low)

    def ticks(self, most: int, *, divisor: float = 1.0) -> tuple[float, ...]:
        """Round values inside, at most about `most`; round after division by `divisor`."""
        return self._decades(most) if self.is_log else self._steps(most, divisor)

    def _steps(self, most: int, divisor: float) -> tuple[float, ...]:
        step = _round_step((self.high - self.low) / divisor / most) * divisor
        first, last = ceil(self.low / step - _SLACK), floor(self.high / step + _SLACK)
        return tuple(step * at for at in range(first, last + 1))

    def _decades(self, most: int) -> tuple[float, ...]:
        first, last = ceil(log10(self.low) - _SLACK), floor(log10(self.high) + _SLACK)
        if last - first < SHORT:
            return tuple(self._between_decades(first - 1, last))
        every = max(1, ceil((last - first + 1) / most))
        return tuple(10.0**power for power in range(first, last + 1, every))

    def _between_decades(self, first: int, last: int) -> Iterator[float]:
        for power in range(first, last + 1):
            for step in _LOG_STEPS:
                value = float(f"{step}e{power}")
                if self.low * (1 - _SLACK) <= value <= self.high * (1 + _SLACK):
                    yield value


def _round_step(least: float) -> float:
    power = 10.0 ** floor(log10(least))
    return next(step * power for step in _ROUND_STEPS if step * power >= least * (1 - _SLACK))


def from_zero(largest: float) -> Scale:
    """Of bars: from zero to the largest value, or to 1 where there is none."""
    return Scale(low=0.0, high=float(largest) if largest > 0 else 1.0)


def around(values: tuple[float, ...], *, is_log: bool = False) -> Scale:
    """Of points: all values with some air around them.

    Starts at zero where the values are not far from it, compared with their spread.
    """
    low, high = min(values), max(values)
    if is_log:
        return Scale(low=low / 1.5, high=high * 1.5, is_log=True)
    spread = max(high - low, LEAST_SPREAD * max(abs(low), abs(high))) or 1.0
    starts_at_zero = 0 <= low <= spread
    middle = (low + high) / 2
    return Scale(low=0.0 if starts_at_zero else middle - 0.6 * spread, high=middle + 0.6 * spread)
