"""The lexer reads and writes by address: never outside what it was given, whatever lies there."""

import ctypes
import mmap

import numpy as np
import pytest

from ingest.issues import IssueLog
from ingest.lexicon.distinct import Lexicon
from ingest.lexicon.lexer import CLASSES, SLACK_BYTES, lex
from ingest.lexicon.tables import TextTable
from ingest.readers import batches
from ingest.readers.batches import Lexer
from ingest.readers.pieces import Piece
from tests.reading import host, kernel

EVENTS = ",\n".join(
    [
        host("cpu_op", "aten::mm", 1, 0.5, **{"Input Dims": [[1, 2], []], "t": "a\\b 0017"}),
        kernel('k<\\"a\\", {b}>', "1700000000000000.125", "007", correlation=2**64 - 1),
        '{"name": "", "args": [1, "2"], "ph": "M", "traceEvent": 1, "x": 00}',
    ]
).encode()
PAGE = mmap.PAGESIZE


def _found(text: bytes, behind: bytes) -> tuple[object, ...]:
    """All that a lexer says of a text with these bytes behind it."""
    lexicon = Lexicon()
    data = bytearray(text) + bytearray(behind)
    lexed = Lexer(lexicon).read(Piece(0, data, len(text)), is_last=False)
    numbers = [
        [column.tolist() for column in vars(batch).values()]
        if hasattr(batch, "__dict__")
        else [getattr(batch, name).tolist() for name in batch.__slots__]
        for batch in lexed.batches
    ]
    texts = (lexicon.shapes.texts, lexicon.names.texts, lexicon.args.texts)
    return numbers, texts, lexed.left, lexed.list_ended, lexed.log.counts


POISON = (
    b'"' * SLACK_BYTES, b"}" * SLACK_BYTES, b"0" * SLACK_BYTES, b"," * SLACK_BYTES,
    b'name":"x"},{' * 6, b":1}]" * SLACK_BYTES, b"\\" * SLACK_BYTES, b"\xff" * SLACK_BYTES,
)  # fmt: skip


def test_what_lies_behind_the_end_changes_nothing_wherever_the_end_is() -> None:
    for length in range(len(EVENTS) + 1):
        text = EVENTS[:length]
        want = _found(text, bytes(SLACK_BYTES))
        for poison in POISON:
            assert _found(text, poison) == want, (length, poison)


@pytest.mark.parametrize(
    "text",
    [b"", b" ", b"\n" * 5000, b",", b"{", b'{"', b'{"args":', b'{"args":}', b'{"args":},{"args":,}',
     b'{"name":', b'{"name":"', b"\x00" * 100, b"\\" * 1000, b'"' * 1000, b"]", b"}" * 1000,
     b"{}" + b",{}" * 5000, b'{"n":[' + b"1," * 50_000 + b"1]}", b'{"n":' + b"1" * 100_000 + b"}",
     b'{"name":"' + b"x" * 100_000 + b'"}', b'{"' + b"k" * 100_000 + b'":1}',
     b'{"args":"' + b"0" * 100_000 + b'"}', b'{"args":' + b"[" * 100_000],
)  # fmt: skip
def test_odd_texts_stay_between_guard_pages(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text ends at a page that may not be touched, less the slack that is promised."""
    guard = _Guarded(len(text) + SLACK_BYTES)
    ctypes.memmove(guard.address, text + bytes(SLACK_BYTES), len(text) + SLACK_BYTES)
    room = max(len(text), 64)
    scratches = [_Guarded(room + 2 * SLACK_BYTES) for _ in range(2)]
    tables = [TextTable() for _ in range(3)]
    for table in tables:
        table.grow(room)
    most = len(text) + 64
    columns = [np.zeros(2 * most + 2, np.int64) for _ in range(8)]
    progress = np.zeros(4, np.int64)
    lex(
        guard.address, guard.address + len(text), True, CLASSES.ctypes.data,  # noqa: FBT003
        scratches[0].address, scratches[1].address,
        np.array([table.row for table in tables], np.int64),
        np.array([column.ctypes.data for column in columns], np.int64), most,
        columns[6].ctypes.data + 8 * most, columns[7].ctypes.data + 8 * most, progress,
    )  # fmt: skip
    assert 0 <= progress[0] <= len(text)
    monkeypatch.setattr(batches, "_FEWEST", 1)
    data = bytearray(text) + bytes(SLACK_BYTES)
    lexed = Lexer(Lexicon()).read(Piece(0, data, len(text)), is_last=True)
    assert isinstance(lexed.log, IssueLog)


class _Guarded:
    """Memory that ends, and begins, at pages that no one may touch."""

    def __init__(self, size: int) -> None:
        pages = -(-size // PAGE)
        self._map = mmap.mmap(-1, (pages + 2) * PAGE)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        for page in (begin, begin + (pages + 1) * PAGE):
            assert protect(ctypes.c_void_p(page), PAGE, 0) == 0
        self.address = begin + (pages + 1) * PAGE - size
