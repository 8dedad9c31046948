"""One piece of the list of events -> shapes, names and numbers; broken events are mended."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.issues import IssueLog
from ingest.lexicon.decoding import holds_event
from ingest.lexicon.distinct import Lexicon
from ingest.lexicon.lexer import CLASSES, SLACK_BYTES, Stop, lex
from ingest.lexicon.scans import take_ragged
from ingest.lexicon.tables import Renumber, TextTable
from ingest.readers.mend import EXCERPT_BYTES
from ingest.readers.pieces import Piece
from ingest.readers.repair import (
    Broken,
    Span,
    behind_separators,
    event_inside,
    list_ends_at,
    mended,
    next_list,
    span_of_event,
    unreadable,
)

Int64 = NDArray[np.int64]

_BYTES_PER_EVENT = 48
_BYTES_PER_NUMBER = 6
_FEWEST = 64
_WINDOW = 1 << 16
"""Bytes that the compiled pass is given at a time once something was broken: where an event does
not close, it goes on to the end of them."""
_DEEPEST = 20
"""Broken events within broken events that are searched."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Events as numbers; row r has `numbers[first[r]:first[r + 1]]`."""

    offset: Int64
    """Of the event in the (decompressed) file."""
    shape: Int64
    name: Int64
    """-1: no name, or one that is no text."""
    args: Int64
    """-1: no arguments, or no object."""
    shape_first: Int64
    shape_numbers: Int64
    args_first: Int64
    args_numbers: Int64

    def __len__(self) -> int:
        return len(self.shape)


class Lexed(NamedTuple):
    """What one piece holds."""

    batches: list[Batch]
    left: bytes
    """What was not read: an event that does not end here, or all behind the list."""
    list_ended: bool
    log: IssueLog


class Lexer:
    """Reads pieces, one at a time; its tables grow with what it has seen."""

    def __init__(self, lexicon: Lexicon, *, mends: bool = True, depth: int = 0) -> None:
        self._mends = mends
        self._depth = depth
        self._lexicon = lexicon
        self._tables = (TextTable(), TextTable(), TextTable())
        distinct = (lexicon.shapes, lexicon.names, lexicon.args)
        self._global = [
            Renumber(table, texts.add) for table, texts in zip(self._tables, distinct, strict=True)
        ]
        self._room = 0
        self._numbers = 0
        self._make_room(1 << 12, 1 << 10)

    def _make_room(self, size: int, numbers: int) -> None:
        """Columns for the events of a piece of `size` bytes, and `numbers` numbers of each kind."""
        if size > self._room:
            self._room = size
            self._most = size // _BYTES_PER_EVENT + _FEWEST
            self._spans = np.empty((self._most, 2), np.int64)
            self._codes = np.empty((3, self._most), np.int64)
            self._ends = np.zeros((2, self._most + 1), np.int64)
            self._scratch = np.empty((2, size + 2 * SLACK_BYTES), np.uint8)
        if numbers > self._numbers:
            self._numbers = numbers
            self._found = np.empty((2, numbers), np.int64)

    def read(self, piece: Piece, *, is_last: bool) -> Lexed:
        """All events of a piece.

        Args:
            piece: begins with an event, or with the end of the list.
            is_last: the file ends with it, so nothing that is open can be closed further on.
        """
        self._make_room(piece.size, piece.size // _BYTES_PER_NUMBER + _FEWEST)
        log = IssueLog()
        batches: list[Batch] = []
        patches: list[Broken] = []
        place = _Place(at=0)
        text = b""
        window = piece.size
        while not place.stops:
            end = min(place.at + window, piece.size)
            found, stop, place = self._pass(piece, place, end)
            if end < piece.size and stop in {Stop.BORDER, Stop.INSIDE}:
                window = _WINDOW if found is not None else 4 * window
            if found is not None:
                batches += self._judged(found, piece, patches, log)
            if end < piece.size and (
                stop == Stop.BORDER
                or (stop == Stop.INSIDE and (found or not holds_event(text[place.at : end])))
            ):
                continue
            if stop == Stop.BORDER or (stop == Stop.INSIDE and not is_last and end == piece.size):
                break
            if stop != Stop.FULL:
                window = _WINDOW
                text = text or bytes(piece.data[: piece.size])
                target = patches if self._mends else None
                place = _around(Whole(piece.offset, text), place, target, log)
        if patches:
            batches.append(self._patched(patches, log))
        if log.counts and batches:
            batches = [_in_order(batches)]
        return Lexed(batches, bytes(piece.data[place.at : piece.size]), place.list_ended, log)

    def _pass(self, piece: Piece, place: "_Place", end: int) -> tuple[Batch | None, Stop, "_Place"]:
        """One run of the compiled pass from a place on, with the tables that there are."""
        address = np.frombuffer(piece.data, np.uint8).ctypes.data
        at = place.at
        columns = np.array(
            [
                self._spans.ctypes.data,
                *(row.ctypes.data for row in self._codes),
                *(row.ctypes.data for row in self._ends),
                *(row.ctypes.data for row in self._found),
            ],
            np.int64,
        )
        room = 8 * self._numbers
        progress = np.zeros(4, np.int64)
        lex(
            address + at, address + end, place.after_comma, CLASSES.ctypes.data,
            self._scratch[0].ctypes.data, self._scratch[1].ctypes.data,
            np.array([table.row for table in self._tables], np.int64),
            columns, self._most, columns[6] + room, columns[7] + room, progress,
        )  # fmt: skip
        reached, n, status, after_comma = progress.tolist()
        if status == Stop.FULL and n == 0:
            for table in self._tables:
                table.grow(piece.size)
            self._make_room(0, 2 * self._numbers)
        reached_place = _Place(at=at + reached, after_comma=bool(after_comma))
        return self._taken(n, piece.offset + at), Stop(status), reached_place

    def _taken(self, n: int, offset: int) -> Batch | None:
        if not n:
            return None
        with self._lexicon.lock:
            shape, name, args = (
                number(row[:n]) for number, row in zip(self._global, self._codes, strict=True)
            )
        first = self._ends[:, : n + 1].copy()
        return Batch(
            self._spans[:n, 0] + offset,
            shape,
            name,
            args,
            first[0],
            self._found[0, : first[0, n]].copy(),
            first[1],
            self._found[1, : first[1, n]].copy(),
        )

    def _judged(
        self, batch: Batch, piece: Piece, patches: list[Broken], log: IssueLog
    ) -> list[Batch]:
        """The events whose text is JSON; the others are mended, or searched for further events."""
        lexicon = self._lexicon
        legal = lexicon.shapes.legal(batch.shape) & lexicon.names.legal(batch.name)
        legal &= lexicon.args.legal(batch.args)
        if legal.all():
            return [batch]
        batches = [_rows(batch, np.flatnonzero(legal))]
        ends = self._spans[: len(batch), 1] - self._spans[: len(batch), 0] + batch.offset
        for row in np.flatnonzero(~legal).tolist():
            begin, end = int(batch.offset[row]), int(ends[row])
            body = bytes(piece.data[begin - piece.offset : end - piece.offset])
            patch = mended(body, begin, log) if self._mends else None
            if patch is not None:
                patches.append(patch)
            elif not self._mends:
                unreadable(body, begin, log)
            elif (inside := event_inside(body, Span(0, len(body), len(body), False))) >= 0:  # noqa: FBT003
                batches += self._swallowed(body[inside:], begin + inside, log)
        return batches

    def _swallowed(self, text: bytes, offset: int, log: IssueLog) -> list[Batch]:
        """Events within something that could not be read."""
        if self._depth == _DEEPEST:
            return []
        inner = Lexer(self._lexicon, mends=True, depth=self._depth + 1)
        found = inner.read(
            Piece(offset, bytearray(text) + bytes(SLACK_BYTES), len(text)), is_last=True
        )
        log.take(found.log)
        return found.batches

    def _patched(self, patches: Sequence[Broken], log: IssueLog) -> Batch:
        """Mended events, read like all others."""
        text = b",".join(patch.body for patch in patches)
        piece = Piece(0, bytearray(text) + bytes(SLACK_BYTES), len(text))
        lexed = Lexer(self._lexicon, mends=False).read(piece, is_last=True)
        log.take(lexed.log)
        batch = _joined(lexed.batches)
        begins = np.cumsum([0, *(len(patch.body) + 1 for patch in patches)])
        offsets = np.array([patch.offset for patch in patches], np.int64)
        return replace(batch, offset=offsets[np.searchsorted(begins, batch.offset, "right") - 1])


class _Place(NamedTuple):
    """Where the reading of a piece is."""

    at: int
    after_comma: bool = True
    stops: bool = False
    list_ended: bool = False


class Whole(NamedTuple):
    """The text of a piece, copied once where something in it is broken."""

    offset: int
    data: bytes


def _around(piece: Whole, place: _Place, patches: list[Broken] | None, log: IssueLog) -> _Place:
    """Get over what is no event in JSON: commas, a broken event, the end of the list."""
    data = piece.data
    begin = behind_separators(data, place.at)
    commas = b"," in data[place.at : begin]
    if begin == len(data):
        return _Place(begin, stops=True)
    if list_ends_at(data, begin):
        if commas or (place.after_comma and begin > 0):
            _trailing_comma(data, begin, piece.offset, log)
        return _Place(begin, stops=True, list_ended=True)
    if data[begin : begin + 1] == b"{" and (commas or not place.after_comma):
        log.at(
            "stray_comma",
            byte_offset=piece.offset + (place.at if commas else begin),
            excerpt=data[max(begin - EXCERPT_BYTES, 0) : begin + 1].decode("utf-8", "replace"),
            action="read as one comma",
        )
        return _Place(begin)
    if (following := next_list(data, begin)) >= 0:
        log.at(
            "several_lists",
            byte_offset=piece.offset + begin,
            excerpt=data[begin:following].decode("utf-8", "replace"),
            action="went on with the events of the next list",
        )
        return _Place(following)
    return _behind_broken(piece, begin, patches, log)


def _behind_broken(piece: Whole, begin: int, patches: list[Broken] | None, log: IssueLog) -> _Place:
    """Mend what begins here and is no event in JSON, or leave it out."""
    data = piece.data
    span = span_of_event(data, begin)
    if span.end < 0:
        return _Place(begin, stops=True)
    body = data[begin : span.text_end]
    if patches is None:
        unreadable(body, piece.offset + begin, log)
    elif (patch := mended(body, piece.offset + begin, log)) is not None:
        patches.append(patch)
    elif (inside := event_inside(data, span)) >= 0:
        return _Place(inside)
    return _Place(span.end, after_comma=span.after_comma)


def _trailing_comma(data: bytes, at: int, offset: int, log: IssueLog) -> None:
    log.at(
        "trailing_comma",
        byte_offset=offset + at,
        excerpt=data[max(at - EXCERPT_BYTES, 0) : at + 1].decode("utf-8", "replace"),
        action="left out the comma",
    )


def _rows(batch: Batch, rows: Int64) -> Batch:
    """Some rows of a batch, in the given order."""
    shape_first, shape_numbers = ragged(batch.shape_first, batch.shape_numbers, rows)
    args_first, args_numbers = ragged(batch.args_first, batch.args_numbers, rows)
    return Batch(
        batch.offset[rows], batch.shape[rows], batch.name[rows], batch.args[rows],
        shape_first, shape_numbers, args_first, args_numbers,
    )  # fmt: skip


def ragged(first: Int64, numbers: Int64, rows: Int64) -> tuple[Int64, Int64]:
    """Ends and numbers of some rows of a ragged column."""
    ends = np.concatenate([[0], np.cumsum(first[rows + 1] - first[rows])])
    taken = np.empty(int(ends[-1]), np.int64)
    take_ragged(first, numbers, rows, ends, taken)
    return ends, taken


def _joined(batches: Sequence[Batch]) -> Batch:
    """Batches one behind the other."""
    shape_first, shape_numbers = _ends([(one.shape_first, one.shape_numbers) for one in batches])
    args_first, args_numbers = _ends([(one.args_first, one.args_numbers) for one in batches])
    return Batch(
        np.concatenate([one.offset for one in batches]),
        np.concatenate([one.shape for one in batches]),
        np.concatenate([one.name for one in batches]),
        np.concatenate([one.args for one in batches]),
        shape_first, shape_numbers, args_first, args_numbers,
    )  # fmt: skip


def _ends(columns: Sequence[tuple[Int64, Int64]]) -> tuple[Int64, Int64]:
    counts = np.concatenate([np.diff(first) for first, _ in columns])
    return np.concatenate([[0], np.cumsum(counts)]), np.concatenate([one for _, one in columns])


def _in_order(batches: Sequence[Batch]) -> Batch:
    """All events of a piece as they stand in it."""
    batch = _joined(batches)
    return _rows(batch, np.argsort(batch.offset, kind="stable"))
