"""Launches that had to wait for a place in the queue of their stream.

The driver queues about 1,021 launches per stream and lets the next one return when the oldest of
them starts. Measured: of 2,549 launch calls above 100 us in five traces of one GPU each, 2,544
stood at exactly 1,021 unstarted tasks of their stream (of their process: at 1,029 to 1,045), and
returned 2 to 5 us, their own cost, after the start of the task 1,021 places before.
"""

from dataclasses import dataclass

import numpy as np

from replay.graph import thresholds
from replay.graph.arrays import Int64
from replay.graph.recorded import Recorded, take


@dataclass(frozen=True, slots=True, kw_only=True)
class FullQueues:
    """Launching calls that need the start of earlier work of their stream, in no order."""

    call: Int64
    """Host row."""
    device_row: Int64
    """Device work whose start frees the place that the call takes."""
    resume_ns: Int64
    """When the call goes on: at that start if it lies inside the call, else its own start."""
    limit: int
    """Places of the queue; 0 where no stream came near."""
    samples: int
    """Long calls that stood at the limit."""
    contradicted: int
    """Calls that returned before the start, and so did not wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entries:
    """What was launched on the streams that came near the limit, by lane and launch.

    A call stands once, at its first row; heads launched before the window come first.
    """

    lane: Int64
    call: Int64
    """Host row; -1 for heads."""
    device_row: Int64
    place: Int64
    """Position within the lane."""
    depth: Int64
    """Entries of the lane launched before and not started when the call began; 0 for heads."""


def find_full_queues(recorded: Recorded, apart: Int64) -> FullQueues:
    """Find the place that each launch takes, on streams whose queue came near its limit.

    Args:
        recorded: columns of all ranks.
        apart: host rows of calls that wait for something else already.
    """
    host, device = recorded.host, recorded.device
    entries = _entries(recorded)
    limit, samples = _limit(recorded, entries)
    takes = (entries.place >= limit) & (entries.call >= 0) & (limit > 0)
    taking = np.flatnonzero(takes & ~np.isin(entries.call, apart))
    call = entries.call[taking]
    device_row = entries.device_row[taking - limit]
    freed_ns = device.ts_ns[device_row]
    held = freed_ns <= host.end_ns[call]
    late = freed_ns > host.end_ns[call] + thresholds.CLOCK_TOLERANCE_NS
    return FullQueues(
        call=call[held],
        device_row=device_row[held],
        resume_ns=np.maximum(host.ts_ns[call], freed_ns)[held],
        limit=limit,
        samples=samples,
        contradicted=int(late.sum()),
    )


def _entries(recorded: Recorded) -> _Entries:
    host, device = recorded.host, recorded.device
    rows = _first_of_each_launch(device.call, device.lane)
    launch_ns = take(host.ts_ns, device.call[rows], np.iinfo(np.int64).min)
    rows = rows[np.lexsort((device.ts_ns[rows], launch_ns, device.lane[rows]))]
    lane, call = device.lane[rows], device.call[rows]
    place = np.arange(len(rows)) - np.searchsorted(lane, lane, side="left")
    depth = np.zeros(len(rows), np.int64)
    near = np.zeros(len(rows), bool)
    for begin, n in zip(*np.unique(lane, return_index=True, return_counts=True)[1:], strict=True):
        if n <= thresholds.QUEUE_NEAR:
            continue
        mine = slice(begin, begin + n)
        start_ns = np.sort(device.ts_ns[rows[mine]])
        called_ns = take(host.ts_ns, call[mine], np.iinfo(np.int64).max)
        started = np.searchsorted(start_ns, called_ns, side="right")
        depth[mine] = np.maximum(place[mine] - started, 0)
        near[mine] = depth[mine].max() >= thresholds.QUEUE_NEAR
    return _Entries(
        lane=lane[near],
        call=call[near],
        device_row=rows[near],
        place=place[near],
        depth=depth[near],
    )


def _first_of_each_launch(call: Int64, lane: Int64) -> Int64:
    """Device rows, but of those that one call put on one lane only the first."""
    order = np.lexsort((np.arange(len(call)), lane, call))
    again = (np.diff(call[order]) == 0) & (np.diff(lane[order]) == 0) & (call[order][1:] >= 0)
    keep = np.ones(len(call), bool)
    keep[order[1:][again]] = False
    return np.flatnonzero(keep)


def _limit(recorded: Recorded, entries: _Entries) -> tuple[int, int]:
    """Places of the queue and the number of long calls that show it.

    The depth at which most of the long calls stood; where they do not agree (they waited for
    something else) or there are none, the documented size; 0 where streams went past that.
    """
    host = recorded.host
    if not len(entries.call):
        return 0, 0
    length_ns = take(host.end_ns, entries.call) - take(host.ts_ns, entries.call)
    long = (length_ns > thresholds.QUEUE_LONG_CALL_NS) & (entries.depth >= thresholds.QUEUE_NEAR)
    depth, count = np.unique(entries.depth[long], return_counts=True)
    if len(depth) and count.max() >= max(thresholds.QUEUE_SAMPLES, count.sum() / 2):
        return int(depth[np.argmax(count)]), int(count.max())
    within = int(entries.depth.max()) <= thresholds.DEFAULT_QUEUE
    return (thresholds.DEFAULT_QUEUE if within else 0), 0
