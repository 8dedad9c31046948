"""The store -> a Chrome trace that HTA can mark and write; positions are those of its index."""

import json
from typing import Any

from ingest.store import Store
from replay.bridge.times import FileClock

_HEADER = "SELECT metadata FROM trace WHERE trace_id = $1"
_EVENTS = """
    SELECT s.id, s.cat, s.name, p.pid, h.tid, s.ts, s.dur, k.id IS NOT NULL AS on_device, a.args
    FROM slice AS s
    JOIN thread AS h ON h.utid = s.utid
    JOIN process AS p ON p.upid = h.upid
    LEFT JOIN kernel AS k ON k.id = s.id
    LEFT JOIN slice_args AS a ON a.id = s.id
    WHERE s.trace_id = $1
    ORDER BY s.ts, s.correlation NULLS FIRST, s.id
"""
_LABELS = """
    SELECT p.pid, NULL AS tid, p.name, p.labels, p.sort_index
    FROM process AS p WHERE p.trace_id = $1
    UNION ALL
    SELECT p.pid, h.tid, h.name, NULL, h.sort_index
    FROM thread AS h JOIN process AS p ON p.upid = h.upid WHERE h.trace_id = $1
"""
_FLOWS = """
    SELECT id, name, slice_out, slice_in FROM flow
    WHERE trace_id = $1 AND slice_out IS NOT NULL AND slice_in IS NOT NULL
"""

Json = dict[str, Any]


def raw_trace(store: Store, clock: FileClock, *, recorded_clock: bool) -> Json:
    """Header and events of one file, complete events at the positions 1, 2, ... of HTA's index."""
    at = [clock.trace_id]
    header: Json = json.loads(store.rows(_HEADER, at)[0][0])
    shift_ns = clock.origin_ns - clock.base_ns + (clock.clock_offset_ns if recorded_clock else 0)
    device_ns = clock.device_offset_ns if recorded_clock else 0
    events: list[Json] = [{"ph": "M", "name": "trace_replay", "pid": "", "tid": "", "args": {}}]
    by_id: dict[int, Json] = {}
    for slice_id, cat, name, pid, tid, ts, dur, on_device, args in store.rows(_EVENTS, at):
        event = {"ph": "X", "cat": cat, "name": name, "pid": _number(pid), "tid": _number(tid)}
        start_ns = ts + shift_ns - (device_ns if on_device else 0)
        event |= {"ts": start_ns / 1000, "dur": dur / 1000, "args": _arguments(args)}
        events.append(event)
        by_id[slice_id] = event
    for label in store.rows(_LABELS, at):
        events += _labels(*label)
    for flow_id, name, start, end in store.rows(_FLOWS, at):
        events += _arrow(flow_id, name, by_id[start], by_id[end])
    return header | {"traceEvents": events}


def _arguments(text: str | None) -> Json:
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}


def _labels(
    pid: str, tid: str | None, name: str | None, labels: str | None, sort_index: int | None
) -> list[Json]:
    of = "process" if tid is None else "thread"
    track = {"ph": "M", "ts": 0, "pid": _number(pid), "tid": 0 if tid is None else _number(tid)}
    told = {"name": name, "labels": labels, "sort_index": sort_index}
    return [
        {**track, "name": f"{of}_{key}", "args": {key: value}}
        for key, value in told.items()
        if value is not None
    ]


def _arrow(flow_id: str, name: str, start: Json, end: Json) -> list[Json]:
    shared = {"cat": name, "name": name, "id": _number(flow_id)}
    ends = [
        {**shared, "ph": phase, "pid": event["pid"], "tid": event["tid"], "ts": event["ts"]}
        for phase, event in (("s", start), ("f", end))
    ]
    ends[1]["bp"] = "e"
    return ends


def _number(word: str) -> int | str:
    return int(word) if word.removeprefix("-").isdecimal() else word
