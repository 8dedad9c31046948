"""Which host row holds which: parent, depth and own time of the rows of each thread."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.normalise.scans import walk

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]

BLEED_NS = 1_000
"""A row that outlives the row around it by no more than this still belongs to it."""


class Nesting(NamedTuple):
    """Columns with one row per host row."""

    parent: Int32
    """Row number; -1 at the top."""
    depth: NDArray[np.int16]
    self_dur: Int64
    """Duration without that of the direct children, never below 0."""
    crosses: NDArray[np.bool_]
    """Outlives the row around it by more than `BLEED_NS`: taken for its sibling."""


def nest(thread: Int32, ts: Int64, dur: Int64) -> Nesting:
    """Nest rows sorted by (thread, start, longest first)."""
    parent, depth, child_dur, crosses = walk(thread, ts, ts + dur, BLEED_NS)
    return Nesting(parent, depth, np.maximum(dur - child_dur, 0), crosses)
