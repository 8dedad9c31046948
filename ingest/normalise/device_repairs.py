"""Device rows, and times that no device can have: without a start, too long, padded."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ingest.issues import IssueLog
from ingest.normalise.correlate import Links
from ingest.normalise.gather import Gathered

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

OVERRUN_NS = 1_000_000
"""A row may outlive the start of the next one of its stream by this much: programmatic dependent
launch overlaps by a few us, and that is real."""
MOVED, CLIPPED = 3, 4
"""Codes of `repair`."""
_FAR_NS = 1_000_000_000
_LANE_BITS = 48


def device_rows(gathered: Gathered) -> pl.DataFrame:
    """What device rows say of themselves, by slice; others of their lanes are left out."""
    found = gathered.ids("device")
    return found.filter(pl.Series(gathered.on_device[found["id"].to_numpy()], dtype=pl.Boolean))


def repair_device_times(gathered: Gathered, links: Links, logs: Sequence[IssueLog]) -> None:
    """Put right the device times that could not be, in place; each is counted.

    Args:
        gathered: the rows.
        links: their launching calls.
        logs: per file, where repairs are counted.
    """
    device = np.flatnonzero(gathered.on_device)
    if not len(device):
        return
    untimed = _without_time(gathered, device, logs)
    clipped, shorter = _overruns(gathered, links, device, logs)
    padded, ends_padded = _padded_annotations(gathered, device, logs)
    ts, dur, repair = gathered.ts, gathered.dur, gathered.repair
    if len(untimed):
        ts[untimed] = _start_of_call(gathered, links, untimed)
        repair[untimed] = MOVED
    dur[clipped] -= shorter
    repair[clipped] = CLIPPED
    ts[padded] += 1
    dur[padded] -= 1 + ends_padded
    for rows in (clipped, padded):
        gathered.self_dur[rows] = dur[rows]


def _without_time(gathered: Gathered, device: Int64, logs: Sequence[IssueLog]) -> Int64:
    """Device rows with start and length 0, in a file whose other rows begin far from there."""
    zero = device[gathered.dur[device] == 0]
    found = []
    for trace_id, file in enumerate(gathered.files):
        mine = zero[gathered.trace[zero] == trace_id]
        if not len(mine):
            continue
        at = gathered.ts[mine] + gathered.origin_ns
        mine = mine[(at == 0) | (at == file.base_ns)]
        first, last = np.searchsorted(gathered.trace, [trace_id, trace_id + 1])
        others = np.ones(last - first, np.bool_)
        others[mine - first] = False
        starts = gathered.ts[first:last][others]
        if len(mine) and len(starts) and (np.abs(starts - gathered.ts[mine[0]]) > _FAR_NS).all():
            logs[trace_id].count("device_time_missing", len(mine))
            found.append(mine)
    return np.concatenate(found) if found else device[:0]


def _start_of_call(gathered: Gathered, links: Links, rows: Int64) -> Int64:
    """Start of the launching call, else of the first other row of the file."""
    timed = np.ones(len(gathered), np.bool_)
    timed[rows] = False
    first = np.array(
        [
            gathered.ts[timed & (gathered.trace == trace_id)].min(initial=np.iinfo(np.int64).max)
            for trace_id in range(len(gathered.files))
        ]
    )
    call = links.call[rows]
    return np.where(call >= 0, gathered.ts[call], first[gathered.trace[rows]])


def _overruns(
    gathered: Gathered, links: Links, device: Int64, logs: Sequence[IssueLog]
) -> tuple[Int64, Int64]:
    """Rows of ROCm files that outlive the start of the next row by over a millisecond, and by what.

    Work of one stream runs one after the other. A row counts as wrong only where the start of the
    row after the next lies before its end as well, and where the next one is no node of the same
    graph: branches of a graph may run side by side.
    """
    n_files = len(gathered.files)
    hip = links.is_runtime & gathered.name_matches("^hip[A-Z]")
    is_rocm = np.bincount(gathered.trace[hip], minlength=n_files) > 0
    rows = device[is_rocm[gathered.trace[device]]]
    rows = rows[np.lexsort((rows, gathered.ts[rows], gathered.utid[rows]))]
    lane, start = gathered.utid[rows], gathered.ts[rows]
    end = start + gathered.dur[rows]
    changes = np.flatnonzero((np.diff(start) != 0) | (np.diff(lane) != 0)) + 1
    place = np.arange(len(rows))
    behind = np.searchsorted(changes, place, "right")
    following = np.concatenate([changes, [len(rows)]])[behind] if len(rows) else place
    over = np.flatnonzero(following + 1 < len(rows))
    after = following[over]
    wrong = (lane[after] == lane[over]) & (lane[after + 1] == lane[over])
    wrong &= (end[over] > start[after] + OVERRUN_NS) & (end[over] > start[after + 1])
    call = links.call[rows]
    wrong &= (call[over] < 0) | (call[over] != call[after])
    over, after = over[wrong], after[wrong]
    clipped, excess = rows[over], end[over] - start[after]
    for row, by_ns in zip(clipped.tolist(), excess.tolist(), strict=True):
        log = logs[int(gathered.trace[row])]
        name, action = gathered.name_text(row), f"{by_ns} ns cut off its end"
        log.at("duration_clipped", byte_offset=None, excerpt=name, action=action)
        log.count("duration_clipped_ns", by_ns)
    return clipped, excess


def _padded_annotations(
    gathered: Gathered, device: Int64, logs: Sequence[IssueLog]
) -> tuple[Int64, Int64]:
    """Annotations on streams that begin 1 ns before a device row; 1 where they end 1 ns after one.

    The profiler writes them 1 ns early and 2 ns (older: 1 ns) long, so that viewers nest them.
    """
    rows = np.flatnonzero(gathered.is_category("gpu_user_annotation"))
    if not len(rows):
        return rows, rows
    device = device[np.isin(gathered.utid[device], gathered.utid[rows])]
    lane, ends = gathered.utid[rows], (gathered.ts + gathered.dur)[rows]
    starts_of = _moments(gathered.utid[device], gathered.ts[device])
    ends_of = _moments(gathered.utid[device], (gathered.ts + gathered.dur)[device])
    early = np.isin(_moments(lane, gathered.ts[rows] + 1), starts_of)
    late = np.isin(_moments(lane, ends - 1), ends_of)
    exact = np.isin(_moments(lane, ends), ends_of)
    padded = early & (late | exact) & (gathered.dur[rows] > 1)
    counts = np.bincount(gathered.trace[rows[padded]], minlength=len(logs))
    for log, number in zip(logs, counts.tolist(), strict=True):
        log.count("annotation_padded", number)
    return rows[padded], late[padded].astype(np.int64)


def _moments(lane: NDArray[np.int32], at_ns: Int64) -> Int64:
    """(lane, time) as one number each; times within 78 hours of each other never meet."""
    moments: Int64 = (lane.astype(np.int64) << _LANE_BITS) + at_ns
    return moments
