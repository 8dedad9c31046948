"""Split a broken trace into events and mend each one by itself, counting every repair."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from ingest.issues import IssueLog
from ingest.readers.events import Event, decode_any, decode_event

_TOKEN = re.compile(rb'["{}\[\]]')
_STRING_END = re.compile(rb'["\\]')
_VALUE_FOLLOWS = re.compile(rb"\s*(?:[,}\]:]|$)")
_LEGAL_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_BARE_WORD = re.compile(
    rb"(?<=[:,\[])(\s*)(?:-?(?:inf|infinity)|[-+]?nan|N/A|None|undefined|True|False)(?=\s*[,}\]])",
    re.IGNORECASE,
)
_TRAILING_COMMA = re.compile(rb",(\s*[}\]])")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\n\r\t]")


@dataclass(frozen=True, slots=True)
class Piece:
    """The bytes of one event and where they begin in the (decompressed) file."""

    offset: int
    body: bytes


@dataclass(slots=True)
class Split:
    """Where the list of events lies, and whether it ends."""

    begin: int
    end: int
    complete: bool


def find_events(data: bytes) -> Split | None:
    """The extent of the list of events: after `"traceEvents"`, or of a list at the root."""
    stripped = data.lstrip()
    if stripped.startswith(b"["):
        begin = len(data) - len(stripped) + 1
    else:
        key = re.search(rb'"traceEvents"\s*:\s*\[', data)
        if key is None:
            return None
        begin = key.end()
    return Split(begin=begin, end=len(data), complete=False)


def split_events(data: bytes, split: Split) -> Iterator[Piece]:
    """Yield the events of the list, told by balanced braces outside strings.

    A quote that no `,`, `:`, `}` or `]` follows is taken for text. An event that never closes
    ends at the next line that begins an event, if there is one. `split` is updated with the end.
    """
    position = split.begin
    while True:
        opening = _next_event(data, position)
        if opening < 0:
            closing = data.find(b"]", position)
            split.end = closing + 1 if closing >= 0 else len(data)
            split.complete = closing >= 0
            return
        end = _balanced(data, opening)
        if end < 0:
            recovered = _resume(data, opening)
            if recovered < 0:
                split.end, split.complete = len(data), False
                yield Piece(opening, data[opening:])
                return
            yield Piece(opening, data[opening:recovered])
            position = recovered
            continue
        yield Piece(opening, data[opening:end])
        position = end


def _next_event(data: bytes, position: int) -> int:
    """Start of the next event, or -1 when the list closes (or the data end) before one."""
    opening = data.find(b"{", position)
    closing = data.find(b"]", position, opening if opening >= 0 else len(data))
    return -1 if closing >= 0 else opening


_EVENT_START = re.compile(rb'[,\n]\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|args)"\s*:)')
_LONGEST_EVENT = 1 << 20


def _resume(data: bytes, opening: int) -> int:
    following = _EVENT_START.search(data, opening + 1)
    return following.end() if following else -1


def _balanced(data: bytes, opening: int) -> int:
    """End of the object that opens here; -1 when it does not close or swallows the next event."""
    depth = 0
    position = opening
    limit = min(len(data), opening + _LONGEST_EVENT)
    while True:
        token = _TOKEN.search(data, position, limit)
        if token is None:
            return -1
        mark = data[token.start()]
        position = token.end()
        if mark == ord('"'):
            position = _string_end(data, position, limit)
            if position < 0:
                return -1
        elif mark in b"{[":
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                return position


def _string_end(data: bytes, position: int, limit: int) -> int:
    while True:
        mark = _STRING_END.search(data, position, limit)
        if mark is None:
            return -1
        if data[mark.start()] == ord("\\"):
            position = mark.end() + 1
            if data[mark.end() : position] == b'"' and _closes(data, position):
                return position
            continue
        if _VALUE_FOLLOWS.match(data, mark.end()):
            return mark.end()
        position = mark.end()


def _closes(data: bytes, position: int) -> bool:
    """A backslash stood before this quote, yet the next key or the end follows: a Windows path."""
    return (
        re.match(rb'\s*(?:,\s*"[\w .%()/-]+"\s*:|\}\s*[,\]}])', data[position : position + 80])
        is not None
    )


def decode_piece(piece: Piece, log: IssueLog) -> Event | None:
    """Decode one event, mending it where needed; None (and counted) when nothing helps."""
    try:
        return decode_event(piece.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    body = mend(piece, log)
    try:
        return decode_event(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        log.at(
            "event_unreadable",
            byte_offset=piece.offset,
            excerpt=piece.body[:200].decode("utf-8", "replace"),
            action=f"left out: {error}",
        )
        return None


def mend(piece: Piece, log: IssueLog) -> bytes:
    """Repair strings, bare words and commas; every kind found is counted with its place."""
    body = piece.body
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        body = body.decode("utf-8", "replace").encode()
        _note(log, "not_utf8", piece, "replaced bytes that are not UTF-8")
    parts: list[bytes] = []
    position = 0
    while (quote := body.find(b'"', position)) >= 0:
        parts.append(_mend_outside(body[position:quote], piece, log))
        end = _string_end(body, quote + 1, len(body))
        end = len(body) if end < 0 else end
        parts.append(_mend_string(body[quote + 1 : end - 1], piece, log))
        position = end
    parts.append(_mend_outside(body[position:], piece, log))
    return _bare_words(b"".join(parts), piece, log)


def _bare_words(body: bytes, piece: Piece, log: IssueLog) -> bytes:
    """Bare words touch the quotes of neighbouring strings only through `:` and `,`."""
    mended, words = _BARE_WORD.subn(rb"\1null", body)
    if not words or _decodes(body):
        return body
    for _ in range(words):
        _note(log, "not_finite", piece, "read as null")
    return mended


def _decodes(body: bytes) -> bool:
    try:
        decode_any(body)
    except msgspec.DecodeError:
        return False
    return True


def _mend_outside(body: bytes, piece: Piece, log: IssueLog) -> bytes:
    mended, commas = _TRAILING_COMMA.subn(rb"\1", body)
    if commas:
        _note(log, "trailing_comma", piece, "left out the comma")
    return mended


def _mend_string(inner: bytes, piece: Piece, log: IssueLog) -> bytes:
    if b"\\" in inner and _LEGAL_ESCAPE.sub(b"", inner).count(b"\\"):
        inner = inner.replace(b"\\", b"\\\\")
        _note(log, "bad_escape", piece, "kept the backslashes of the string as they are")
    bare = re.sub(rb"\\.", b"", inner)
    if b'"' in bare:
        inner = re.sub(rb'(\\.)|"', lambda m: m.group(1) or b'\\"', inner)
        _note(log, "unescaped_quote", piece, "kept the quote as text")
    if _CONTROL.search(inner):
        inner = _CONTROL.sub(lambda m: b"\\u%04x" % m.group()[0], inner)
        _note(log, "control_character", piece, "kept, escaped")
    return b'"' + inner + b'"'


def _note(log: IssueLog, name: str, piece: Piece, action: str) -> None:
    log.at(
        name,
        byte_offset=piece.offset,
        excerpt=piece.body[:200].decode("utf-8", "replace"),
        action=action,
    )


def header_without_events(data: bytes, split: Split) -> dict[str, object]:
    """Top-level keys around the list of events, as far as they can be read."""
    head = data[: split.begin].rstrip()
    tail = data[split.end :] if split.complete else b"}"
    if not head.lstrip().startswith(b"{"):
        return {}
    joined = head + b"]" + tail
    for candidate in (joined, head + b"]}", _TRAILING_COMMA.sub(rb"\1", joined)):
        try:
            header = decode_any(candidate)
        except msgspec.DecodeError:
            continue
        if isinstance(header, dict):
            header.pop("traceEvents", None)
            return header
    return {}
