"""Read a broken list of events: whole stretches fast, and the broken ones event by event."""

import re
from typing import NamedTuple

import msgspec

from ingest.issues import IssueLog
from ingest.lexicon.decoding import BROKEN, check_json, decode_any, decode_top, holds_event, members
from ingest.readers.faults import first_fault
from ingest.readers.mend import EVENT_BEGINS, EXCERPT_BYTES, Piece, mend, string_end

_LONGEST_EVENT_BYTES = 1 << 20
_EVENTS_INSIDE = 4
"""Arguments may hold objects that look like events, but not many."""

_LIST_BEGINS = re.compile(rb'"traceEvents"\s*:\s*\[')
_LIST_ENDS = re.compile(rb'\](?=\s*(?:\}|,\s*["}]|\Z))')
_EVENT_SIGN = re.compile(rb'"ph"\s*:\s*"')
_SIGN_BYTES = 64
_NEXT_LIST = re.compile(rb"\]\s*,?\s*\[")
_FIRST_EVENT = re.compile(rb'[\[,\n]\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|args)"\s*:)')
_BARE_LIST = re.compile(rb"\s*\[")
_SEPARATORS = re.compile(rb"[\s,]*")
_TOKEN = re.compile(rb'["{}\[\]]')
_TOKEN_OR_COMMA = re.compile(rb'["{}\[\],]')


class Span(NamedTuple):
    """Where something that is no event in JSON begins and ends (-1: nowhere)."""

    begin: int
    end: int
    text_end: int
    """End of its own text, without separators."""
    after_comma: bool
    """The separators behind it are taken."""


class Broken(NamedTuple):
    """An event that was mended."""

    offset: int
    """Of the broken text, in the file."""
    body: bytes
    """One object in JSON."""


def find_events(data: bytes | bytearray, looked_at: int) -> int | None:
    """Where the events begin: behind `"traceEvents": [`, or behind the bracket of a bare list.

    Events before that belong to a list whose beginning is broken.

    Args:
        data: the beginning of a file.
        looked_at: so much of it was looked at before.
    """
    found = _BARE_LIST.match(data) or _LIST_BEGINS.search(data, looked_at)
    if found is None:
        return None
    for earlier in _FIRST_EVENT.finditer(data, 0, found.end()):
        if _EVENT_SIGN.search(data, earlier.end(), found.end()):
            return earlier.end()
    return found.end()


def behind_separators(data: bytes, position: int) -> int:
    """The place behind white space and commas."""
    blank = _SEPARATORS.match(data, position)
    return blank.end() if blank else position


def list_ends_at(data: bytes, position: int) -> bool:
    """A bracket closes here that no event follows: those inside damaged events do not count."""
    return (
        _LIST_ENDS.match(data, position) is not None and _EVENT_SIGN.search(data, position) is None
    )


def holds_events(before: bytes | bytearray, data: bytes | bytearray) -> bool:
    """Something in the data, or across its beginning, looks like part of an event."""
    border = bytes(before[-_SIGN_BYTES:]) + bytes(data[:_SIGN_BYTES])
    return (_EVENT_SIGN.search(data) or _EVENT_SIGN.search(border)) is not None


def next_list(data: bytes, position: int) -> int:
    """Where the events of another list begin, if no event lies between here and there; or -1.

    Such are traces written one behind the other, whole or cut, and a second `traceEvents`.
    """
    if data[position : position + 1] not in {b"]", b"{"}:
        return -1
    if bare := _NEXT_LIST.match(data, position):
        return bare.end()
    sign = _EVENT_SIGN.search(data, position)
    following = _LIST_BEGINS.search(data, position, sign.start() if sign else len(data))
    return following.end() if following else -1


def span_of_event(data: bytes, opening: int) -> Span:
    """What begins here, told by balanced braces outside strings.

    What is no object ends where the next one begins, and so does an event that does not close;
    the last of the data may have no end.
    """
    end, after_comma = -1, False
    if data[opening : opening + 1] == b"{":
        end = _balanced(data, opening)
    if end < 0:
        following = EVENT_BEGINS.search(data, opening + 1)
        if data[opening : opening + 1] != b"{":
            end = _junk_end(data, opening)
            after_comma = following is not None and end == following.end()
        elif following:
            end, after_comma = following.end(), True
    body = data[opening : end if end >= 0 else len(data)]
    return Span(opening, end, opening + len(body.rstrip(b", \t\r\n")), after_comma)


def event_inside(data: bytes, span: Span) -> int:
    """Where another event begins within something that could not be read; -1 for nowhere."""
    found = EVENT_BEGINS.search(data, span.begin + 1, span.end)
    return found.end() if found else -1


def _junk_end(data: bytes, position: int) -> int:
    """Where the next event begins or the list ends; -1 where neither does."""
    following = EVENT_BEGINS.search(data, position)
    closing = _LIST_ENDS.search(data, position, following.start() if following else len(data))
    if closing and list_ends_at(data, closing.start()):
        return closing.start()
    return following.end() if following else -1


def _balanced(data: bytes, opening: int) -> int:
    """End of the object that opens here; -1 when it does not close."""
    depth = 0
    position = opening
    limit = _farthest_end(data, opening)
    while (token := _TOKEN.search(data, position, limit)) is not None:
        position = token.end()
        mark = token.group()
        if mark == b'"':
            position = string_end(data, position, limit)
            if position < 0:
                return -1
        elif mark in b"{[":
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                return position
    return -1


def _farthest_end(data: bytes, opening: int) -> int:
    """An event that reaches beyond what look like the next few has lost a quote or a brace."""
    position = opening + 1
    for _ in range(_EVENTS_INSIDE):
        following = EVENT_BEGINS.search(data, position, opening + _LONGEST_EVENT_BYTES)
        if following is None:
            return min(len(data), opening + _LONGEST_EVENT_BYTES)
        position = following.end()
    return position


def mended(body: bytes, offset: int, log: IssueLog) -> Broken | None:
    """An event as legal JSON without repeated keys; None (and counted) when nothing helps.

    Args:
        body: its text.
        offset: of its first byte in the file.
        log: takes the repairs, each with its place.
    """
    event = _event(body)
    if event is not None:
        if members(body) != members(event):
            log.at(
                "repeated_key",
                byte_offset=offset,
                excerpt=body[:EXCERPT_BYTES].decode("utf-8", "replace"),
                action="kept the last value",
            )
        return Broken(offset, event)
    repairs = IssueLog()
    event = _event(mend(Piece(offset, offset + len(body), body), repairs))
    if event is None:
        unreadable(body, offset, log)
        return None
    log.take(repairs)
    return Broken(offset, event)


def unreadable(body: bytes, offset: int, log: IssueLog) -> None:
    """Count an event that nothing helps."""
    log.at(
        "event_unreadable",
        byte_offset=offset,
        excerpt=body[:EXCERPT_BYTES].decode("utf-8", "replace"),
        action="left out",
    )


def _event(body: bytes) -> bytes | None:
    """An object in JSON with each key once, the last one; values stay as they are written.

    None for what is no JSON, or holds events.
    """
    try:
        body.decode("utf-8")
        check_json(body)
        top = decode_top(body)
    except BROKEN:
        return None
    if "traceEvents" in top or holds_event(body):
        return None
    written = [msgspec.json.encode(key) + b":" + bytes(raw) for key, raw in top.items()]
    return b"{" + b",".join(written) + b"}"


class Header(NamedTuple):
    """Top-level keys around the list of events."""

    keys: dict[str, object]
    closed: bool
    """The file ends where its outermost bracket does."""


def header_around(head: bytes, tail: bytes | None, tail_offset: int, log: IssueLog) -> Header:
    """Top-level keys, mended where needed; what cannot be read is counted.

    Args:
        head: the text before the events, with the bracket of their list.
        tail: the text behind them, from that bracket on; None where the list does not end.
        tail_offset: where that is in the file.
        log: takes the repairs.
    """
    is_object = head.lstrip().startswith(b"{")
    rest, closed = b"", tail is not None
    if tail is not None:
        end = 0
        if is_object and (whole := tail[1:].rstrip()).endswith(b"}") and _top(head + b"]" + whole):
            rest, closed, end = whole[:-1], True, len(whole)
        elif is_object:
            rest, closed, end = _whole_keys(tail[1:])
        if closed and (behind := tail[1 + end :].lstrip()):
            log.at(
                "text_behind_end",
                byte_offset=tail_offset + len(tail) - len(behind),
                excerpt=behind[:EXCERPT_BYTES].decode("utf-8", "replace"),
                action=f"left out {len(behind)} bytes",
            )
    if not is_object:
        return Header({}, closed=closed)
    text = head + b"]" + rest + b"}"
    found = _top(text)
    if found is None:
        fault = first_fault(text)
        offset = fault.offset if fault else 0
        offset += tail_offset - len(head) if offset > len(head) else 0
        found = _top(mend(Piece(offset, offset + len(text), text), log))
    if found is None:
        _count_unreadable(log, text)
        return Header({}, closed=closed)
    keys: dict[str, object] = {}
    for key, raw in found.items():
        try:
            keys[key] = decode_any(raw)
        except BROKEN:
            _count_unreadable(log, bytes(raw))
    keys.pop("traceEvents", None)
    return Header(keys, closed=closed)


def _top(text: bytes) -> dict[str, msgspec.Raw] | None:
    try:
        text.decode("utf-8")
        return decode_top(text)
    except BROKEN:
        return None


def _count_unreadable(log: IssueLog, text: bytes) -> None:
    log.at(
        "header_unreadable",
        byte_offset=None,
        excerpt=text.decode("utf-8", "replace"),
        action="left out",
    )


def _whole_keys(tail: bytes) -> tuple[bytes, bool, int]:
    """The text behind the list up to its last whole key, and the outermost brace.

    Whether that closes, and the place behind it.
    """
    depth, position, last = 0, 0, 0
    while (token := _TOKEN_OR_COMMA.search(tail, position)) is not None:
        position = token.end()
        mark = token.group()
        if mark == b'"':
            position = string_end(tail, position, len(tail))
            if position < 0:
                break
        elif mark in b"{[":
            depth += 1
        elif mark == b",":
            last = token.start() if depth == 0 else last
        elif depth == 0:
            return tail[: token.start()], True, token.end()
        else:
            depth -= 1
    return tail[:last], False, len(tail)
