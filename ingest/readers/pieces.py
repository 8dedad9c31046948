"""A stream of bytes -> the head, pieces that end between two events, and what follows the list."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ingest.lexicon.lexer import SLACK_BYTES
from ingest.readers.repair import find_events
from ingest.readers.source import Block

_BORDER = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|args)"\s*:)')
_ANY_BORDER = re.compile(rb"\}\s*,\s*(?=\{)")
_WINDOWS = (1 << 12, 1 << 16, 1 << 20)
_LONGEST_KEY = 1 << 12
"""Of the list, with white space."""


class Piece(NamedTuple):
    """Bytes of the list of events, from the beginning of one event to that of another."""

    offset: int
    """Of its first byte in the (decompressed) file."""
    data: bytearray
    """With `SLACK_BYTES` zeros behind the end."""
    size: int


class Head(NamedTuple):
    """What stands before the events; `None` in place of the text where no list of events begins."""

    text: bytes | None
    rest: bytes


def read_head(blocks: Iterator[Block]) -> Head:
    """Everything up to the bracket behind which the events begin."""
    data = bytearray()
    for block in blocks:
        looked_at = max(len(data) - _LONGEST_KEY, 0)
        data += block
        begin = find_events(data, looked_at)
        if begin is not None:
            return Head(bytes(data[:begin]), bytes(data[begin:]))
    return Head(None, bytes(data))


class Buffers:
    """Buffers of pieces, to be used again: new memory would have to be cleared each time."""

    def __init__(self) -> None:
        self._free: list[bytearray] = []

    def take(self, size: int) -> bytearray:
        """One of at least this size; what it holds does not matter."""
        buffer = self._free.pop() if self._free else bytearray()
        if len(buffer) < size:
            buffer += bytes(size - len(buffer))
        return buffer

    def give(self, piece: Piece) -> None:
        """The piece is not needed any more."""
        self._free.append(piece.data)


def cut(
    rest: bytes, offset: int, blocks: Iterator[Block], buffers: Buffers
) -> Iterator[tuple[Piece, bool]]:
    """Pieces of the list and of all that follows, and whether each is the last.

    Only the last may end anywhere.

    A border is a comma between two objects of which the second begins like an event. It may lie
    inside the arguments of one; whoever reads the piece finds out and joins it with the next.
    """
    carry = bytearray(rest)
    for block in blocks:
        size = len(carry) + len(block)
        data = buffers.take(size + SLACK_BYTES)
        data[: len(carry)] = carry
        data[len(carry) : size] = block
        border = _last_border(data, size)
        carry = data[border or 0 : size]
        if border is None:
            continue
        data[border:] = bytes(SLACK_BYTES)
        yield Piece(offset, data, border), False
        offset += border
    yield Piece(offset, carry + bytes(SLACK_BYTES), len(carry)), True


def _last_border(data: bytearray, size: int) -> int | None:
    """The last border; where events begin with other keys than known, between any two objects."""
    for border in (_BORDER, _ANY_BORDER):
        for window in _WINDOWS:
            last = None
            for found in border.finditer(data, max(size - window, 0), size):
                last = found.end()
            if last is not None:
                return last
            if window >= size:
                break
    return None


def joined(left: bytearray, piece: Piece) -> Piece:
    """A piece with what its predecessor left over in front."""
    data = left + piece.data
    return Piece(piece.offset - len(left), data, len(left) + piece.size)
