"""Bring device times to the host clock of their file, and keep work from preceding its call."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ingest.issues import IssueLog
from ingest.normalise.clock import DeviceTasks, device_clock_offset, kernels_after_launch
from ingest.normalise.correlate import Links
from ingest.normalise.gather import Gathered, OfRows
from ingest.vocab import RuntimeKind

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTimes:
    """Starts on the host clock of each file, ns, and what was changed for it."""

    ts: Int64
    """All slices; only device rows may differ from what was gathered."""
    moved: NDArray[np.bool_]
    """Rows that were moved to or with the start of a call."""
    offset_ns: tuple[int, ...]
    """Per file, added to all its device rows."""
    skew_ns: tuple[int, ...]
    """Per file, how much before its call the earliest device row started after that; 0: none."""


def to_host_clock(
    gathered: Gathered, links: Links, device: OfRows, logs: Sequence[IssueLog]
) -> DeviceTimes:
    """Shift the device rows of each file.

    Args:
        gathered: the rows.
        links: their launching calls.
        device: the device of each device row.
        logs: per file, where repairs are counted.
    """
    ts = gathered.ts
    moved = np.zeros(len(ts), bool)
    offsets, skews = [], []
    for trace_id, log in enumerate(logs):
        rows = np.flatnonzero(gathered.on_device & (gathered.trace == trace_id))
        clock = device_clock_offset(_tasks(gathered, links, device, rows, ts))
        offsets.append(clock.offset_ns)
        if clock.offset_ns:
            ts = ts.copy() if ts is gathered.ts else ts
            ts[rows] += clock.offset_ns
        log.count("device_clock_shift", abs(clock.offset_ns))
        repair = kernels_after_launch(_tasks(gathered, links, device, rows, ts))
        if repair.shift_ns.any():
            ts = ts.copy() if ts is gathered.ts else ts
            ts[rows] += repair.shift_ns
        skews.append(repair.largest_ns)
        moved[rows[repair.shift_ns > 0]] = True
        log.count("kernel_before_launch", repair.early)
        log.count("kernel_moved_along", repair.dragged)
    return DeviceTimes(ts=ts, moved=moved, offset_ns=tuple(offsets), skew_ns=tuple(skews))


def _tasks(gathered: Gathered, links: Links, device: OfRows, rows: Int64, ts: Int64) -> DeviceTasks:
    call = links.call[rows]
    known = call >= 0
    call_start = np.where(known, gathered.ts[call], 0)
    lowest = min(int(call_start.min(initial=0)), 0)
    kind = links.runtime_kind[call]
    plain = known & (kind == RuntimeKind.LAUNCH) & (links.n_device[call] == 1)
    return DeviceTasks(
        start_ns=ts[rows] - lowest,
        end_ns=ts[rows] + gathered.dur[rows] - lowest,
        device=device.of(rows).astype(np.int64, copy=False),
        call_start_ns=np.where(known, call_start - lowest, -1),
        call_end_ns=np.where(known, call_start + gathered.dur[call] - lowest, -1),
        plain_launch=plain,
    )
