"""Typical lags: medians over the samples that show a lag undisturbed, else documented defaults."""

from dataclasses import dataclass

import numpy as np

from replay.graph import thresholds
from replay.graph.arrays import Bool, Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Typical:
    """A lag and how many samples it rests on; below the minimum the default stands."""

    lag_ns: int
    samples: int
    is_default: bool


def typical(samples_ns: Int64, default_ns: int, *, minimum: int = thresholds.SAMPLES) -> Typical:
    """Median of the samples when there are enough of them."""
    if len(samples_ns) < minimum:
        return Typical(lag_ns=default_ns, samples=len(samples_ns), is_default=True)
    return Typical(lag_ns=int(np.median(samples_ns)), samples=len(samples_ns), is_default=False)


def average(samples_ns: Int64, default_ns: int) -> Typical:
    """Mean of the samples when there are enough of them: for lags that add up along a chain."""
    if len(samples_ns) < thresholds.SAMPLES:
        return Typical(lag_ns=default_ns, samples=len(samples_ns), is_default=True)
    return Typical(lag_ns=round(samples_ns.mean()), samples=len(samples_ns), is_default=False)


def queued_lags(lag_ns: Int64, queued_ns: Int64, *, lowest_ns: int = 0) -> Int64:
    """Lags of tasks that had been launched long before they started, without unexplained ones."""
    chosen: Bool = queued_ns > thresholds.QUEUED_NS
    chosen &= (lag_ns >= lowest_ns) & (lag_ns <= thresholds.LONGEST_LAG_NS)
    return lag_ns[chosen]
