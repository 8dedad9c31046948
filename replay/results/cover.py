"""Unions of intervals: how much of any stretch of time they cover."""

from dataclasses import dataclass

import numpy as np

from replay.graph.arrays import Int64


@dataclass(frozen=True, slots=True)
class Cover:
    """Disjoint intervals in time order, ns, and the length of all before each."""

    lo_ns: Int64
    hi_ns: Int64
    before_ns: Int64

    def within(self, lo_ns: Int64, hi_ns: Int64) -> Int64:
        """Covered length of each stretch `[lo, hi]`, ns; 0 where a stretch is empty."""
        inside_ns: Int64 = np.maximum(self._until(hi_ns) - self._until(lo_ns), 0)
        return inside_ns

    def _until(self, moment_ns: Int64) -> Int64:
        """Covered length before each moment."""
        if not len(self.lo_ns):
            return np.zeros(len(moment_ns), np.int64)
        place = np.searchsorted(self.lo_ns, moment_ns, side="right") - 1
        inside_ns = np.minimum(moment_ns, self.hi_ns[place]) - self.lo_ns[place]
        covered: Int64 = np.where(place >= 0, self.before_ns[place] + inside_ns, 0)
        return covered


def cover(lo_ns: Int64, hi_ns: Int64) -> Cover:
    """Union of intervals, which may overlap and stand in any order; empty ones count nothing."""
    order = np.argsort(lo_ns, kind="stable")
    lo_ns, hi_ns = disjoint(lo_ns[order], hi_ns[order])
    longer = hi_ns > lo_ns
    lo_ns, hi_ns = lo_ns[longer], hi_ns[longer]
    length_ns = hi_ns - lo_ns
    return Cover(lo_ns, hi_ns, np.cumsum(length_ns) - length_ns)


def disjoint(lo_ns: Int64, hi_ns: Int64) -> tuple[Int64, Int64]:
    """What each interval adds to those before it; intervals in order of their start.

    One that adds nothing comes back empty (`lo == hi`).
    """
    if not len(lo_ns):
        return lo_ns, hi_ns
    reach_ns = np.maximum.accumulate(hi_ns)
    first_ns = lo_ns.copy()
    first_ns[1:] = np.maximum(lo_ns[1:], reach_ns[:-1])
    return first_ns, np.maximum(hi_ns, first_ns)
