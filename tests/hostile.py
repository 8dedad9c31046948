"""Real traces made worse on purpose: clocks moved, files renamed, collectives deleted."""

import gzip
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from ingest.normalise.messages import is_communication_record

Event = dict[str, Any]
NANOS = Decimal("0.001")
"""Times in the files are microseconds; they keep three decimals."""

_CALLS = ("cuda_runtime", "cuda_driver", "runtime")
_DECODER = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal)
_ENCODER = msgspec.json.Encoder(decimal_format="number")


def rewritten(source: Path, target: Path, change: Callable[[list[Event]], list[Event]]) -> Path:
    """A trace with other events; numbers keep every digit.

    Args:
        source: a trace, gzip or plain.
        target: where the new one is written, plain.
        change: the events -> those to write.
    """
    raw = source.read_bytes()
    document = _DECODER.decode(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    document["traceEvents"] = change(document["traceEvents"])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(_ENCODER.encode(document))
    return target


def clock_moved(
    source: Path, target: Path, *, offset_us: float = 0.0, drift_ppm: float = 0.0
) -> Path:
    """A trace of a host whose clock is ahead, and runs fast from the first event on."""
    ahead, fast = Decimal(str(offset_us)), Decimal(str(drift_ppm)) / 1_000_000

    def moved(events: list[Event]) -> list[Event]:
        first = min(Decimal(event["ts"]) for event in events if "ts" in event)
        return [_at_clock(event, first, ahead, fast) for event in events]

    return rewritten(source, target, moved)


def _at_clock(event: Event, first: Decimal, ahead: Decimal, fast: Decimal) -> Event:
    changed = dict(event)
    if "ts" in event:
        ts = Decimal(event["ts"])
        changed["ts"] = (ts + ahead + (ts - first) * fast).quantize(NANOS)
    if "dur" in event:
        changed["dur"] = (Decimal(event["dur"]) * (1 + fast)).quantize(NANOS)
    return changed


def collective_deleted(source: Path, target: Path, number: int) -> Path:
    """A trace without its `number`-th kernel of communication: neither kernel, call nor records."""

    def without(events: list[Event]) -> list[Event]:
        kernels = sorted(filter(_is_communication, events), key=lambda event: event["ts"])
        lost = kernels[number]
        same = [event for event in events if _correlation(event) == _correlation(lost)]
        launches = [event for event in same if _category(event) in _CALLS]
        # A graph's launch has other kernels, and stays.
        if sum(_category(event) == "kernel" for event in same) > 1:
            launches = []
        records = [row for launch in launches for row in _records_around(events, launch)]
        gone = {id(event) for event in (lost, *launches, *records)}
        return [event for event in events if id(event) not in gone]

    return rewritten(source, target, without)


def _is_communication(event: Event) -> bool:
    is_library = "nccl" in event["name"].lower() or "cross_device_reduce" in event["name"]
    return _category(event) == "kernel" and is_library


def _category(event: Event) -> str:
    return str(event.get("cat", "")).lower()


def _correlation(event: Event) -> object:
    return event.get("args", {}).get("correlation") if event.get("ph") == "X" else None


def _records_around(events: Sequence[Event], launch: Event) -> list[Event]:
    begin, end = launch["ts"], launch["ts"] + launch["dur"]
    return [
        event
        for event in events
        if event.get("ph") == "X"
        and (event["pid"], event["tid"]) == (launch["pid"], launch["tid"])
        and event["ts"] <= begin
        and event["ts"] + event["dur"] >= end
        and is_communication_record(str(event["name"]))
    ]
