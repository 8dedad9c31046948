"""Where and why text is not JSON: for strict reading, which stops there."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from ingest.errors import TraceError
from ingest.lexicon.decoding import check_json
from ingest.readers.mend import lone_surrogate
from ingest.readers.source import Block

HINT = "without --strict the file is repaired as far as possible and every repair is counted"
_WORD = re.compile(rb"[\w.+/-]{1,40}")
_LOOKED_AT_BYTES = 1 << 20


class Fault(NamedTuple):
    """Offset of the byte at which a strict decoder stops, and the cause."""

    offset: int
    cause: str


def first_fault(data: bytes) -> Fault | None:
    """The first fault of a JSON text; None for none.

    Where the data end early, the offset is that behind the last byte.
    """
    try:
        data.decode("utf-8")
        check_json(data)
    except UnicodeDecodeError as error:
        is_cut = error.end == len(data) and error.reason == "unexpected end of data"
        return Fault(len(data) if is_cut else error.start, "not UTF-8")
    except (msgspec.ValidationError, RecursionError) as error:
        return Fault(0, str(error) or "nested too deep")
    except msgspec.DecodeError as error:
        return _fault(data, str(error).removeprefix("JSON is malformed: "))
    return None


def _fault(data: bytes, message: str) -> Fault:
    cause, found, tail = message.partition(" (byte ")
    if not found:
        half = lone_surrogate(data)
        return Fault(half, "half a surrogate pair") if half >= 0 else Fault(len(data), cause)
    offset = int(tail.rstrip(")"))
    if "escape" in cause:
        return Fault(data.rfind(b"\\", 0, offset), "invalid escape")
    word = _WORD.match(data, offset)
    return Fault(offset, f"`{word[0].decode('utf-8', 'replace')}`" if word else cause)


def refusal_of_event(blocks: Iterator[Block], offset: int, name: str) -> TraceError:
    """Strict reading stops in the event that begins at `offset`, or at the comma there."""
    window = _Window(blocks, offset)
    fault = first_fault(window.text) or Fault(0, "not expected here")
    return TraceError(
        f"`{name}` is not JSON: {fault.cause} at {window.place(fault.offset)}", hint=HINT
    )


def refusal_of_end(blocks: Iterator[Block], size: int, whole: int, name: str) -> TraceError:
    """Strict reading stops at the end of a file that ends too early."""
    window = _Window(blocks, size)
    return TraceError(
        f"`{name}` is truncated at {window.place(0)}, after {whole} whole events", hint=HINT
    )


class _Window:
    """Some text of a stream, and the line that it begins in."""

    def __init__(self, blocks: Iterator[Block], offset: int) -> None:
        self._offset = offset
        self._lines, self._line_text, self.text = 1, b"", b""
        position = 0
        for one in blocks:
            block = bytes(one)
            before, behind = block[: max(offset - position, 0)], block[max(offset - position, 0) :]
            self._pass(before)
            self.text += behind
            position += len(block)
            if len(self.text) >= _LOOKED_AT_BYTES:
                break

    def _pass(self, text: bytes) -> None:
        breaks = text.count(b"\n")
        self._lines += breaks
        self._line_text = text[text.rfind(b"\n") + 1 :] if breaks else self._line_text + text

    def place(self, offset: int) -> str:
        """Line and column (in characters, from 1), and the byte (from 0)."""
        text = self.text[:offset]
        line = self._lines + text.count(b"\n")
        line_text = text[text.rfind(b"\n") + 1 :] if b"\n" in text else self._line_text + text
        column = len(line_text.decode("utf-8", "replace")) + 1
        return f"line {line}, column {column}, byte {self._offset + offset}"
