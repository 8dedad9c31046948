"""Mend the text of one event: strings, bare words, commas; every repair is counted."""

import re
from typing import NamedTuple

from ingest.issues import IssueLog

EVENT_BEGINS = re.compile(rb'[,\n]\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|args)"\s*:)')
_EVENT_IN_KEY = re.compile(rb'\{\s*"(?:ph|name|cat|pid|tid|ts|args)"\s*:')
"""From a bare quote on: what was a key has run into the next event."""
_STRING_STOP = re.compile(rb'["\\]')
_VALUE_FOLLOWS = re.compile(rb"\s*(?:[,}\]:]|$)")
_KEY_OR_END_FOLLOWS = re.compile(rb'\s*(?:,\s*"[\w .%()/-]+"\s*:|\}\s*[,\]}])')
_LEGAL_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_BARE_WORD = re.compile(
    rb"(?<=[:,\[])(\s*)(?:[-+]?(?i:inf|infinity|nan)|N/A|None|undefined|True|False)(?=\s*[,}\]])"
)
_TRAILING_COMMA = re.compile(rb",(\s*[}\]])")
_CONTROL = re.compile(rb"[\x00-\x1f]")
_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
EXCERPT_BYTES = 200
_KEY_BYTES = 16


class Piece(NamedTuple):
    """One event of a broken file: where it begins and ends (-1: nowhere), and its text."""

    offset: int
    end: int
    body: bytes

    @property
    def excerpt(self) -> str:
        """The beginning, for the log."""
        return self.body[:EXCERPT_BYTES].decode("utf-8", "replace")


def string_end(data: bytes, position: int, limit: int) -> int:
    """Behind the quote that closes the string which begins here; -1 when none does.

    A quote that no `,`, `:`, `}` or `]` follows is taken for text. A quote behind a backslash
    closes the string where a key or the end of the event follows: a Windows path.
    """
    while (mark := _STRING_STOP.search(data, position, limit)) is not None:
        position = mark.end()
        if mark.group() == b'"':
            if _VALUE_FOLLOWS.match(data, position):
                return position
        else:
            position += 1
            closes = data[position - 1 : position] == b'"'
            if closes and _KEY_OR_END_FOLLOWS.match(data, position, position + 80):
                return position
    return -1


def mend(piece: Piece, log: IssueLog) -> bytes:
    """The event as legal JSON, as far as the known kinds of damage go.

    Nothing where a string would take in another event: its own end is lost.
    """
    body = piece.body
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        body = body.decode("utf-8", "replace").encode()
        _note(log, "not_utf8", piece, "replaced bytes that are not UTF-8")
    parts: list[bytes] = []
    position = 0
    while (quote := body.find(b'"', position)) >= 0:
        parts.append(_mend_between(body[position:quote], piece, log))
        end = string_end(body, quote + 1, len(body))
        end = len(body) if end < 0 else end
        swallowed = EVENT_BEGINS.search(body, quote + 1, end + _KEY_BYTES)
        if swallowed and swallowed.end() < end:
            return b""
        glued = _EVENT_IN_KEY.search(body, quote + 1, end + _KEY_BYTES)
        if glued and glued.start() < end <= glued.end():
            return b""
        parts.append(_mend_string(body[quote + 1 : end - 1], piece, log))
        position = end
    parts.append(_mend_between(body[position:], piece, log))
    return b"".join(parts)


def lone_surrogate(text: bytes) -> int:
    """Where half a surrogate pair stands alone, which is no character; -1 for nowhere."""
    found = (match.start() for match in _SURROGATE.finditer(text) if match["lone"])
    return next(found, -1)


def _mend_between(text: bytes, piece: Piece, log: IssueLog) -> bytes:
    """What stands between two strings: numbers, words, commas."""
    text, commas = _TRAILING_COMMA.subn(rb"\1", text)
    text, words = _BARE_WORD.subn(rb"\1null", text)
    if commas:
        _note(log, "trailing_comma", piece, "left out the comma")
    for _ in range(words):
        _note(log, "not_finite", piece, "read as null")
    return text


def _mend_string(inner: bytes, piece: Piece, log: IssueLog) -> bytes:
    """One backslash that escapes nothing shows that none in the string does."""
    if b"\\" in _LEGAL_ESCAPE.sub(b"", inner):
        inner = inner.replace(b"\\", b"\\\\")
        _note(log, "bad_escape", piece, "kept the backslashes of the string as they are")
    if b'"' in re.sub(rb"\\.", b"", inner):
        inner = re.sub(rb'(\\.)|"', lambda found: found.group(1) or b'\\"', inner)
        _note(log, "unescaped_quote", piece, "kept the quote as text")
    if lone_surrogate(inner) >= 0:
        inner = _SURROGATE.sub(lambda found: rb"\ufffd" if found["lone"] else found[0], inner)
        _note(log, "not_utf8", piece, "replaced half a surrogate pair")
    if _CONTROL.search(inner):
        inner = _CONTROL.sub(lambda found: b"\\u%04x" % found.group()[0], inner)
        _note(log, "control_character", piece, "kept, escaped")
    return b'"' + inner + b'"'


def _note(log: IssueLog, name: str, piece: Piece, action: str) -> None:
    log.at(name, byte_offset=piece.offset, excerpt=piece.excerpt, action=action)
