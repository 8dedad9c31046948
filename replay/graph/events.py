"""Which device work a stream waits for at each event wait.

Recorded: the profiler's `cuda_sync` rows name the stream and the record call. Ordered: from the
order of the record, wait and launch calls of each thread (DESIGN section 3, rules i to vi); a wait
for a collective is one for all earlier collectives of its stream. Inferred, in files without
record rows only: the collective that ended just before, or else the nearest in time.
"""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import Evidence, RuntimeKind
from replay.graph import thresholds
from replay.graph.arrays import Bool, Int64
from replay.graph.blocking import last_launch_lane, match_sync_rows, recorded_events
from replay.graph.recorded import Recorded, take
from replay.graph.scans import ordered_pairs
from replay.graph.streams import Streams

RECORD, WAIT, LAUNCH = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPairs:
    """Device row waited for -> first device row after the wait, as found and not contradicted."""

    src_row: Int64
    dst_row: Int64
    evidence: Int64
    contradicted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Calls:
    """Record, wait and launch calls in (file, time) order."""

    row: Int64
    trace: Int64
    thread: Int64
    type: Int64
    member: Int64
    """For a launch: device row of the collective that it started; -1."""
    in_record: Int64
    """Number of the collective's host record around the call; -1."""
    src_row: Int64
    """For a record: last device row launched before it on the stream of the thread's last launch;
    for a wait in a file without records: the same for the wait."""
    dst_row: Int64
    """For a wait: first device row after it on the waiting stream; -1."""
    dst_lane: Int64
    src_lane: Int64


def find_event_pairs(recorded: Recorded, streams: Streams) -> EventPairs:
    """Resolve every event wait."""
    src_row, dst_row, resolved = _recorded_pairs(recorded, streams)
    calls = _calls(recorded, streams, resolved)
    has_records = files_with_records(recorded)
    ordered_src, ordered_dst, evidence = ordered_pairs(
        calls.trace,
        calls.thread,
        calls.type,
        calls.member,
        calls.in_record,
        calls.src_row,
        calls.src_lane,
        calls.dst_row,
        calls.dst_lane,
        has_records,
        recorded.device.lane,
        np.arange(streams.n_lanes) - np.searchsorted(streams.trace, streams.trace),
        _columns(recorded, streams),
        streams.launch_ns,
        recorded.device.ts_ns,
        recorded.device.end_ns,
        thresholds.CLOCK_TOLERANCE_NS,
        thresholds.UNRECORDED_EVENT_LAG_NS,
        int(recorded.host.thread.max()) + 1 if len(recorded.host) else 0,
    )
    src = np.concatenate([src_row, ordered_src])
    dst = np.concatenate([dst_row, ordered_dst])
    kind = np.concatenate([np.full(len(src_row), Evidence.RECORDED, np.int64), evidence])
    return _without_contradictions(recorded, src, dst, kind)


def _columns(recorded: Recorded, streams: Streams) -> Int64:
    """Per lane its number among those of its file that run collectives; -1 for the others."""
    rows = recorded.member.device_row[recorded.member.device_row >= 0]
    lanes = np.unique(recorded.device.lane[rows])
    trace = streams.trace[lanes]
    column = np.full(streams.n_lanes, -1, np.int64)
    column[lanes] = np.arange(len(lanes)) - np.searchsorted(trace, trace)
    return column


def files_with_records(recorded: Recorded) -> Bool:
    """Per file whether it holds event-record rows at all; older profilers drop them."""
    has_records = np.zeros(len(recorded.ranks), bool)
    has_records[recorded.host.trace[recorded.host.kind == RuntimeKind.EVENT_RECORD]] = True
    return has_records


def _without_contradictions(
    recorded: Recorded, src: Int64, dst: Int64, evidence: Int64
) -> EventPairs:
    device = recorded.device
    late = device.end_ns[src] > device.ts_ns[dst] + thresholds.CLOCK_TOLERANCE_NS
    keep = ~late & (src != dst) & (device.ts_ns[src] < device.end_ns[dst])
    pairs = np.stack([src[keep], dst[keep], evidence[keep]], axis=1)
    if len(pairs):
        pairs = pairs[np.lexsort((pairs[:, 2], pairs[:, 0], pairs[:, 1]))]
        new = np.any(np.diff(pairs[:, :2], axis=0) != 0, axis=1)
        pairs = pairs[np.concatenate([[True], new])]
    return EventPairs(
        src_row=pairs[:, 0],
        dst_row=pairs[:, 1],
        evidence=pairs[:, 2],
        contradicted=int(late.sum()),
    )


def _recorded_pairs(recorded: Recorded, streams: Streams) -> tuple[Int64, Int64, Bool]:
    """Pairs that `cuda_sync` rows name, and which host rows (waits) they resolve."""
    host, sync = recorded.host, recorded.sync
    resolved = np.zeros(len(host), bool)
    waits = np.flatnonzero(host.kind == RuntimeKind.EVENT_WAIT)
    if not len(sync.trace) or not len(waits):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), resolved
    sync_row = match_sync_rows(recorded, waits)
    waits, sync_row = waits[sync_row >= 0], sync_row[sync_row >= 0]
    resolved[waits] = True
    record_row, stream = recorded_events(recorded, waits, sync_row)
    known = record_row >= 0
    waits, sync_row, record_row = waits[known], sync_row[known], record_row[known]
    trace = host.trace[waits]
    src_lane = streams.find(trace, stream[known])
    dst_lane = streams.find(trace, sync.stream[sync_row])
    src = streams.last_before(src_lane, host.ts_ns[record_row])
    dst = streams.first_after(dst_lane, host.ts_ns[waits])
    found = (src >= 0) & (dst >= 0)
    return src[found], dst[found], resolved


def _calls(recorded: Recorded, streams: Streams, resolved: Bool) -> _Calls:
    host, device = recorded.host, recorded.device
    launched = np.full(len(host), -1, np.int64)
    linked = np.flatnonzero(device.call >= 0)
    launched[device.call[linked][::-1]] = linked[::-1]
    type_of = np.full(len(host), -1, np.int64)
    type_of[host.kind == RuntimeKind.EVENT_RECORD] = RECORD
    type_of[(host.kind == RuntimeKind.EVENT_WAIT) & ~resolved] = WAIT
    type_of[launched >= 0] = LAUNCH
    rows = np.flatnonzero(type_of >= 0)
    rows = rows[np.lexsort((rows, host.ts_ns[rows], host.trace[rows]))]
    in_record, library_lane = _host_records(recorded, rows)
    last_lane = last_launch_lane(recorded)[rows]
    next_lane = _next_launch_lane(recorded, launched)[rows]
    next_lane = np.where(next_lane >= 0, next_lane, last_lane)
    dst_lane = np.where((in_record >= 0) & (library_lane >= 0), library_lane, next_lane)
    moment_ns = host.ts_ns[rows]
    member_row = np.full(len(device), -1, np.int64)
    on_device = recorded.member.device_row[recorded.member.device_row >= 0]
    member_row[on_device] = on_device
    first = launched[rows]
    return _Calls(
        row=rows,
        trace=host.trace[rows],
        thread=host.thread[rows],
        type=type_of[rows],
        member=take(member_row, first),
        in_record=in_record,
        src_row=streams.last_before(last_lane, moment_ns),
        dst_row=streams.first_after(dst_lane, moment_ns),
        dst_lane=dst_lane,
        src_lane=last_lane,
    )


def _host_records(recorded: Recorded, rows: Int64) -> tuple[Int64, Int64]:
    """Collective's host record around each call, and the lane its kernel ran on; -1."""
    host, member = recorded.host, recorded.member
    known = np.flatnonzero((member.record_row >= 0) & (member.device_row >= 0))
    record = member.record_row[known]
    order = np.argsort(record, kind="stable")
    record, lane = record[order], recorded.device.lane[member.device_row[known][order]]
    if not len(record):
        nothing = np.full(len(rows), -1, np.int64)
        return nothing, nothing
    place = np.maximum(np.searchsorted(record, rows) - 1, 0)
    inside = (record[place] < rows) & (host.thread[record[place]] == host.thread[rows])
    inside &= host.ts_ns[rows] < host.end_ns[record[place]]
    return np.where(inside, record[place], -1), np.where(inside, lane[place], -1)


def _next_launch_lane(recorded: Recorded, launched: Int64) -> Int64:
    """Per host row: lane of the thread's next launch after it; -1."""
    host = recorded.host
    marked = np.where(launched >= 0, np.arange(len(host)), len(host))
    following = np.minimum.accumulate(np.concatenate([marked[1:], [len(host)]])[::-1])[::-1]
    place = np.where(following < len(host), following, -1)
    same = take(host.thread, place) == host.thread
    return np.where(same, take(recorded.device.lane, take(launched, place)), -1)
