"""A trace file -> batches of events, in order and in little memory; then its header."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import NamedTuple

from ingest.errors import TraceError
from ingest.issues import IssueLog
from ingest.lexicon.distinct import Lexicon
from ingest.readers.batches import Batch, Lexed, Lexer
from ingest.readers.faults import first_fault, refusal_of_end, refusal_of_event
from ingest.readers.mend import EXCERPT_BYTES
from ingest.readers.pieces import Buffers, Piece, cut, joined, read_head
from ingest.readers.repair import header_around, holds_events
from ingest.readers.source import Source

_THREADS = 2
_AHEAD = 3
"""Pieces that are read ahead of the one that is taken; each takes some 30 MB."""
_LONGEST_EVENT_BYTES = 1 << 24
"""What does not end within so many bytes is broken."""


class Ending(NamedTuple):
    """What is known when a file is read."""

    header: dict[str, object]
    digest: str
    complete: bool


def read_events(
    source: Source,
    lexicon: Lexicon,
    take: Callable[[Batch], None],
    log: IssueLog,
    *,
    strict: bool,
) -> Ending:
    """Read all events of a file.

    Args:
        source: the file.
        lexicon: the run's.
        take: is given every batch, in the order of the file.
        log: takes what was odd.
        strict: refuse what is no JSON.

    Raises:
        TraceError: empty, not JSON, no trace in it, no events; with `strict` also anything broken.
    """
    name = source.path.name
    digest = hashlib.sha256()
    blocks = source.blocks(log, digest.update)
    head = read_head(blocks)
    if head.text is None:
        raise _no_list(head.rest, name)
    events = _Events(lexicon, take, log)
    pieces = cut(head.rest, len(head.text), blocks, events.buffers)
    with ThreadPoolExecutor(_THREADS + 1) as pool:
        tail = events.read(pieces, pool)
    header = header_around(head.text, tail, events.tail_offset, log)
    if strict:
        _refuse(source, log, events, closed=header.closed)
    if not header.closed:
        log.at(
            "truncated",
            byte_offset=events.size,
            excerpt=events.last_bytes.decode("utf-8", "replace"),
            action=f"kept the {events.n} whole events",
        )
    if not events.n:
        raise TraceError(f"`{name}`: no events", hint="was the profiler active in its window?")
    complete = header.closed and "gzip_damaged" not in log.counts
    return Ending(header.keys, digest.hexdigest(), complete)


class _Events:
    """Reads pieces in threads and hands on what they hold, in order."""

    def __init__(self, lexicon: Lexicon, take: Callable[[Batch], None], log: IssueLog) -> None:
        self._take = take
        self._log = log
        self._lexers: SimpleQueue[Lexer] = SimpleQueue()
        for _ in range(_THREADS):
            self._lexers.put(Lexer(lexicon))
        self.buffers = Buffers()
        self.n = 0
        """Events so far."""
        self.size = 0
        """Bytes so far."""
        self.tail_offset = 0
        """Where the list ends."""
        self.last_bytes = b""

    def read(self, pieces: Iterator[tuple[Piece, bool]], pool: ThreadPoolExecutor) -> bytes | None:
        """Read all pieces; returns the text from the end of the list on, None where it is cut.

        A piece may end inside an event whose arguments look like a border, and a bracket may look
        like the end of the list: what such a piece leaves is read again together with the next.
        """
        ahead: deque[tuple[Piece, bool, Future[Lexed]]] = deque()
        coming = pool.submit(next, pieces, None)
        left = bytearray()
        list_ended = False
        while True:
            while len(ahead) < _AHEAD and (found := coming.result()) is not None:
                ahead.append((*found, pool.submit(self._lex, *found)))
                coming = pool.submit(next, pieces, None)
            piece, is_last, future = ahead.popleft()
            if left and list_ended and not is_last and not holds_events(left, piece.data):
                future.cancel()
                left += piece.data[: piece.size]
                continue
            if left:
                future.cancel()
                piece = joined(left, piece)
                lexed = self._lex(piece, is_last or len(left) > _LONGEST_EVENT_BYTES)
            else:
                lexed = future.result()
            for batch in lexed.batches:
                self.n += len(batch)
                self._take(batch)
            self._log.take(lexed.log)
            left, list_ended = bytearray(lexed.left), lexed.list_ended
            if is_last:
                self.size = piece.offset + piece.size
                self.tail_offset = self.size - len(left)
                self.last_bytes = bytes(piece.data[max(piece.size - EXCERPT_BYTES, 0) : piece.size])
                return bytes(left) if list_ended else None
            self.buffers.give(piece)

    def _lex(self, piece: Piece, is_last: bool) -> Lexed:  # noqa: FBT001  (a pair as it came)
        lexer = self._lexers.get()
        try:
            return lexer.read(piece, is_last=is_last)
        finally:
            self._lexers.put(lexer)


def _no_list(data: bytes, name: str) -> TraceError:
    if first_fault(data) is None:
        return TraceError(
            f"`{name}`: no traceEvents: not a Chrome trace",
            hint="export one with torch.profiler: prof.export_chrome_trace(path)",
        )
    return TraceError(f"`{name}` is not JSON", hint="give Chrome trace JSON, plain or gzip")


def _refuse(source: Source, log: IssueLog, events: _Events, *, closed: bool) -> None:
    """Strict reading ends at the first thing that is no JSON."""
    offsets = [place.byte_offset for place in log.places if place.name != "gzip_damaged"]
    broken = [offset for offset in offsets if offset is not None]
    blocks = source.blocks(IssueLog(), lambda _: None)
    if broken:
        raise refusal_of_event(blocks, min(broken), source.path.name)
    if not closed:
        raise refusal_of_end(blocks, events.size, events.n, source.path.name)
