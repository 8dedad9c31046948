"""Tables of distinct texts: what the compiled passes number, and what those numbers mean."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ingest.lexicon.lexer import SLACK_BYTES, intern
from ingest.lexicon.scans import intern_rows, rehash

Int64 = NDArray[np.int64]

_FIRST_TEXTS = 1 << 10
_FIRST_BYTES = 1 << 16


class TextTable:
    """Distinct byte strings, numbered from 0 in the order in which they came.

    Compiled code adds to it (`intern`); where it has no room, `grow` makes some.
    """

    def __init__(self) -> None:
        self._count = np.zeros(1, np.int64)
        self._hashes = np.zeros(_FIRST_TEXTS, np.uint64)
        self._starts = np.zeros(_FIRST_TEXTS + 1, np.int64)
        self._slots = np.zeros(_FIRST_TEXTS * 2, np.int64)
        self._arena = np.zeros(_FIRST_BYTES + SLACK_BYTES, np.uint8)

    def __len__(self) -> int:
        return int(self._count[0])

    def __getitem__(self, number: int) -> bytes:
        return self._arena[self._starts[number] : self._starts[number + 1]].tobytes()

    def since(self, first: int) -> Iterator[bytes]:
        """Texts from a number on."""
        return (self[number] for number in range(first, len(self)))

    @property
    def row(self) -> list[int]:
        """Addresses and limits as `intern` wants them."""
        arrays = (self._count, self._slots, self._hashes, self._starts, self._arena)
        limits = [len(self._slots) - 1, len(self._hashes), len(self._arena) - SLACK_BYTES]
        return [array.ctypes.data for array in arrays] + limits

    def grow(self, longest: int) -> None:
        """Make room for at least as much again, and for one text of `longest` bytes."""
        count = len(self)
        if count * 2 > len(self._hashes):
            self._hashes = _longer(self._hashes, 2 * len(self._hashes))
            self._starts = _longer(self._starts, 2 * len(self._starts))
            self._slots = np.zeros(2 * len(self._slots), np.int64)
            rehash(self._hashes.ctypes.data, count, self._slots.ctypes.data, len(self._slots) - 1)
        used = int(self._starts[count])
        if 2 * (used + longest) > len(self._arena) - SLACK_BYTES:
            self._arena = _longer(self._arena, 2 * (used + longest) + len(self._arena))

    def add(self, text: bytes) -> int:
        """Number of one text."""
        scratch = np.zeros(len(text) + SLACK_BYTES, np.uint8)
        scratch[: len(text)] = np.frombuffer(text, np.uint8)
        while (number := intern(scratch.ctypes.data, len(text), *self.row)) < 0:
            self.grow(len(text))
        return int(number)


def _longer(array: NDArray, size: int) -> NDArray:  # type: ignore[type-arg]  # any type of element
    longer = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer


class Renumber:
    """Numbers of one table as numbers of another, kept up as the first grows."""

    def __init__(self, table: TextTable, target: Callable[[bytes], int]) -> None:
        self._table = table
        self._target = target
        self._map = np.zeros(0, np.int64)

    def __call__(self, numbers: Int64) -> Int64:
        """Translate; -1 stays -1. What it answers shares nothing with the numbers given."""
        known = len(self._map)
        if known < len(self._table):
            fresh = [self._target(text) for text in self._table.since(known)]
            self._map = np.concatenate([self._map, np.array(fresh, np.int64)])
        if not len(self._map):
            return numbers.copy()
        return np.where(numbers >= 0, self._map[numbers], -1)


class RowTable:
    """Distinct rows of fields, each field a shape with its numbers."""

    def __init__(self, fields: int) -> None:
        self._fields = fields
        self._table = TextTable()

    def __len__(self) -> int:
        return len(self._table)

    def number(self, parts: Int64, first: Int64, count: Int64, numbers: Int64) -> Int64:
        """Number each row; arrays are (fields, rows)."""
        out = np.empty(parts.shape[1], np.int64)
        longest = int(count.sum(axis=0).max(initial=0)) * 8 + 8 * self._fields
        scratch = np.zeros(longest + SLACK_BYTES, np.uint8)
        done = 0
        while True:
            row = np.array(self._table.row, np.int64)
            done += intern_rows(
                parts[:, done:], first[:, done:], count[:, done:], numbers, scratch.ctypes.data,
                row, out[done:],
            )  # fmt: skip
            if done == len(out):
                return out
            self._table.grow(longest)

    def words(self, number: int) -> Int64:
        """What one row is made of: text number, then its numbers, field after field."""
        return np.frombuffer(self._table[number], np.int64)
