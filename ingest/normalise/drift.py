"""A robust line through differences of clocks over time."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

NORMAL_MAD = 1.4826
"""Standard deviation of a normal distribution in median absolute deviations."""
_MOST_POINTS = 400
_FLOOR_NS = 1.0
"""No profiler writes times finer than this."""


class Line(NamedTuple):
    """y = at_zero + slope * x."""

    at_zero: float
    slope: float
    slope_error: float
    """Standard deviation of the slope."""


def robust_line(x: Float64, y: Float64) -> Line:
    """Theil-Sen: the median slope over all pairs of points, so that outliers do not matter.

    Args:
        x: at least two different values.
        y: as many values, in the unit of nanoseconds.
    """
    picked = np.linspace(0, len(x) - 1, min(len(x), _MOST_POINTS)).astype(np.int64)
    some_x, some_y = x[picked], y[picked]
    a, b = np.triu_indices(len(picked), 1)
    apart = some_x[b] - some_x[a]
    slopes = (some_y[b] - some_y[a])[apart != 0] / apart[apart != 0]
    slope = float(np.median(slopes))
    at_zero = float(np.median(y - slope * x))
    rest = np.abs(some_y - slope * some_x - at_zero)
    noise = max(NORMAL_MAD * float(np.median(rest)), _FLOOR_NS)
    error = noise / (float(np.std(some_x)) * np.sqrt(len(picked)))
    return Line(at_zero, slope, error)
