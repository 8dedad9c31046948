"""Clocks: device against host inside a file, and file against file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.normalise.drift import NORMAL_MAD, Line, robust_line
from ingest.normalise.sequence import ENDS_APART
from ingest.vocab import CollectiveKind

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

IDLE_NS = 5_000
"""A device is idle before a call when nothing ran on it for this long; also the longest gap
inside a busy run."""
TYPICAL_LAUNCH_NS = 2_000
MIN_IDLE_LAUNCHES = 8
MIN_DEVICE_OFFSET_NS = 4_000
_DRIFT_MIN_SAMPLES = 16
_DRIFT_INLIER_MADS = 6.0
_DRIFT_SIGNIFICANCE = 6.0
"""Standard deviations. Below it the drift is not applied: what a step does at its beginning and
its end alone makes slopes of three."""
_DRIFT_PLAUSIBLE = 1e-4
_WAITS = (
    CollectiveKind.ALL_REDUCE,
    CollectiveKind.REDUCE_SCATTER,
    CollectiveKind.ALL_GATHER,
    CollectiveKind.ALL_TO_ALL,
    CollectiveKind.BARRIER,
    CollectiveKind.RECV,
    CollectiveKind.SEND_RECV,
)
"""Kinds whose member cannot end before its partners have started."""


class DeviceClock(NamedTuple):
    """Shift that brings device times of a file to its host clock."""

    offset_ns: int
    """To be added to device times; 0 where it is too small or rests on too few launches."""
    samples: int
    median_lag_ns: int
    """Recorded median of (start of the task - end of its call); 0 without samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTasks:
    """Columns with one row per device task of a file, in any order."""

    start_ns: Int64
    end_ns: Int64
    device: Int64
    call_start_ns: Int64
    """Start of the launching call; -1 when not linked."""
    call_end_ns: Int64
    plain_launch: Bool
    """The call launched this task alone and returns without waiting (no graph, no copy)."""


def device_clock_offset(tasks: DeviceTasks) -> DeviceClock:
    """Offset of the device clock, from tasks that met an idle device.

    These start about 2 us after the end of their call.
    """
    order = np.lexsort((tasks.start_ns, tasks.device))
    start, device = tasks.start_ns[order], tasks.device[order]
    call_start, call_end = tasks.call_start_ns[order], tasks.call_end_ns[order]
    busy_until, has_earlier = _busy_until(start, tasks.end_ns[order], device)
    usable = tasks.plain_launch[order] & (call_start >= 0) & has_earlier
    offset, samples, lag = 0, 0, 0
    for _ in range(2):
        idle = usable & (busy_until + offset <= call_start - IDLE_NS)
        samples = int(idle.sum())
        if samples < MIN_IDLE_LAUNCHES:
            return DeviceClock(0, samples, lag)
        lag = round(float(np.median(start[idle] - call_end[idle])))
        offset = TYPICAL_LAUNCH_NS - lag
    return DeviceClock(offset if abs(offset) > MIN_DEVICE_OFFSET_NS else 0, samples, lag)


class LaunchRepair(NamedTuple):
    """Shifts that keep device tasks from starting before their calls."""

    shift_ns: Int64
    """Per task, to be added to start and end."""
    early: int
    """Tasks that started before their call."""
    dragged: int
    """Other tasks moved with them."""
    largest_ns: int
    """How much before its call the earliest of them started."""


def kernels_after_launch(tasks: DeviceTasks) -> LaunchRepair:
    """Move what starts before its call to the call's start, with the rest of its busy run.

    Within a run all tasks move alike, so relations between streams stay; an idle gap after the
    run takes up as much of the shift as it can.
    """
    order = np.lexsort((tasks.start_ns, tasks.device))
    start, device = tasks.start_ns[order], tasks.device[order]
    call_start = tasks.call_start_ns[order]
    need = np.where(call_start >= 0, np.maximum(call_start - start, 0), 0)
    shift = np.zeros(len(order), np.int64)
    if need.any():
        busy_until, has_earlier = _busy_until(start, tasks.end_ns[order], device)
        gap = np.where(has_earlier, start - busy_until, 0)
        slack = np.where(gap > IDLE_NS, gap, 0)
        slack[~has_earlier] = need.max()
        taken_up = np.cumsum(slack)
        shift[order] = np.maximum.accumulate(need + taken_up) - taken_up
    early = int((need > 0).sum())
    largest_ns = int(need.max(initial=0))
    return LaunchRepair(shift, early, int((shift > 0).sum()) - early, largest_ns)


def _busy_until(start: Int64, end: Int64, device: Int64) -> tuple[Int64, Bool]:
    """Latest end of the earlier tasks of the device; rows sorted by device, then start."""
    n = len(start)
    first = np.ones(n, dtype=bool)
    first[1:] = device[1:] != device[:-1]
    if n == 0:
        return end, ~first
    span = int(end.max()) - int(start.min()) + 1
    lift = np.cumsum(first) * span
    running = np.maximum.accumulate(end + lift) - lift
    busy = np.concatenate(([0], running[:-1]))
    return busy, ~first


@dataclass(frozen=True, slots=True, kw_only=True)
class FileClocks:
    """Per file: how far its clock is ahead of the reference file's."""

    offset_ns: Int64
    """To be subtracted from the times of the file; 0 where not applied."""
    fitted_ns: Float64
    """The estimate, applied or not; NaN where nothing connects the file to the reference."""
    uncertainty_ns: Float64
    drift: Float64
    """Seconds per second, to be taken off from `reference_ns` on; 0 unless significant."""
    drift_error: Float64
    """Standard deviation of the fitted drift, applied or not; NaN where it was not fitted."""
    reference_ns: int
    base: Int64
    """The file to whose clock this one's is brought; its own where it has none in common."""
    samples: Int64
    """Collectives that tie the clock of the file to the one before it on the way to its base."""
    method: tuple[str, ...]
    """reference | ends | order_of_events | host (the clock of a recorded host) | alone (shares
    no collective with the reference)."""
    spread_ns: float
    """Median over matched device collectives of (last end - first end), after the fit."""

    def corrected(self, ts_ns: Int64, file: NDArray[np.integer]) -> Int64:
        """Times on the reference clock; the very array where nothing changes."""
        if not self.drift.any():
            return ts_ns - self.offset_ns[file] if self.offset_ns.any() else ts_ns
        drifted = np.rint(self.drift[file] * (ts_ns - self.reference_ns)).astype(np.int64)
        aligned: Int64 = ts_ns - self.offset_ns[file] - drifted
        return aligned


@dataclass(frozen=True, slots=True, kw_only=True)
class Meetings:
    """Rows that belong to collectives of two or more files."""

    collective: Int64
    file: Int64
    kind: Int64
    start_ns: Int64
    end_ns: Int64
    on_host: Bool


class _Link(NamedTuple):
    offset_ns: float
    uncertainty_ns: float
    drift: float
    drift_error: float
    samples: int
    method: str


def fit_file_clocks(meetings: Meetings, ranks: Int64, hosts: Sequence[str]) -> FileClocks:
    """Clock of each file against the file of the lowest rank, over files that share collectives.

    Device members end together: the median difference of their ends is the offset, known to
    1.4826 MAD / sqrt(n) but never better than half the median spread of ends. A clear trend of the
    differences is a drift (Theil-Sen). Host members (gloo) only say that no rank ends before the
    last one has started. An offset below its uncertainty is not applied. Files of one recorded
    host share one clock where their fits agree. Files that share no collective with the reference
    are aligned among themselves.
    """
    n = len(ranks)
    reference_ns = int(meetings.end_ns.min()) if len(meetings.end_ns) else 0
    links = _links(meetings, ranks, reference_ns)
    fit = _unfitted(n)
    for root in np.argsort(ranks, kind="stable").tolist():
        if root in links and np.isnan(fit.offset_ns[root]):
            _walk(root, links, fit)
    ends = np.array([word == "ends" for word in fit.method], dtype=bool)
    spread = _spread_of_ends(meetings, fit, reference_ns)
    fit.uncertainty_ns[ends] = np.maximum(fit.uncertainty_ns[ends], spread / 2)
    _pool_hosts(fit, hosts)
    estimate = np.nan_to_num(fit.offset_ns)
    applied = (np.abs(estimate) > fit.uncertainty_ns) | (fit.drift != 0)
    return FileClocks(
        offset_ns=np.where(applied, np.rint(estimate), 0).astype(np.int64),
        fitted_ns=fit.offset_ns,
        uncertainty_ns=fit.uncertainty_ns,
        drift=fit.drift,
        drift_error=fit.drift_error,
        reference_ns=reference_ns,
        base=fit.base,
        samples=fit.samples,
        method=tuple(fit.method),
        spread_ns=spread,
    )


class _Fit(NamedTuple):
    offset_ns: Float64
    uncertainty_ns: Float64
    drift: Float64
    drift_error: Float64
    base: Int64
    samples: Int64
    method: list[str]


def _unfitted(n: int) -> _Fit:
    return _Fit(
        offset_ns=np.full(n, np.nan),
        uncertainty_ns=np.zeros(n),
        drift=np.zeros(n),
        drift_error=np.full(n, np.nan),
        base=np.arange(n),
        samples=np.zeros(n, np.int64),
        method=["alone"] * n,
    )


def _walk(root: int, links: dict[int, dict[int, _Link]], fit: _Fit) -> None:
    """Reach the files that share collectives with the root; the first root is the reference."""
    is_first = "reference" not in fit.method
    fit.offset_ns[root] = 0.0
    fit.drift_error[root] = 0.0
    fit.method[root] = "reference" if is_first else "alone"
    queue = [root]
    for here in queue:
        for there, link in links[here].items():
            if np.isnan(fit.offset_ns[there]):
                fit.offset_ns[there] = fit.offset_ns[here] + link.offset_ns
                fit.uncertainty_ns[there] = np.hypot(fit.uncertainty_ns[here], link.uncertainty_ns)
                fit.drift[there] = fit.drift[here] + link.drift
                fit.drift_error[there] = np.hypot(fit.drift_error[here], link.drift_error)
                fit.base[there] = root
                fit.samples[there] = link.samples
                fit.method[there] = link.method
                queue.append(there)


def _links(meetings: Meetings, ranks: Int64, reference_ns: int) -> dict[int, dict[int, _Link]]:
    """Offsets between pairs of files: in each collective, its lowest rank against the others."""
    links: dict[int, dict[int, _Link]] = {}
    order = np.lexsort((ranks[meetings.file], meetings.collective))
    collective = meetings.collective[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = collective[1:] != collective[:-1]
    base = order[np.flatnonzero(first)[np.cumsum(first) - 1]] if len(order) else order
    here, there = base[~first], order[~first]
    pair = meetings.file[here] * len(ranks) + meetings.file[there]
    by_pair = np.argsort(pair, kind="stable")
    for rows in np.split(by_pair, np.flatnonzero(np.diff(pair[by_pair])) + 1):
        if len(rows) == 0:
            continue
        link = _link(meetings, here[rows], there[rows], reference_ns)
        if link is not None:
            a, b = int(meetings.file[here[rows[0]]]), int(meetings.file[there[rows[0]]])
            links.setdefault(a, {})[b] = link
            back = link._replace(offset_ns=-link.offset_ns, drift=-link.drift)
            links.setdefault(b, {})[a] = back
    return links


def _link(meetings: Meetings, here: Int64, there: Int64, reference_ns: int) -> _Link | None:
    together = ~meetings.on_host[here] & ~np.isin(meetings.kind[here], ENDS_APART)
    if together.any():
        return _link_by_ends(meetings, here[together], there[together], reference_ns)
    return _link_by_order(meetings, here, there)


def _link_by_ends(meetings: Meetings, here: Int64, there: Int64, reference_ns: int) -> _Link:
    """Median difference of ends; a single one may be wrong by the shorter duration."""
    apart = (meetings.end_ns[there] - meetings.end_ns[here]).astype(np.float64)
    since = (meetings.end_ns[here] - reference_ns).astype(np.float64)
    offset = float(np.median(apart))
    line = _drift(apart - offset, since)
    drifts = line is not None and _is_drift(line)
    if line is not None and drifts:
        offset += line.at_zero
        rest = apart - offset - line.slope * since
    else:
        rest = apart - offset
    mad = float(np.median(np.abs(rest)))
    unsure = max(NORMAL_MAD * mad / np.sqrt(len(apart)), mad / 2)
    if len(apart) == 1:
        durations = (meetings.end_ns - meetings.start_ns)[np.concatenate((here, there))]
        unsure = float(durations.min())
    return _Link(
        offset_ns=offset,
        uncertainty_ns=unsure,
        drift=line.slope if line is not None and drifts else 0.0,
        drift_error=line.slope_error if line is not None else np.nan,
        samples=len(apart),
        method="ends",
    )


def _drift(apart_ns: Float64, since_ns: Float64) -> Line | None:
    """Line through the differences over time without the far ones; None for too few."""
    mad_ns = float(np.median(np.abs(apart_ns)))
    near = np.abs(apart_ns) <= _DRIFT_INLIER_MADS * mad_ns
    x, y = since_ns[near], apart_ns[near]
    if len(x) < _DRIFT_MIN_SAMPLES or np.ptp(x) == 0:
        return None
    return robust_line(x, y)


def _is_drift(line: Line) -> bool:
    return _DRIFT_SIGNIFICANCE * line.slope_error < abs(line.slope) < _DRIFT_PLAUSIBLE


def _link_by_order(meetings: Meetings, here: Int64, there: Int64) -> _Link | None:
    """The offset nearest to zero at which no one that waits ends before the last one starts."""
    here_waits = np.isin(meetings.kind[here], _WAITS)
    there_waits = np.isin(meetings.kind[there], _WAITS)
    above = (meetings.start_ns[there] - meetings.end_ns[here])[here_waits]
    below = (meetings.end_ns[there] - meetings.start_ns[here])[there_waits]
    if len(above) == 0 or len(below) == 0:
        return None
    low, high = int(above.max()), int(below.min())
    if low <= 0 <= high or low > high:
        return _Link(0.0, abs(high - low) / 2, 0.0, np.nan, len(here), "order_of_events")
    return _Link((low + high) / 2, (high - low) / 2, 0.0, np.nan, len(here), "order_of_events")


def _spread_of_ends(meetings: Meetings, fit: _Fit, reference_ns: int) -> float:
    use = ~meetings.on_host & ~np.isin(meetings.kind, ENDS_APART)
    use &= np.isfinite(fit.offset_ns[meetings.file])
    if not use.any():
        return 0.0
    file, end = meetings.file[use], meetings.end_ns[use]
    aligned = end - fit.offset_ns[file] - fit.drift[file] * (end - reference_ns)
    collective, index = np.unique(meetings.collective[use], return_inverse=True)
    last, earliest = np.full(len(collective), -np.inf), np.full(len(collective), np.inf)
    np.maximum.at(last, index, aligned)
    np.minimum.at(earliest, index, aligned)
    return float(np.median(last - earliest))


def _pool_hosts(fit: _Fit, hosts: Sequence[str]) -> None:
    for host in {host for host in hosts if host}:
        files = np.array([f for f, name in enumerate(hosts) if name == host])
        files = files[np.isfinite(fit.offset_ns[files])]
        if len(files) < 2:  # noqa: PLR2004  (a pool needs two)
            continue
        anchored = [f for f in files.tolist() if fit.method[f] == "reference"]
        pooled = 0.0 if anchored else float(np.median(fit.offset_ns[files]))
        together = np.abs(fit.offset_ns[files] - pooled) <= fit.uncertainty_ns[files]
        if together.all() and not fit.drift[files].any():
            fit.offset_ns[files] = pooled
            for file in files.tolist():
                if fit.method[file] == "order_of_events":
                    fit.uncertainty_ns[file] = fit.uncertainty_ns[anchored].max(initial=0.0)
                    fit.method[file] = "host"
