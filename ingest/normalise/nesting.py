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
    """Columns over all rows; those that are not nested stand alone."""

    parent: Int32
    """Row number; -1 at the top."""
    depth: NDArray[np.int16]
    self_dur: Int64
    """Duration without that of the direct children, never below 0."""
    crossing: Int64
    """Rows that outlive the row around them by more than `BLEED_NS`: taken for its siblings."""


def nest(order: Int32, thread: Int32, ts: Int64, dur: Int64) -> Nesting:
    """Nest some rows.

    Args:
        order: the rows to nest, by thread, start, longest first.
        thread: per row.
        ts: start of each row, ns.
        dur: duration of each row, ns.
    """
    parent, depth = np.full(len(ts), -1, np.int32), np.zeros(len(ts), np.int16)
    self_dur = dur.copy()
    crosses = walk(order, thread, ts, dur, BLEED_NS, parent, depth, self_dur)
    return Nesting(parent, depth, self_dur, order[crosses].astype(np.int64))
