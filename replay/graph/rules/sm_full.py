"""A kernel starts when another stream's kernel, which filled the device, leaves it room."""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import EdgeKind, Evidence, KernelClass
from replay.graph import thresholds
from replay.graph.arrays import Bool, Int64
from replay.graph.lags import Typical
from replay.graph.layout import Parts
from replay.graph.recorded import DeviceRows
from replay.graph.rules.base import Found, edge_list

MOVES_DATA = (KernelClass.MEMCPY, KernelClass.COLLECTIVE)
"""These do not fill a device: copy engines, and kernels of a few blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Covers:
    """A late kernel, and the kernel of another stream that ran while it was kept waiting."""

    row: Int64
    cover: Int64
    tail_ns: Int64
    """From the start of `row` to the end of `cover`: its last blocks left room for both."""
    residual_ns: Int64


def sm_full(parts: Parts, residual_ns: Int64) -> Found:
    """Edges from the end of the covering kernel, with the negative lag of its tail.

    Only where the residual is above `SM_FULL_RESIDUAL_NS`, one kernel covers all but so much of it
    and ended at most `SM_FULL_TAIL_NS` after the start. Such an edge is chosen by looking at the
    start that it explains: it counts as inferred, and answers are bounded without it too.

    Args:
        parts: all columns.
        residual_ns: per task, what all other rules leave unexplained.
    """
    found = _covers(parts, residual_ns[parts.layout.first_of_device])
    device = parts.recorded.device
    taught = parts.lessons.teaches(device.trace[found.row], device.ts_ns[found.row])
    typical_ns = _typical_tails(device, found, taught)
    better = np.abs(found.tail_ns - typical_ns) < found.residual_ns
    edges = edge_list(
        parts.layout.last_of_device[found.cover[better]],
        parts.layout.first_of_device[found.row[better]],
        lag_ns=-typical_ns[better],
        kind=EdgeKind.SM_FULL,
        evidence=Evidence.INFERRED,
    )
    lags = {}
    if better.any():
        lags["sm_full"] = Typical(
            lag_ns=-int(np.median(typical_ns[better])),
            samples=int(better.sum()),
            is_default=False,
        )
    return Found(edges=edges, lags=lags)


def _covers(parts: Parts, residual_ns: Int64) -> _Covers:
    device = parts.recorded.device
    late: Bool = (residual_ns > thresholds.SM_FULL_RESIDUAL_NS) & (device.call >= 0)
    late &= device.kernel_class != KernelClass.MEMCPY
    rows = np.flatnonzero(late)
    fills = np.flatnonzero(~np.isin(device.kernel_class, MOVES_DATA))
    place = device.trace * 1024 + device.device
    fills = fills[np.lexsort((device.end_ns[fills], place[fills]))]
    cover = np.full(len(rows), -1, np.int64)
    for index, row in enumerate(rows.tolist()):
        first, last = np.searchsorted(place[fills], [place[row], place[row] + 1])
        cover[index] = _cover_of(device, row, int(residual_ns[row]), fills[first:last])
    found = cover >= 0
    rows, cover = rows[found], cover[found]
    return _Covers(
        row=rows,
        cover=cover,
        tail_ns=device.end_ns[cover] - device.ts_ns[rows],
        residual_ns=residual_ns[rows],
    )


def _cover_of(device: DeviceRows, row: int, residual_ns: int, fills: Int64) -> int:
    """The first of `fills`, sorted by end, that ran over the residual of `row`; -1 for none."""
    start_ns = int(device.ts_ns[row])
    low_ns = start_ns - thresholds.CLOCK_TOLERANCE_NS
    high_ns = start_ns + thresholds.SM_FULL_TAIL_NS
    low, high = np.searchsorted(device.end_ns[fills], [low_ns, high_ns + 1])
    near = fills[low:high]
    began_ns = start_ns - residual_ns + thresholds.SM_FULL_RESIDUAL_NS
    covers = near[(device.ts_ns[near] <= began_ns) & (device.lane[near] != device.lane[row])]
    return int(covers[0]) if len(covers) else -1


def _typical_tails(device: DeviceRows, found: _Covers, taught: Bool) -> Int64:
    """Median tail of the same two kernels, else of the same covering kernel, else of all.

    Only those that are `taught` count as samples.

    A tail is the last wave of blocks of the covering kernel: 5 us for one kernel and 430 us for
    another, but the same within a tenth for one pair of kernels over ranks, steps and runs.
    """
    cover_name, name = device.name[found.cover], device.name[found.row]
    pair = cover_name * (int(device.name.max(initial=0)) + 1) + name
    typical_ns = np.full(len(found.row), thresholds.DEFAULT_SM_TAIL_NS, np.int64)
    for group in (np.zeros_like(pair), cover_name, pair):
        _, number = np.unique(group, return_inverse=True)
        count = np.bincount(number[taught])
        for index in np.flatnonzero(count >= thresholds.SM_TAIL_SAMPLES):
            mine = number == index
            typical_ns[mine] = int(np.median(found.tail_ns[mine & taught]))
    return typical_ns
