"""Which device work a stream waits for at each event wait.

Recorded: the profiler's `cuda_sync` rows name the stream and the record call. Ordered: from the
order of the record, wait and launch calls of each thread (DESIGN section 3, rules i to vi).
Inferred: in files without record rows, the collective nearest in time.
"""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import Evidence, RuntimeKind
from ingest.compiled import compiled
from replay.graph import thresholds
from replay.graph.arrays import Bool, Int64
from replay.graph.blocking import last_launch_lane, match_sync_rows, record_rows
from replay.graph.recorded import Recorded, take
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
    member = recorded.member
    device_row = member.device_row[member.device_row >= 0]
    is_member = np.zeros(len(recorded.device), bool)
    is_member[device_row] = True
    has_records = np.zeros(len(recorded.ranks), bool)
    has_records[recorded.host.trace[recorded.host.kind == RuntimeKind.EVENT_RECORD]] = True
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
        recorded.device.ts_ns,
        recorded.device.end_ns,
        thresholds.CLOCK_TOLERANCE_NS,
        int(recorded.host.thread.max()) + 1 if len(recorded.host) else 0,
        max(streams.n_lanes, 1),
    )
    src = np.concatenate([src_row, ordered_src])
    dst = np.concatenate([dst_row, ordered_dst])
    kind = np.concatenate([np.full(len(src_row), Evidence.RECORDED, np.int64), evidence])
    return _without_contradictions(recorded, src, dst, kind)


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
    record_row = record_rows(recorded, sync_row)
    known = record_row >= 0
    waits, sync_row, record_row = waits[known], sync_row[known], record_row[known]
    trace = host.trace[waits]
    src_lane = streams.find(trace, sync.wait_on_stream[sync_row])
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


@compiled
def ordered_pairs(
    trace,
    thread,
    call_type,
    member,
    in_record,
    src_row,
    src_lane,
    dst_row,
    dst_lane,
    has_records,
    ts_ns,
    end_ns,
    tolerance_ns,
    n_threads,
    n_lanes,
):
    """Walk the calls of each file in time order and pair waits with what they wait for.

    Types: 0 record, 1 wait, 2 launch. Evidence out: 1 ordered, 2 inferred. `pending` holds end
    events of collectives and lone records in issue order; `seen[lane]` the oldest one that the
    lane may still have to wait for.
    """
    n = len(trace)
    out_src = np.empty(n, np.int64)
    out_dst = np.empty(n, np.int64)
    out_evidence = np.empty(n, np.int64)
    count = 0
    last_type = np.full(n_threads, -1, np.int64)
    last_call = np.full(n_threads, -1, np.int64)
    last_member = np.full(n_threads, -1, np.int64)
    pending = np.empty(n + 1, np.int64)
    is_end = np.zeros(n + 1, np.bool_)
    waited_by = np.zeros(n + 1, np.int64)
    inside = np.full(n_threads, -1, np.int64)
    launched_inside = np.zeros(n_threads, np.bool_)
    n_pending = 0
    first_pending = 0
    current = -1
    next_type = np.full(n, -1, np.int64)
    following = np.full(n_threads, -1, np.int64)
    for call in range(n - 1, -1, -1):
        next_type[call] = following[thread[call]]
        following[thread[call]] = call_type[call]
    for call in range(n):
        if trace[call] != current:
            current = trace[call]
            first_pending = n_pending
        worker = thread[call]
        if in_record[call] != inside[worker]:
            inside[worker] = in_record[call]
            launched_inside[worker] = False
        if call_type[call] == 2:
            launched_inside[worker] = in_record[call] >= 0
            last_member[worker] = member[call]
            if member[call] >= 0 and not has_records[current]:
                pending[n_pending] = member[call]
                is_end[n_pending] = True
                n_pending += 1
        elif call_type[call] == 0:
            ends = last_member[worker] >= 0
            if ends:
                pending[n_pending] = last_member[worker]
                is_end[n_pending] = True
                n_pending += 1
                last_member[worker] = -1
            elif next_type[call] != 1 and src_row[call] >= 0:
                pending[n_pending] = src_row[call]
                is_end[n_pending] = False
                n_pending += 1
        elif dst_row[call] >= 0:
            target = dst_row[call]
            lane = dst_lane[call]
            bit = np.int64(1) << np.int64(lane % 63)
            limit_ns = ts_ns[target] + tolerance_ns
            paired = last_type[worker] == 0 and has_records[current]
            lone = not paired
            source = -1
            evidence = 1
            if paired:
                record = last_call[worker]
                if src_lane[record] != lane:
                    source = src_row[record]
                    if source >= 0 and end_ns[source] > limit_ns:
                        source = -1
                        lone = True
                for place in range(n_pending - 1, first_pending - 1, -1):
                    if pending[place] == source:
                        waited_by[place] |= bit
                        break
            elif not has_records[current] and in_record[call] >= 0:
                lone = False
                if not launched_inside[worker] and src_lane[call] != lane:
                    source = src_row[call]
            if lone:
                for wanted_end in (True, False):
                    for place in range(first_pending, n_pending):
                        row = pending[place]
                        if is_end[place] != wanted_end or waited_by[place] & bit:
                            continue
                        if end_ns[row] > limit_ns or row == target:
                            continue
                        source = row
                        waited_by[place] |= bit
                        break
                    if source >= 0 or has_records[current]:
                        break
                if source < 0 and not has_records[current]:
                    for place in range(first_pending, n_pending):
                        row = pending[place]
                        if end_ns[row] <= limit_ns and row != target:
                            if source < 0 or end_ns[row] > end_ns[source]:
                                source = row
                    evidence = 2
            if source >= 0:
                out_src[count] = source
                out_dst[count] = target
                out_evidence[count] = evidence
                count += 1
        last_type[worker] = call_type[call]
        last_call[worker] = call
    return out_src[:count], out_dst[:count], out_evidence[:count]
