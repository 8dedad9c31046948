"""Nanoseconds of the store -> the microseconds that HTA computes with."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

GRID = 1 << 13
"""Exact times are multiples of 1/8192 us, at most 0.07 ns off. Floating point adds such numbers
without error, so rows that touch in the file touch here; decimal microseconds would drift apart."""
_LATEST_NS = 1 << 61


@dataclass(frozen=True, slots=True, kw_only=True)
class FileClock:
    """What was added to the recorded times of a file."""

    trace_id: int
    rank: int
    base_ns: int
    """baseTimeNanoseconds, 0 where the file has none."""
    origin_ns: int
    clock_offset_ns: int
    device_offset_ns: int

    @classmethod
    def of_row(cls, row: tuple[Any, ...]) -> "FileClock":
        """From (trace_id, rank, base, origin, clock offset, device offset)."""
        trace_id, rank, base, *rest = row
        usable = base is not None and abs(base) < _LATEST_NS
        origin, clock, device = (value or 0 for value in rest)
        return cls(
            trace_id=trace_id,
            rank=rank,
            base_ns=base if usable else 0,
            origin_ns=origin,
            clock_offset_ns=clock,
            device_offset_ns=device,
        )

    def recorded_ns(self, ts: Int64, on_device: Bool) -> Int64:
        """Starts as the file has them."""
        shift = self.origin_ns - self.base_ns + self.clock_offset_ns
        recorded: Int64 = ts + shift - np.where(on_device, self.device_offset_ns, 0)
        return recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Starts and durations, us."""

    ts: NDArray[Any]
    dur: NDArray[np.float64]


def exact_times(_clock: FileClock, ts: Int64, dur: Int64, _on_device: Bool) -> Times:
    """On the common clock, us after the run's origin, on a grid that floats add exactly."""
    start, end = _on_grid(ts), _on_grid(ts + dur)
    return Times(ts=start, dur=end - start)


def _on_grid(ns: Int64) -> NDArray[np.float64]:
    whole, rest = np.divmod(ns, 1000)
    return whole + np.rint(rest * (GRID / 1000)) / GRID


def rounded_times(clock: FileClock, ts: Int64, dur: Int64, on_device: Bool) -> Times:
    """As HTA's parser makes them: starts up and ends down to whole us, in its floats.

    A duration below one microsecond can so become -1. Files of whole starts are left alone.
    """
    recorded = clock.recorded_ns(ts, on_device)
    dur_us = _correctly_rounded(dur)
    if not (recorded % 1000).any():
        return Times(ts=recorded // 1000, dur=dur_us)
    ts_us = _correctly_rounded(recorded)
    start = np.ceil(ts_us).astype(np.int64)
    return Times(ts=start, dur=np.floor(ts_us + dur_us) - start)


def _correctly_rounded(ns: Int64) -> NDArray[np.float64]:
    """The float nearest to the decimal number of us, which is what a JSON parser reads."""
    return np.array([value / 1000 for value in ns.tolist()], np.float64)
