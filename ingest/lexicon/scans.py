"""The loops over tables of texts and columns of numbers: compiled, over plain arrays."""

import numpy as np

from ingest.compiled import compiled, put_word, word_at
from ingest.lexicon.lexer import intern

_MOST_WHOLE_MICROS = 2_000_000_000_000_000
"""63 years: beyond, times go through decimals, which also refuse what no column holds."""


@compiled
def rehash(hashes, count, slots, mask):
    """Fill the slots of a table that grew; arguments are addresses, count and mask."""
    for number in range(count):
        value = word_at(hashes + number * 8)
        slot = np.int64((value ^ (value >> np.uint64(29))) & np.uint64(mask))
        while word_at(slots + slot * 8) != 0:
            slot = (slot + 1) & mask
        put_word(slots + slot * 8, np.uint64(number + 1))


@compiled
def intern_rows(parts, first, count, numbers, scratch, row, out):
    """Number the texts that shapes and numbers stand for; returns the rows done.

    Row r is made of fields f: text `parts[f, r]` (-1: absent) and `count[f, r]` numbers from
    `first[f, r]` on. It stops early where the table has no room.
    """
    fields, rows = parts.shape
    for at in range(rows):
        size = 0
        for field in range(fields):
            put_word(scratch + size, np.uint64(parts[field, at]))
            size += 8
            for place in range(count[field, at]):
                put_word(scratch + size, np.uint64(numbers[first[field, at] + place]))
                size += 8
        number = intern(
            scratch, size, row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]
        )
        if number < 0:
            return at
        out[at] = number
    return rows


@compiled
def to_nanos(first, count, negative, zeros, numbers, wanted, out, usable):
    """Integer ns of µs written as digits with or without a fraction; half goes to even."""
    for row in range(len(out)):
        if not wanted[row]:
            continue
        whole = numbers[first[row]]
        if whole > _MOST_WHOLE_MICROS:
            usable[row] = False
            continue
        value = whole * 1000
        if count[row] == 2:
            fraction = numbers[first[row] + 1]
            digits = zeros[row]
            rest = fraction
            size = 1
            while rest >= 10:
                rest //= 10
                size += 1
            digits += size
            while digits < 3:
                fraction *= 10
                digits += 1
            if digits > 3:
                if digits - size > 18 or digits > 18:
                    usable[row] = False
                    continue
                unit = 1
                while digits > 3:
                    unit *= 10
                    digits -= 1
                rest = fraction % unit
                fraction //= unit
                if rest * 2 > unit or (rest * 2 == unit and fraction % 2 == 1):
                    fraction += 1
            value += fraction
        out[row] = -value if negative[row] == 1 else value


@compiled
def take_ragged(first, numbers, rows, ends, out):
    """Copy the numbers of some rows; row r has `numbers[first[r]:first[r + 1]]`."""
    for place in range(len(rows)):
        at = ends[place]
        begin = first[rows[place]]
        for step in range(first[rows[place] + 1] - begin):
            out[at + step] = numbers[begin + step]
