"""The bytes of a trace -> header and events: at once, or piece by piece where they are broken."""

import re
from typing import NamedTuple

import msgspec

from ingest.errors import TraceError
from ingest.issues import IssueLog
from ingest.readers.events import BROKEN, Event, decode_any, decode_events, decode_top
from ingest.readers.mend import EXCERPT_BYTES, lone_surrogate
from ingest.readers.repair import find_events, header_around, read_piecewise

_WORD = re.compile(rb"[\w.+/-]{1,40}")


class Decoded(NamedTuple):
    """One file, decoded."""

    header: dict[str, object]
    """Top-level keys beside the events."""
    events: list[Event]
    complete: bool
    """The file ends where its outermost bracket does."""


def decode(data: bytes, name: str, log: IssueLog, *, strict: bool) -> Decoded:
    """Decode a file; what is broken is repaired event by event, and counted.

    Raises:
        TraceError: not JSON, no trace in it, no events; with `strict` also anything broken.
    """
    try:
        decoded = _whole(data, name)
    except BROKEN as error:
        if strict:
            raise _refusal(data, name, error) from error
        decoded = _piecewise(data, name, log)
    if not decoded.events:
        raise TraceError(f"`{name}`: no events", hint="was the profiler active in its window?")
    return decoded


def _whole(data: bytes, name: str) -> Decoded:
    if not data.isascii():
        data.decode("utf-8")
    if data.lstrip()[:1] == b"[":
        return Decoded({}, decode_events(data), complete=True)
    top = decode_top(data)
    events = top.pop("traceEvents", None)
    if events is None or bytes(events)[:1] != b"[":
        raise _no_trace(name)
    header = {key: decode_any(raw) for key, raw in top.items()}
    return Decoded(header, decode_events(events), complete=True)


def _piecewise(data: bytes, name: str, log: IssueLog) -> Decoded:
    begin = find_events(data)
    if begin is None:
        if _is_json(data):
            raise _no_trace(name)
        raise TraceError(f"`{name}` is not JSON", hint="give Chrome trace JSON, plain or gzip")
    pieces = read_piecewise(data, begin, log)
    header = header_around(data, begin, pieces, log)
    if not header.closed:
        log.at(
            "truncated",
            byte_offset=len(data),
            excerpt=data[-EXCERPT_BYTES:].decode("utf-8", "replace"),
            action=f"kept the {len(pieces.events)} whole events",
        )
    if not log.counts:  # every event and key is whole: commas are missing, or too many
        log.count("stray_comma")
    return Decoded(header.keys, pieces.events, complete=header.closed)


def _no_trace(name: str) -> TraceError:
    return TraceError(
        f"`{name}`: no traceEvents: not a Chrome trace",
        hint="export one with torch.profiler: prof.export_chrome_trace(path)",
    )


def _is_json(data: bytes) -> bool:
    try:
        decode_any(data)
    except BROKEN:
        return False
    return True


def _refusal(data: bytes, name: str, error: Exception) -> TraceError:
    """Where strict reading stops, and why, in one line."""
    hint = "without --strict the file is repaired as far as possible and every repair is counted"
    fault = _first_fault(data)
    if fault is None:
        return TraceError(f"`{name}`: {error}", hint=hint)
    offset, cause = fault
    begin = find_events(data)
    if offset < len(data):
        return TraceError(f"`{name}` is not JSON: {cause} at {_place(data, offset)}", hint=hint)
    if begin is None:
        return TraceError(f"`{name}` is not JSON, or ends before its events", hint=hint)
    whole = len(read_piecewise(data, begin, IssueLog()).events)
    return TraceError(
        f"`{name}` is truncated at {_place(data, offset)}, after {whole} whole events", hint=hint
    )


def _place(data: bytes, offset: int) -> str:
    """Line and column (in characters, from 1), and the byte (from 0)."""
    line = data.count(b"\n", 0, offset) + 1
    line_begins = data.rfind(b"\n", 0, offset) + 1
    column = len(data[line_begins:offset].decode("utf-8", "replace")) + 1
    return f"line {line}, column {column}, byte {offset}"


def _first_fault(data: bytes) -> tuple[int, str] | None:
    """Offset of the byte at which a strict decoder stops, and the cause; None for nowhere.

    Where the data end early, the offset is that behind the last byte.
    """
    try:
        data.decode("utf-8")
        decode_any(data)
    except UnicodeDecodeError as error:
        is_cut = error.end == len(data) and error.reason == "unexpected end of data"
        return len(data) if is_cut else error.start, "not UTF-8"
    except (msgspec.ValidationError, RecursionError):
        return None
    except msgspec.DecodeError as error:
        return _fault(data, str(error).removeprefix("JSON is malformed: "))
    return None


def _fault(data: bytes, message: str) -> tuple[int, str]:
    cause, found, tail = message.partition(" (byte ")
    if not found:
        half = lone_surrogate(data)
        return (half, "half a surrogate pair") if half >= 0 else (len(data), cause)
    offset = int(tail.rstrip(")"))
    if "escape" in cause:
        return data.rfind(b"\\", 0, offset), "invalid escape"
    word = _WORD.match(data, offset)
    return offset, f"`{word[0].decode('utf-8', 'replace')}`" if word else cause
