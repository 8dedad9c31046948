"""Read a broken list of events: whole stretches fast, and the broken ones event by event."""

import re
from typing import NamedTuple

import msgspec

from ingest.issues import IssueLog
from ingest.readers.events import BROKEN, Event, decode_any, decode_event, decode_events, decode_top
from ingest.readers.mend import EXCERPT_BYTES, Piece, mend, string_end

_STRETCH_BYTES = 1 << 18
_LONGEST_EVENT_BYTES = 1 << 20
_EVENTS_INSIDE = 4
"""Arguments may hold objects that look like events, but not many."""

_LIST_BEGINS = re.compile(rb'"traceEvents"\s*:\s*\[')
_LIST_ENDS = re.compile(rb'\](?=\s*(?:\}|,\s*["}]|\Z))')
_EVENT_BEGINS = re.compile(rb'[,\n]\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|args)"\s*:)')
_KINETO_EVENT = re.compile(rb'\{\s*"ph"\s*:')
_SEPARATORS = re.compile(rb"[\s,]*")
_TOKEN = re.compile(rb'["{}\[\]]')
_TOKEN_OR_COMMA = re.compile(rb'["{}\[\],]')


class Pieces(NamedTuple):
    """What a broken list of events holds."""

    events: list[Event]
    end: int
    """Offset behind the list; of the first event that does not end where it is not closed."""
    closed: bool


def find_events(data: bytes) -> int | None:
    """Where the events begin: behind `"traceEvents": [`, or behind the bracket of a bare list."""
    stripped = data.lstrip()
    if stripped.startswith(b"["):
        return len(data) - len(stripped) + 1
    key = _LIST_BEGINS.search(data)
    return key.end() if key else None


def read_piecewise(data: bytes, begin: int, log: IssueLog) -> Pieces:
    """Decode all events from `begin` on, mending what is broken; every repair is counted."""
    events: list[Event] = []
    position, goes_on = begin, True
    while goes_on:
        border = _EVENT_BEGINS.search(data, position + _STRETCH_BYTES)
        stretch = _stretch(data[position : border.start()]) if border else None
        if border and stretch is not None:
            events += stretch
            position = border.end()
        else:
            until = border.end() if border else len(data)
            position, goes_on = _one_by_one(data, position, until, events, log)
    closing = _behind_separators(data, position)
    closed = _list_ends_at(data, closing)
    if closed and b"," in data[position:closing]:
        log.at(
            "trailing_comma",
            byte_offset=closing,
            excerpt=data[max(closing - EXCERPT_BYTES, 0) : closing + 1].decode("utf-8", "replace"),
            action="left out the comma",
        )
    return Pieces(events, closing + 1 if closed else position, closed=closed)


def _stretch(text: bytes) -> list[Event] | None:
    """Events of a stretch that is whole; None where anything in it is broken."""
    try:
        text.decode("utf-8")
        return decode_events(b"[" + text.strip(b", \t\r\n") + b"]")
    except BROKEN:
        return None


def _one_by_one(
    data: bytes, position: int, until: int, events: list[Event], log: IssueLog
) -> tuple[int, bool]:
    """Decode the events that begin before `until`; the place behind, and whether more follow.

    None follow where the list is closed, and where an event does not end.
    """
    while (piece := _next_piece(data, position)) is not None:
        if piece.offset >= until:
            return piece.offset, True
        if piece.end < 0:
            return piece.offset, False
        position = piece.end
        event = _decode(piece, log)
        if event is not None:
            events.append(event)
        elif swallowed := _EVENT_BEGINS.search(data, piece.offset + 1, piece.end):
            position = swallowed.end()
    return position, False


def _behind_separators(data: bytes, position: int) -> int:
    blank = _SEPARATORS.match(data, position)
    return blank.end() if blank else position


def _list_ends_at(data: bytes, position: int) -> bool:
    """A bracket closes here that no event follows: those inside damaged events do not count."""
    return (
        _LIST_ENDS.match(data, position) is not None
        and _KINETO_EVENT.search(data, position) is None
    )


def _next_piece(data: bytes, position: int) -> Piece | None:
    """The next event, told by balanced braces outside strings; None where the list ends.

    What is no object ends where the next one begins, and so does an event that does not close;
    the last of the file may have no end (-1).
    """
    opening = _behind_separators(data, position)
    if opening == len(data) or _list_ends_at(data, opening):
        return None
    if data[opening : opening + 1] == b"{":
        end = _balanced(data, opening)
        following = _EVENT_BEGINS.search(data, opening + 1) if end < 0 else None
        end = following.end() if following else end
    else:
        end = _junk_end(data, opening)
    body = data[opening : end if end >= 0 else len(data)]
    return Piece(opening, end, body.rstrip(b", \t\r\n"))


def _junk_end(data: bytes, position: int) -> int:
    """Where the next event begins or the list ends; -1 where neither does."""
    following = _EVENT_BEGINS.search(data, position)
    closing = _LIST_ENDS.search(data, position, following.start() if following else len(data))
    if closing and _list_ends_at(data, closing.start()):
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
        following = _EVENT_BEGINS.search(data, position, opening + _LONGEST_EVENT_BYTES)
        if following is None:
            return min(len(data), opening + _LONGEST_EVENT_BYTES)
        position = following.end()
    return position


def _decode(piece: Piece, log: IssueLog) -> Event | None:
    """Decode one event, mending it where needed; None (and counted) when nothing helps."""
    try:
        return _strictly(piece.body)
    except BROKEN:
        pass
    repairs = IssueLog()
    try:
        event = _strictly(mend(piece, repairs))
    except BROKEN as error:
        log.at(
            "event_unreadable",
            byte_offset=piece.offset,
            excerpt=piece.excerpt,
            action=f"left out: {error}",
        )
        return None
    log.take(repairs)
    return event


def _strictly(body: bytes) -> Event:
    """Decode one event; the arguments, which stay text, are checked to be UTF-8 as well."""
    body.decode("utf-8")
    return decode_event(body)


class Header(NamedTuple):
    """Top-level keys around the list of events."""

    keys: dict[str, object]
    closed: bool
    """The file ends where its outermost bracket does."""


def header_around(data: bytes, begin: int, pieces: Pieces, log: IssueLog) -> Header:
    """Top-level keys, mended where needed; what cannot be read is counted."""
    head = data[:begin]
    if not head.lstrip().startswith(b"{"):
        return Header({}, closed=pieces.closed)
    tail, closed = _whole_keys(data[pieces.end :]) if pieces.closed else (b"", False)
    text = head + b"]" + tail + b"}"
    found = _top(text)
    if found is None:
        found = _top(mend(Piece(0, len(text), text), log))
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


def _whole_keys(tail: bytes) -> tuple[bytes, bool]:
    """The text behind the list up to its last whole key, and whether the outermost brace closes."""
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
            return tail[: token.start()], True
        else:
            depth -= 1
    return tail[:last], False
