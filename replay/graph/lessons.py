"""What the typical lags are learned from: the whole recording, or its first part only.

Lags learned on the first steps and judged on the others show how far a strict replay rests on
having seen what it replays.
"""

from dataclasses import dataclass

import numpy as np

from replay.graph.arrays import Bool, Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Lessons:
    """What began before a moment of its file teaches the lags."""

    end_ns: Int64
    """Shape (files,)."""

    def teaches(self, trace: Int64, ts_ns: Int64) -> Bool:
        """Per row, by its file and its start: whether it may be a sample."""
        taught: Bool = ts_ns < self.end_ns[trace]
        return taught


def whole_recording(n_files: int) -> Lessons:
    """Every row teaches."""
    return Lessons(end_ns=np.full(n_files, np.iinfo(np.int64).max))
