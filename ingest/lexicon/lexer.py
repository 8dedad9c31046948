"""Events as shapes and numbers: one compiled pass over the bytes of a list of events.

The text of an event is cut into three: its *name*, the *shape* of its arguments, and the shape of
the rest. A shape is the text with every whole number replaced by one byte, so a trace of millions
of events has a few hundred shapes; what a key means is worked out once per shape
(`ingest.lexicon.shapes`), and what is left per event is a row of integers. Nothing is lost: shape
and numbers give back the very bytes. Leading zeros, and what a number has beyond 18 digits, stay
text of the shape or become further numbers, so that no digit needs special care.

The pass looks at quotes, brackets and digits only. Whether the text between them is JSON is asked
of each shape and each name, once, by a real parser.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ingest.compiled import byte_at, compiled, low_zeros, put_byte, put_word, word_at

NUMBER, NAME, ARGS = 1, 2, 3
"""Bytes that stand in a shape for a whole number, the name's text and the arguments. They are
control characters, which JSON text cannot hold."""
SLACK_BYTES = 64
"""Bytes that must be readable behind a buffer and writable behind a scratch."""


class Stop(IntEnum):
    """Why the pass ended where it did."""

    BORDER = 0
    """The bytes end behind an event (and its comma)."""
    INSIDE = 1
    """The bytes end inside an event."""
    LIST_END = 2
    """A `]` follows."""
    BROKEN = 3
    """What follows is no event in JSON."""
    FULL = 4
    """A table or column is full; the event that did not fit is the next one."""


_PLAIN, _DIGIT, _QUOTE, _BACKSLASH, _CONTROL, _OPEN, _CLOSE, _COMMA, _BLANK = range(9)


def _classes() -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    table[:32] = _CONTROL
    for bytes_, kind in (
        (b" \t\r\n", _BLANK),
        (b"0123456789", _DIGIT),
        (b'"', _QUOTE),
        (b"\\", _BACKSLASH),
        (b"{[", _OPEN),
        (b"}]", _CLOSE),
        (b",", _COMMA),
    ):
        table[list(bytes_)] = kind
    return table


CLASSES = _classes()

_HIGH = np.uint64(0x8080808080808080)
_SEVENS = np.uint64(0x7F7F7F7F7F7F7F7F)
_QUOTES = np.uint64(0x2222222222222222)
_SLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_BELOW_BLANK = np.uint64(0x6060606060606060)
_FROM_ZERO = np.uint64(0x5050505050505050)
_BEYOND_NINE = np.uint64(0x4646464646464646)


@compiled
def _special_in_string(word):
    """High bits of the bytes that are a quote, a backslash, a digit or a control character."""
    low = word & _SEVENS
    quote = (low ^ _QUOTES) + _SEVENS
    slash = (low ^ _SLASHES) + _SEVENS
    printable = low + _BELOW_BLANK
    digit = (low + _FROM_ZERO) & ~(low + _BEYOND_NINE)
    return ((~(quote & slash & printable)) | digit) & ~word & _HIGH


@compiled
def _special_in_name(word):
    """High bits of the bytes that are a quote, a backslash or a control character."""
    low = word & _SEVENS
    quote = (low ^ _QUOTES) + _SEVENS
    slash = (low ^ _SLASHES) + _SEVENS
    printable = low + _BELOW_BLANK
    return ~(quote & slash & printable) & ~word & _HIGH


@compiled
def intern(scratch, length, table, slots, hashes, starts, arena, mask, most, most_bytes):
    """Number of the text at `scratch` in a table; a new one where it is not there; -1: no room.

    `table`, `slots`, `hashes`, `starts` and `arena` are addresses: of the count, of 32-bit
    numbers, of 64-bit hashes, of 64-bit places, of bytes.
    """
    put_word(scratch + length, np.uint64(0))
    value = np.uint64(length) * np.uint64(0x9E3779B97F4A7C15)
    at = 0
    while at < length:
        value ^= word_at(scratch + at)
        value *= np.uint64(0xFF51AFD7ED558CCD)
        value ^= value >> np.uint64(32)
        at += 8
    slot = np.int64((value ^ (value >> np.uint64(29))) & np.uint64(mask))
    count = np.int64(word_at(table))
    while True:
        number = np.int64(word_at(slots + slot * 8)) - 1
        if number < 0:
            break
        if word_at(hashes + number * 8) == value:
            begin = np.int64(word_at(starts + number * 8))
            if np.int64(word_at(starts + number * 8 + 8)) - begin == length:
                at = 0
                begin += arena
                while at + 8 <= length and word_at(begin + at) == word_at(scratch + at):
                    at += 8
                while at < length and byte_at(begin + at) == byte_at(scratch + at):
                    at += 1
                if at >= length:
                    return number
        slot = (slot + 1) & mask
    begin = np.int64(word_at(starts + count * 8))
    if count >= most or begin + length > most_bytes:
        return np.int64(-1)
    for at in range(length):
        put_byte(arena + begin + at, byte_at(scratch + at))
    put_word(hashes + count * 8, value)
    put_word(starts + count * 8 + 8, np.uint64(begin + length))
    put_word(slots + slot * 8, np.uint64(count + 1))
    put_word(table, np.uint64(count + 1))
    return count


@compiled
def _number(at, end, scratch, number_at, numbers_end):
    """Take one run of digits: leading zeros as text, the rest as a number.

    Returns the places reached in text, scratch and numbers.
    """
    digit = byte_at(at) - 48
    while digit == 0 and at + 1 < end and 48 <= byte_at(at + 1) <= 57:
        put_byte(scratch, 48)
        scratch += 1
        at += 1
        digit = byte_at(at) - 48
    value = digit
    at += 1
    stop = min(end, at + 17)
    while at < stop:
        digit = byte_at(at) - 48
        if digit < 0 or digit > 9:
            break
        value = value * 10 + digit
        at += 1
    if number_at < numbers_end:
        put_word(number_at, np.uint64(value))
    put_byte(scratch, 1)
    return at, scratch + 1, number_at + 8


@compiled
def _closing(at, end):
    """Whether a quote before `at` closes a string: what follows. -1: not to be seen, 0: not."""
    while at < end and byte_at(at) <= 32:
        at += 1
    return byte_at(at) if at < end else np.int64(-1)


@compiled
def _string(at, end, scratch, number_at, numbers_end):
    """Take a string from behind its opening quote to behind its closing one.

    A quote that no `,`, `:`, `}` or `]` follows closes nothing: the text is broken (-2); -1 where
    the bytes end before the string does.
    """
    while True:
        while at + 8 <= end:
            word = word_at(at)
            put_word(scratch, word)
            special = _special_in_string(word)
            if special != 0:
                plain = low_zeros(special) >> 3
                at += plain
                scratch += plain
                break
            at += 8
            scratch += 8
        if at >= end:
            return np.int64(-1), scratch, number_at
        byte = byte_at(at)
        if 48 <= byte <= 57:
            at, scratch, number_at = _number(at, end, scratch, number_at, numbers_end)
            continue
        put_byte(scratch, byte)
        scratch += 1
        at += 1
        if byte == 34:
            follows = _closing(at, end)
            if follows == 44 or follows == 58 or follows == 125 or follows == 93:
                return at, scratch, number_at
            return np.int64(-1 if follows < 0 else -2), scratch, number_at
        if byte == 92:
            size = 5 if at < end and byte_at(at) == 117 else 1
            if at + size > end:
                return np.int64(-1), scratch, number_at
            for _ in range(size):
                byte = byte_at(at)
                if byte < 32 or (size == 5 and byte == 34):
                    return np.int64(-2), scratch, number_at
                put_byte(scratch, byte)
                scratch += 1
                at += 1
        elif byte < 32:
            return np.int64(-2), scratch, number_at


@compiled
def _value(at, end, classes, scratch, number_at, numbers_end):
    """Take a value up to the comma or bracket behind it."""
    depth = 0
    while at < end:
        byte = byte_at(at)
        kind = byte_at(classes + byte)
        if kind == 1:
            at, scratch, number_at = _number(at, end, scratch, number_at, numbers_end)
            continue
        if kind == 6 or kind == 7:
            if depth == 0:
                return at, scratch, number_at
            if kind == 6:
                depth -= 1
        elif kind == 5:
            depth += 1
        elif kind == 4:
            return np.int64(-2), scratch, number_at
        put_byte(scratch, byte)
        scratch += 1
        at += 1
        if kind == 2:
            at, scratch, number_at = _string(at, end, scratch, number_at, numbers_end)
            if at < 0:
                return at, scratch, number_at
    return np.int64(-1), scratch, number_at


@compiled
def _name(at, end, scratch):
    """Take the text of the name as it is: the place behind its closing quote, and its end."""
    while True:
        while at + 8 <= end:
            word = word_at(at)
            put_word(scratch, word)
            special = _special_in_name(word)
            if special != 0:
                plain = low_zeros(special) >> 3
                at += plain
                scratch += plain
                break
            at += 8
            scratch += 8
        if at >= end:
            return np.int64(-1), scratch
        byte = byte_at(at)
        at += 1
        if byte == 34:
            follows = _closing(at, end)
            if follows == 44 or follows == 125:
                return at, scratch
            return np.int64(-1 if follows < 0 else -2), scratch
        put_byte(scratch, byte)
        scratch += 1
        if byte == 92:
            if at >= end:
                return np.int64(-1), scratch
            byte = byte_at(at)
            put_byte(scratch, byte)
            scratch += 1
            at += 1
        if byte < 32:
            return np.int64(-2), scratch


@compiled
def _blanks(at, end, scratch):
    """Take white space."""
    while at < end:
        byte = byte_at(at)
        if byte > 32 or (byte != 32 and byte != 10 and byte != 13 and byte != 9):
            break
        put_byte(scratch, byte)
        scratch += 1
        at += 1
    return at, scratch


_NAME_KEY = np.uint64(int.from_bytes(b'name"', "little"))
_ARGS_KEY = np.uint64(int.from_bytes(b'args"', "little"))
_LIST_KEY = np.uint64(int.from_bytes(b"traceEve", "little"))
_LIST_KEY_END = np.uint64(int.from_bytes(b'eEvents"', "little"))
_FIVE_BYTES = np.uint64((1 << 40) - 1)
_HASHES, _STARTS, _ARENA = 1, 2, 3


@compiled
def lex(
    begin, end, after_comma, classes, scratch, scratch2, tables, columns, most, shape_room,
    args_room, progress,
):  # fmt: skip
    """Take events from address `begin` on until something stops it.

    Args:
        begin: address of the first byte.
        end: address behind the last byte.
        after_comma: an event is expected at `begin`; else the comma behind one.
        classes: address of `CLASSES`.
        scratch: address of room for the longest event.
        scratch2: the same again.
        tables: for shapes, names and shapes of arguments: addresses of count, slots, hashes,
            starts and arena, the mask of the slots, the most texts and the most bytes.
        columns: addresses of the span (two each), shape, name and args (-1: none) of each event, of
            the ends of its numbers (shape's, args'), and of both columns of numbers; all 64-bit.
        most: events that the columns hold.
        shape_room: end of the column of the shape's numbers, an address.
        args_room: end of the column of the arguments' numbers, an address.
        progress: gives back the place reached, the events taken, why it stopped (`Stop`), and 1
            where the last thing taken was not an event without its comma.
    """
    at = begin
    n = 0
    shape_number_at = columns[6]
    args_number_at = columns[7]
    reached = begin
    status = 0
    while True:
        while at < end:
            byte = byte_at(at)
            if byte != 32 and byte != 10 and byte != 13 and byte != 9:
                break
            at += 1
        if at >= end:
            reached = at if after_comma else reached
            status = 0
            break
        byte = byte_at(at)
        if not after_comma:
            if byte == 44:
                at += 1
                after_comma = True
                reached = at
                continue
            status = 2 if byte == 93 else 3
            break
        if byte != 123:
            status = 2 if byte == 93 and n == 0 else 3
            break
        if n >= most:
            status = 4
            break
        reached = at
        event_begin = at
        out = scratch
        put_byte(out, 123)
        out += 1
        at += 1
        in_shape = shape_number_at
        in_args = args_number_at
        name_number = np.int64(-1)
        args_number = np.int64(-1)
        shape_number = np.int64(-1)
        wants_member = False
        code = 0
        while True:  # members of the event
            at, out = _blanks(at, end, out)
            if at >= end:
                code = 1
                break
            byte = byte_at(at)
            if byte == 125 and not wants_member:
                put_byte(out, 125)
                out += 1
                at += 1
                break
            if byte != 34:
                code = 3
                break
            put_byte(out, 34)
            out += 1
            at += 1
            key = word_at(at) & _FIVE_BYTES
            is_list = word_at(at) == _LIST_KEY and word_at(at + 4) == _LIST_KEY_END
            at, out, in_shape = _string(at, end, out, in_shape, shape_room)
            if at < 0:
                code = 1 if at == -1 else 3
                break
            at, out = _blanks(at, end, out)
            if at >= end:
                code = 1
                break
            if byte_at(at) != 58 or is_list:  # another trace in place of an event
                code = 3
                break
            put_byte(out, 58)
            out += 1
            at += 1
            at, out = _blanks(at, end, out)
            if at >= end:
                code = 1
                break
            byte = byte_at(at)
            if byte == 34 and key == _NAME_KEY and name_number < 0:
                at, out2 = _name(at + 1, end, scratch2)
                if at < 0:
                    code = 1 if at == -1 else 3
                    break
                name_number = intern(
                    scratch2, out2 - scratch2, tables[1, 0], tables[1, 1], tables[1, 2],
                    tables[1, 3], tables[1, 4], tables[1, 5], tables[1, 6], tables[1, 7],
                )  # fmt: skip
                if name_number < 0:
                    code = 4
                    break
                put_byte(out, 34)
                put_byte(out + 1, 2)
                put_byte(out + 2, 34)
                out += 3
            elif key == _ARGS_KEY and args_number < 0:
                at, out2, in_args = _value(at, end, classes, scratch2, in_args, args_room)
                if at < 0:
                    code = 1 if at == -1 else 3
                    break
                if out2 == scratch2:  # no value at all
                    code = 3
                    break
                while byte_at(out2 - 1) <= 32 and byte_at(out2 - 1) != 1:
                    out2 -= 1
                args_number = intern(
                    scratch2, out2 - scratch2, tables[2, 0], tables[2, 1], tables[2, 2],
                    tables[2, 3], tables[2, 4], tables[2, 5], tables[2, 6], tables[2, 7],
                )  # fmt: skip
                if args_number < 0:
                    code = 4
                    break
                put_byte(out, 3)
                out += 1
            else:
                at, out, in_shape = _value(at, end, classes, out, in_shape, shape_room)
                if at < 0:
                    code = 1 if at == -1 else 3
                    break
            at, out = _blanks(at, end, out)
            if at >= end:
                code = 1
                break
            byte = byte_at(at)
            wants_member = byte == 44
            if wants_member:
                put_byte(out, 44)
                out += 1
                at += 1
            elif byte != 125:
                code = 3
                break
        if code == 0:
            code = 4
            if in_shape <= shape_room and in_args <= args_room:
                shape_number = intern(
                    scratch, out - scratch, tables[0, 0], tables[0, 1], tables[0, 2],
                    tables[0, 3], tables[0, 4], tables[0, 5], tables[0, 6], tables[0, 7],
                )  # fmt: skip
                code = 0 if shape_number >= 0 else 4
        if code != 0:
            status = code
            break
        put_word(columns[0] + n * 16, np.uint64(event_begin - begin))
        put_word(columns[0] + n * 16 + 8, np.uint64(at - begin))
        put_word(columns[1] + n * 8, np.uint64(shape_number))
        put_word(columns[2] + n * 8, np.uint64(name_number))
        put_word(columns[3] + n * 8, np.uint64(args_number))
        shape_number_at = in_shape
        args_number_at = in_args
        n += 1
        put_word(columns[4] + n * 8, np.uint64((shape_number_at - columns[6]) >> 3))
        put_word(columns[5] + n * 8, np.uint64((args_number_at - columns[7]) >> 3))
        after_comma = False
        reached = at
    progress[0] = reached - begin
    progress[1] = n
    progress[2] = status
    progress[3] = 1 if after_comma else 0
