"""Where moments of a thread lie when its tasks have moved."""

from dataclasses import dataclass

import numpy as np

from replay.graph.arrays import Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Recorded moments and the same moments on a schedule: both ascend, nothing changes its order.

    Between two of them time is stretched evenly; outside of all it is shifted.
    """

    at_ns: Int64
    to_ns: Int64

    def starts(self, moment_ns: Int64) -> Int64:
        """Where what starts at these moments starts: after all waiting that begins there."""
        place = np.searchsorted(self.at_ns, moment_ns, side="right") - 1
        return self._between(moment_ns, place, place + 1)

    def ends(self, moment_ns: Int64) -> Int64:
        """Where what ends at these moments ends: before any waiting that begins there."""
        place = np.searchsorted(self.at_ns, moment_ns, side="left")
        return self._between(moment_ns, place - 1, place)

    def _between(self, moment_ns: Int64, before: Int64, after: Int64) -> Int64:
        last = len(self.at_ns) - 1
        low, high = np.maximum(before, 0), np.minimum(after, last)
        at_ns, to_ns = self.at_ns[low], self.to_ns[low]
        span_ns = np.maximum(self.at_ns[high] - at_ns, 1)
        stretch = (self.to_ns[high] - to_ns) / span_ns
        inside = to_ns + np.floor((moment_ns - at_ns) * stretch).astype(np.int64)
        inside = np.clip(inside, to_ns, self.to_ns[high])
        early, late = before < 0, after > last
        outside = moment_ns - np.where(late, self.at_ns[last], self.at_ns[0])
        outside += np.where(late, self.to_ns[last], self.to_ns[0])
        exact = np.where(moment_ns == self.at_ns[high], self.to_ns[high], inside)
        exact = np.where(moment_ns == at_ns, to_ns, exact)
        return np.where((early & (moment_ns < self.at_ns[0])) | late, outside, exact)


def moved(ts_ns: Int64, dur_ns: Int64, start_ns: Int64, end_ns: Int64) -> Moved:
    """From the tasks of one thread in their order.

    Args:
        ts_ns: recorded starts.
        dur_ns: recorded durations.
        start_ns: starts on the schedule.
        end_ns: ends on the schedule.
    """
    at_ns = np.stack([ts_ns, ts_ns + dur_ns], axis=1).reshape(-1)
    to_ns = np.stack([start_ns, end_ns], axis=1).reshape(-1)
    return Moved(at_ns=np.maximum.accumulate(at_ns), to_ns=np.maximum.accumulate(to_ns))
