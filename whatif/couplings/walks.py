"""Compiled walks of kernels along what their device does beside them."""

import numpy as np

from ingest.compiled import compiled

FULL_SPEED = 1 << 20
"""Work that a kernel alone does in a nanosecond; beside communication it does less."""


@compiled
def work_done(first, behind, begin_ns, state, speed, start_ns, dur_ns):
    """Work of each kernel: the sum over its time of the speed in what its device does then.

    Args:
        first: per kernel, the first segment of its device.
        behind: per kernel, one past the last segment of its device.
        begin_ns: of each segment, ascending within a device; a segment lasts until the next one.
        state: of each segment.
        speed: per kernel and state.
        start_ns: of each kernel.
        dur_ns: of each kernel.
    """
    work = np.zeros(len(start_ns), np.int64)
    for kernel in range(len(start_ns)):
        moment, end = start_ns[kernel], start_ns[kernel] + dur_ns[kernel]
        segment = np.searchsorted(begin_ns[first[kernel] : behind[kernel]], moment, side="right")
        segment += first[kernel] - 1
        while moment < end:
            until = begin_ns[segment + 1] if segment + 1 < behind[kernel] else end
            until = min(until, end)
            work[kernel] += (until - moment) * speed[kernel, state[segment]]
            moment = until
            segment += 1
    return work


@compiled
def time_taken(first, behind, begin_ns, state, speed, start_ns, work):
    """How long each kernel takes for its work, ns; the other way round of `work_done`."""
    dur_ns = np.zeros(len(start_ns), np.int64)
    for kernel in range(len(start_ns)):
        moment, left = start_ns[kernel], work[kernel]
        segment = np.searchsorted(begin_ns[first[kernel] : behind[kernel]], moment, side="right")
        segment += first[kernel] - 1
        while left > 0:
            rate = speed[kernel, state[segment]]
            needed = (left + rate - 1) // rate
            if segment + 1 < behind[kernel] and begin_ns[segment + 1] - moment < needed:
                left -= (begin_ns[segment + 1] - moment) * rate
                moment = begin_ns[segment + 1]
                segment += 1
            else:
                moment += needed
                left = 0
        dur_ns[kernel] = moment - start_ns[kernel]
    return dur_ns
