"""Which runtime calls block on device work, and until when.

A blocking call waits only where work that it waits for ended inside it; what it does after that,
and all of a call that found the work done, is host work.
"""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import Evidence, RuntimeKind
from replay.graph import thresholds
from replay.graph.arrays import Bool, Int64
from replay.graph.lessons import Lessons
from replay.graph.recorded import HostRows, Recorded, take
from replay.graph.streams import Streams

DEVICE_WIDE = (RuntimeKind.DEVICE_SYNC, RuntimeKind.FREE, RuntimeKind.MALLOC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Pairs of a blocking call and the device row that it may wait for."""

    call: Int64
    """Host row."""
    device_row: Int64
    evidence: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockingCalls:
    """Calls that may block, in row order, and what they wait for."""

    call: Int64
    """Host row."""
    resume_ns: Int64
    """When the call goes on: after the work it waited for, else its own start."""
    edge_call: Int64
    """Position in `call` of each dependency."""
    edge_device_row: Int64
    edge_lag_ns: Int64
    edge_evidence: Int64
    contradicted: int
    """Dependencies not made because the work ended after the call."""
    return_lag_ns: int
    samples: int


def find_blocking_calls(
    recorded: Recorded, streams: Streams, own_copy: Int64, lessons: Lessons
) -> BlockingCalls:
    """Resolve every call that may block.

    Args:
        recorded: columns of all ranks.
        streams: launch order of its device rows.
        own_copy: per host row, the copy that a blocking copy call launched and waits for; else -1.
        lessons: what the return lag is learned from.
    """
    host, device = recorded.host, recorded.device
    pairs = _candidates(recorded, streams, own_copy)
    source_end_ns = device.end_ns[pairs.device_row]
    start_ns, end_ns = host.ts_ns[pairs.call], host.end_ns[pairs.call]
    late = source_end_ns > end_ns + thresholds.CLOCK_TOLERANCE_NS
    inside = (source_end_ns > start_ns) & ~late
    loose = host.kind[pairs.call] == RuntimeKind.MALLOC
    loose |= (host.kind[pairs.call] == RuntimeKind.EVENT_SYNC) & (
        pairs.evidence == Evidence.INFERRED
    )
    near = inside & (end_ns - source_end_ns <= thresholds.SYNC_RETURN_NS)
    keep = np.where(loose, near, ~late)
    taught = inside & keep & lessons.teaches(host.trace[pairs.call], start_ns)
    lag_ns, samples = _return_lag(pairs.call, source_end_ns, end_ns, taught)
    call, position = np.unique(pairs.call[keep], return_inverse=True)
    ready_ns = np.where(inside, source_end_ns + lag_ns, start_ns)[keep]
    resume_ns = host.ts_ns[call].copy()
    np.maximum.at(resume_ns, position, np.minimum(ready_ns, end_ns[keep]))
    return BlockingCalls(
        call=call,
        resume_ns=resume_ns,
        edge_call=position.astype(np.int64),
        edge_device_row=pairs.device_row[keep],
        edge_lag_ns=np.where(inside[keep], lag_ns, 0),
        edge_evidence=pairs.evidence[keep],
        contradicted=int((late & ~loose).sum()),
        return_lag_ns=lag_ns,
        samples=samples,
    )


def _return_lag(call: Int64, source_end_ns: Int64, end_ns: Int64, blocked: Bool) -> tuple[int, int]:
    """Typical time from the end of the work to the return of the call; number of samples."""
    last_ns = np.full(int(call.max()) + 1 if len(call) else 0, np.iinfo(np.int64).min)
    np.maximum.at(last_ns, call[blocked], source_end_ns[blocked])
    calls = np.unique(call[blocked])
    end_of_call = np.zeros_like(last_ns)
    end_of_call[call] = end_ns
    lag_ns = (end_of_call - last_ns)[calls]
    lag_ns = lag_ns[(lag_ns >= 0) & (lag_ns <= thresholds.SYNC_RETURN_NS)]
    if len(lag_ns) < thresholds.SAMPLES:
        return thresholds.DEFAULT_SYNC_NS, len(lag_ns)
    return int(np.median(lag_ns)), len(lag_ns)


def _candidates(recorded: Recorded, streams: Streams, own_copy: Int64) -> Candidates:
    host = recorded.host
    parts = [
        _device_wide(host, streams),
        _own_copies(own_copy),
        _stream_syncs(recorded, streams),
        *_event_syncs(recorded, streams),
    ]
    pairs = Candidates(
        call=np.concatenate([part.call for part in parts]),
        device_row=np.concatenate([part.device_row for part in parts]),
        evidence=np.concatenate([part.evidence for part in parts]),
    )
    found = pairs.device_row >= 0
    return Candidates(
        call=pairs.call[found], device_row=pairs.device_row[found], evidence=pairs.evidence[found]
    )


def _pairs(call: Int64, device_row: Int64, evidence: Evidence) -> Candidates:
    return Candidates(
        call=call, device_row=device_row, evidence=np.full(len(call), evidence, np.int64)
    )


def _on_all_streams(
    host: HostRows, streams: Streams, rows: Int64, evidence: Evidence
) -> Candidates:
    position, lane = streams.lanes_of(host.trace[rows])
    call = rows[position]
    return _pairs(call, streams.last_before(lane, host.ts_ns[call]), evidence)


def _device_wide(host: HostRows, streams: Streams) -> Candidates:
    rows = np.flatnonzero(np.isin(host.kind, DEVICE_WIDE))
    return _on_all_streams(host, streams, rows, Evidence.RECORDED)


def _own_copies(own_copy: Int64) -> Candidates:
    rows = np.flatnonzero(own_copy >= 0)
    return _pairs(rows, own_copy[rows], Evidence.RECORDED)


def _stream_syncs(recorded: Recorded, streams: Streams) -> Candidates:
    host = recorded.host
    rows = np.flatnonzero(host.kind == RuntimeKind.STREAM_SYNC)
    row_of_sync = match_sync_rows(recorded, rows)
    stream = take(recorded.sync.stream, row_of_sync)
    lane = np.where(row_of_sync >= 0, streams.find(host.trace[rows], stream), -1)
    last_lane = last_launch_lane(recorded)[rows]
    guessed = lane < 0
    lane = np.where(guessed, last_lane, lane)
    device_row = streams.last_before(lane, host.ts_ns[rows])
    return Candidates(
        call=rows,
        device_row=device_row,
        evidence=np.where(guessed, Evidence.ORDERED, Evidence.RECORDED).astype(np.int64),
    )


def _event_syncs(recorded: Recorded, streams: Streams) -> list[Candidates]:
    host = recorded.host
    rows = np.flatnonzero(host.kind == RuntimeKind.EVENT_SYNC)
    row_of_sync = match_sync_rows(recorded, rows)
    record_row, stream = recorded_events(recorded, rows, row_of_sync)
    known = record_row >= 0
    lane = streams.find(host.trace[rows[known]], stream[known])
    moment_ns = host.ts_ns[record_row[known]]
    recorded_part = _pairs(rows[known], streams.last_before(lane, moment_ns), Evidence.RECORDED)
    return [recorded_part, _on_all_streams(host, streams, rows[~known], Evidence.INFERRED)]


def match_sync_rows(recorded: Recorded, rows: Int64) -> Int64:
    """For each host row the `cuda_sync` row with its correlation; -1 for none."""
    sync, host = recorded.sync, recorded.host
    table = {
        (int(trace), int(correlation)): index
        for index, (trace, correlation) in enumerate(zip(sync.trace, sync.correlation, strict=True))
        if correlation
    }
    return np.array(
        [table.get((int(host.trace[row]), int(host.correlation[row])), -1) for row in rows],
        np.int64,
    )


def recorded_events(recorded: Recorded, wait: Int64, sync_row: Int64) -> tuple[Int64, Int64]:
    """Which version of its event each wait means: host row of the record, and its stream; -1.

    That is the record that the `cuda_sync` row of the wait names. An event is recorded again and
    again, and a row may name a version that was not recorded yet when the wait was issued: then
    the latest version is meant that was, as far as rows of other waits on the event name it.

    Args:
        recorded: columns of all ranks.
        wait: host rows of the waits.
        sync_row: the `cuda_sync` row of each; -1 for none.
    """
    host, sync = recorded.host, recorded.sync
    named = _named_records(recorded, np.arange(len(sync.trace)))
    versions: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for index in np.flatnonzero((named >= 0) & (sync.event >= 0)).tolist():
        version = (
            int(host.ts_ns[named[index]]),
            int(named[index]),
            int(sync.wait_on_stream[index]),
        )
        versions.setdefault((int(sync.trace[index]), int(sync.event[index])), []).append(version)
    record_row = take(named, sync_row)
    stream = take(sync.wait_on_stream, sync_row)
    future = np.flatnonzero(take(host.ts_ns, record_row) > host.ts_ns[wait])
    for index in future.tolist():
        event = (int(sync.trace[sync_row[index]]), int(sync.event[sync_row[index]]))
        issued_ns = int(host.ts_ns[wait[index]])
        before = [version for version in versions.get(event, []) if version[0] <= issued_ns]
        record_row[index], stream[index] = max(before)[1:] if before else (-1, -1)
    return record_row, stream


def _named_records(recorded: Recorded, sync_row: Int64) -> Int64:
    """Host row of the event record that each `cuda_sync` row names; -1 for none."""
    host, sync = recorded.host, recorded.sync
    if not (sync_row >= 0).any():
        return np.full(len(sync_row), -1, np.int64)
    records = np.flatnonzero(host.kind == RuntimeKind.EVENT_RECORD)
    table = {(int(host.trace[row]), int(host.correlation[row])): int(row) for row in records}
    return np.array(
        [
            table.get((int(sync.trace[row]), int(sync.record_correlation[row])), -1)
            if row >= 0
            else -1
            for row in sync_row
        ],
        np.int64,
    )


def last_launch_lane(recorded: Recorded) -> Int64:
    """Per host row: lane of the last device work that its thread launched before it; -1."""
    host, device = recorded.host, recorded.device
    lane = np.full(len(host), -1, np.int64)
    linked = device.call >= 0
    lane[device.call[linked]] = device.lane[linked]
    marked = np.where(lane >= 0, np.arange(len(host)), -1)
    latest = np.maximum.accumulate(np.concatenate([[-1], marked]))[:-1]
    same_thread = (latest >= 0) & (host.thread[np.maximum(latest, 0)] == host.thread)
    return np.where(same_thread, lane[np.maximum(latest, 0)], -1)
