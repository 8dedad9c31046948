"""What the keys of a shape mean: worked out once per shape, applied to millions of rows."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ingest.lexicon.decoding import BROKEN, check_json, decode_top, holds_event, members
from ingest.lexicon.lexer import ARGS, NAME, NUMBER

Int64 = NDArray[np.int64]

_MARKED = msgspec.Raw(b'"\\u0003"')
_SENTINEL = b"1%016d"
_SENTINEL_SIZE = 17
_DECIMAL_PARTS = 2
_NUMBERS = re.compile(rb"1\d{16}")
_WHOLE = re.compile(rb'"?(-?)(1\d{16})"?')
_DECIMAL = re.compile(rb'"?(-?)(1\d{16})(?:\.(0*)(1\d{16}))?"?')
ABSENT, WHOLE, TEXT = 0, 1, 2
"""How a value is written in a shape: not at all, as one whole number, in any other way."""


class Value(NamedTuple):
    """A key's value in a shape."""

    text: bytes
    """As it is written, each number as one `NUMBER`."""
    first: int
    """Ordinal of its first number among those of the shape."""
    n_numbers: int
    kind: int
    is_negative: bool
    fraction: int
    """Zeros before the fraction's number; -1: no fraction; -2: no plain decimal number."""


class Shape(NamedTuple):
    """The keys of a shape."""

    values: Mapping[str, Value]
    numbers: int


def filled(shape: bytes, numbers: Sequence[int]) -> bytes:
    """The text that a shape and its numbers stand for."""
    pieces = shape.split(bytes((NUMBER,)))
    out = [pieces[0]]
    for number, piece in zip(numbers, pieces[1:], strict=True):
        out += (b"%d" % number, piece)
    return b"".join(out)


def is_text(name: bytes) -> bool:
    """The raw text between the quotes of a name is a JSON string."""
    try:
        name.decode("utf-8")
        return isinstance(check_json(b'"' + name + b'"'), str)
    except BROKEN:
        return False


def is_value(shape: bytes) -> bool:
    """The shape stands for JSON values, not of an object perhaps.

    The numbers do not matter: a leading zero, which JSON forbids, is text of the shape.
    """
    try:
        text = _without_marks(filled(shape, [1] * shape.count(bytes((NUMBER,)))))
        text.decode("utf-8")
        check_json(text)
    except BROKEN:
        return False
    return True


def understand(shape: bytes, *, of_event: bool) -> Shape | None:
    """Keys and values of the shape of an object; None where it is no JSON.

    Nor are events within others, and events that hold a key twice, or arguments under a key that
    is written with escapes: the lexer does not see them.
    """
    if not is_value(shape) or holds_event(shape):
        return None
    pieces = shape.split(bytes((NUMBER,)))
    probe = pieces[0] + b"".join(
        _SENTINEL % ordinal + piece for ordinal, piece in enumerate(pieces[1:])
    )
    try:
        text = _without_marks(probe)
        top = decode_top(text)
        if of_event and (members(text) != len(top) or top.get("args", _MARKED) != _MARKED):
            return None
    except BROKEN:
        return None
    return Shape({key: _value(bytes(raw)) for key, raw in top.items()}, len(pieces) - 1)


def _without_marks(probe: bytes) -> bytes:
    name = b'"' + bytes((NAME,)) + b'"'
    return probe.replace(name, b'"\\u0002"').replace(bytes((ARGS,)), b'"\\u0003"')


def _value(raw: bytes) -> Value:
    """A key's value.

    Digits of a shape are leading zeros, those of escapes and the sentinels. Where an escape stands
    before a sentinel, its digits could be taken for the sentinel's, so they are masked.
    """
    found = _sentinels(raw)
    begins = [0, *(at + _SENTINEL_SIZE for at in found)]
    ends = [*found, len(raw)]
    pieces = [raw[begin:end] for begin, end in zip(begins, ends, strict=True)]
    text = bytes((NUMBER,)).join(pieces)
    first = int(raw[found[0] + 1 : found[0] + _SENTINEL_SIZE]) if found else 0
    whole, decimal = _WHOLE.fullmatch(raw), _DECIMAL.fullmatch(raw)
    if whole and len(found) == 1:
        return Value(text, first, 1, WHOLE, bool(whole[1]), -1)
    if decimal and len(found) == _DECIMAL_PARTS:
        return Value(text, first, _DECIMAL_PARTS, TEXT, bool(decimal[1]), len(decimal[3]))
    return Value(text, first, len(found), TEXT, False, -2)  # noqa: FBT003  (a field)


def _sentinels(raw: bytes) -> list[int]:
    """Places of the sentinels; an escape's four digits are no part of them."""
    masked = re.sub(rb"\\(?:u[0-9a-fA-F]{4}|.)", lambda found: b"_" * len(found[0]), raw)
    places, position = [], 0
    while (found := _NUMBERS.search(masked, position)) is not None:
        places.append(found.start())
        position = found.end()
    return places


def decoded(text: bytes) -> object:
    """A JSON value that is known to be one; None for a number that no double holds."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
