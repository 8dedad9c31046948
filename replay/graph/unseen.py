"""Work that was launched before the recording began and that no row stands for."""

import numpy as np

from replay.graph import thresholds
from replay.graph.arrays import Int64
from replay.graph.layout import Parts
from replay.graph.streams import UNLAUNCHED_NS


def held_by_unseen_work(parts: Parts, residual_ns: Int64) -> Int64:
    """First tasks of streams that started late although the device ran nothing that was recorded.

    Profilers that begin in the middle of a run leave out the kernels that run at that moment and
    those already queued. What is launched next starts when they are done, so such a task is held
    until its recorded start in every replay, as one launched before the window is (DESIGN
    section 2).

    Args:
        parts: all columns.
        residual_ns: per task, what all rules leave unexplained.

    Returns:
        Task ids; one per stream at most.
    """
    streams, layout = parts.streams, parts.layout
    first = streams.first_row[:-1]
    task = layout.first_of_device[first]
    late = streams.launch_ns[first] != UNLAUNCHED_NS
    late &= residual_ns[task] > thresholds.UNEXPLAINED_NS
    held = [row for row in first[late].tolist() if _device_was_idle(parts, row)]
    return layout.first_of_device[np.array(held, np.int64)]


def _device_was_idle(parts: Parts, row: int) -> bool:
    """No recorded task of the device ran between the launch of `row` and its start."""
    device = parts.recorded.device
    same = (device.trace == device.trace[row]) & (device.device == device.device[row])
    ran = (device.ts_ns < device.ts_ns[row]) & (device.end_ns > parts.streams.launch_ns[row])
    return not (same & ran).any()
