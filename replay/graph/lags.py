"""Typical lags: medians over the samples that show a lag undisturbed, else documented defaults."""

from dataclasses import dataclass, replace

import numpy as np

from replay.graph import thresholds
from replay.graph.arrays import Bool, Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Typical:
    """A lag and how many samples it rests on; below the minimum it is the default at most."""

    lag_ns: int
    samples: int
    is_default: bool
    is_mean: bool = False
    """Mean of its samples; else their median."""


def typical(samples_ns: Int64, default_ns: int, *, minimum: int = thresholds.SAMPLES) -> Typical:
    """Median of the samples when there are enough of them.

    Fewer give the default, or the median of `FEW_SAMPLES` and more where that is shorter: what
    followed sooner shows that the lag is no longer, what followed later may have another cause.
    """
    middle_ns = int(np.median(samples_ns)) if len(samples_ns) else default_ns
    return _settled(middle_ns, len(samples_ns), default_ns, minimum)


def average(samples_ns: Int64, default_ns: int, *, minimum: int = thresholds.SAMPLES) -> Typical:
    """The same with the mean in place of the median: for lags that add up along a chain."""
    mean_ns = round(samples_ns.mean()) if len(samples_ns) else default_ns
    lag = _settled(mean_ns, len(samples_ns), default_ns, minimum)
    return replace(lag, is_mean=True)


def _settled(middle_ns: int, samples: int, default_ns: int, minimum: int) -> Typical:
    if samples >= minimum:
        return Typical(lag_ns=middle_ns, samples=samples, is_default=False)
    few = samples >= thresholds.FEW_SAMPLES
    lag_ns = min(default_ns, middle_ns) if few else default_ns
    return Typical(lag_ns=lag_ns, samples=samples, is_default=True)


def queued_lags(lag_ns: Int64, queued_ns: Int64, *, lowest_ns: int = 0) -> Int64:
    """Lags of tasks that had been launched long before they started, without unexplained ones."""
    chosen: Bool = queued_ns > thresholds.QUEUED_NS
    chosen &= (lag_ns >= lowest_ns) & (lag_ns <= thresholds.LONGEST_LAG_NS)
    return lag_ns[chosen]
