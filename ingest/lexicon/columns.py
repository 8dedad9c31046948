"""Rows of shapes and numbers -> columns: what a key holds in every row, all rows at once."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.lexicon.lexer import NUMBER
from ingest.lexicon.scans import to_nanos
from ingest.lexicon.shapes import ABSENT, WHOLE, Shape, Value, decoded, filled
from ingest.lexicon.tables import RowTable
from ingest.lexicon.values import identifiers

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


class Values:
    """Distinct values of keys as they are written, numbered; decoded once each."""

    def __init__(self) -> None:
        self._parts: dict[bytes, int] = {}
        self._texts: list[bytes] = []
        self._rows = RowTable(1)
        self._decoded: list[Any] = []

    def part(self, text: bytes) -> int:
        """Number of the shape of a value."""
        number = self._parts.setdefault(text, len(self._texts))
        if number == len(self._texts):
            self._texts.append(text)
        return number

    def constant(self, part: int) -> Any:  # noqa: ANN401  (whatever the file holds)
        """A value without numbers, decoded."""
        return decoded(self._texts[part])

    def number(self, parts: Int64, first: Int64, count: Int64, numbers: Int64) -> Int64:
        """Number the value of each row."""
        return self._rows.number(parts[None], first[None], count[None], numbers)

    def text(self, number: int) -> bytes:
        """A value as it is written."""
        words = self._rows.words(number)
        return filled(self._texts[int(words[0])], words[1:].tolist())

    def split(self, words: Int64, fields: int) -> list[Any]:
        """Decoded values of a row of several fields; None for an absent one."""
        found, at = [], 0
        for _ in range(fields):
            part = int(words[at])
            shape = self._texts[part] if part >= 0 else None
            size = shape.count(bytes((NUMBER,))) if shape is not None else 0
            numbers = words[at + 1 : at + 1 + size].tolist()
            found.append(None if shape is None else decoded(filled(shape, numbers)))
            at += 1 + size
        return found

    def __getitem__(self, number: int) -> Any:  # noqa: ANN401  (whatever the file holds)
        """A value, decoded."""
        while len(self._decoded) <= number:
            self._decoded.append(decoded(self.text(len(self._decoded))))
        return self._decoded[number]


class Keys:
    """Where the values of some keys are, for every shape; rows of shapes -> columns."""

    def __init__(self, keys: Sequence[str], values: Values) -> None:
        self._place = {key: place for place, key in enumerate(keys)}
        self._values = values
        self._table = np.zeros((len(keys), 6, 256), np.int64)
        self._n_shapes = 0

    def add(self, shape: Shape) -> None:
        """Take up the next shape."""
        if self._n_shapes == self._table.shape[2]:
            self._table = np.concatenate([self._table, np.zeros_like(self._table)], axis=2)
        for key, place in self._place.items():
            value = shape.values.get(key)
            if value is not None:
                self._table[place, :, self._n_shapes] = self._described(value)
        self._n_shapes += 1

    def _described(self, value: Value) -> tuple[int, ...]:
        part = self._values.part(value.text)
        return (
            value.kind,
            value.first,
            value.n_numbers,
            int(value.is_negative),
            part,
            value.fraction,
        )

    def has(self, key: str, shapes: Int64) -> Bool:
        """Rows whose shape holds the key."""
        found: Bool = self._table[self._place[key], 0][shapes] != ABSENT
        return found

    def anywhere(self, key: str) -> bool:
        """Some shape so far holds the key."""
        return bool((self._table[self._place[key], 0, : self._n_shapes] != ABSENT).any())

    def constants(self, key: str, shapes: Int64) -> list[Any]:
        """What a key holds in all rows of each shape; this class where rows differ."""
        kind, _, count, _, part, _ = self._table[self._place[key]][:, shapes]
        return [
            None if k == ABSENT else Keys if n else self._values.constant(p)
            for k, n, p in zip(kind.tolist(), count.tolist(), part.tolist(), strict=True)
        ]

    def fields(self, keys: Sequence[str], rows: "RowNumbers") -> tuple[Int64, Int64, Int64]:
        """Parts, places and counts of the numbers of several keys, each (keys, rows)."""
        table = self._table[[self._place[key] for key in keys]][:, :, rows.shapes]
        absent = table[:, 0] == ABSENT
        return np.where(absent, -1, table[:, 4]), rows.first + table[:, 1], table[:, 2]

    def whole_place(self, key: str, shape: int) -> int | None:
        """Place (from 1) of a whole number among those of a shape; None where it is none."""
        kind, first, _, negative, _, _ = self._table[self._place[key], :, shape].tolist()
        return first + 1 if kind == WHOLE and not negative else None

    def ids(self, key: str, rows: "RowNumbers") -> Int64:
        """Numbers (of `Values`) of a key's values; -1 where absent."""
        kind, first, count, _, part, _ = self._table[self._place[key]][:, rows.shapes]
        present = np.flatnonzero(kind != ABSENT)
        out = np.full(len(kind), -1, np.int64)
        if len(present):
            out[present] = self._values.number(
                part[present], (rows.first + first)[present], count[present], rows.numbers
            )
        return out

    def objects(self, key: str, rows: "RowNumbers") -> list[Any]:
        """Decoded values of a key; None where absent."""
        return [None if one < 0 else self._values[one] for one in self.ids(key, rows).tolist()]

    def whole(self, key: str, rows: "RowNumbers") -> tuple[Int64, Bool, Bool]:
        """Values written as one whole number, which rows those are, and which hold others."""
        kind, first, _, negative, _, _ = self._table[self._place[key]][:, rows.shapes]
        is_whole = kind == WHOLE
        at = np.where(is_whole, rows.first + first, 0)
        values = rows.numbers[at] if len(rows.numbers) else np.zeros(len(at), np.int64)
        values = np.where(negative == 1, -values, values)
        return np.where(is_whole, values, 0), is_whole, (kind != ABSENT) & ~is_whole

    def unsigned(self, key: str, rows: "RowNumbers") -> tuple[NDArray[np.uint64], Bool]:
        """Ids of up to 64 bits, however they are written, and which rows have one."""
        values, known, others = self.whole(key, rows)
        known &= values >= 0
        ids = values.astype(np.uint64)
        odd = np.flatnonzero(others)
        if len(odd):
            made = identifiers(self.objects(key, rows.pick(odd)))
            ids[odd], known[odd] = made.fill_null(0).to_numpy(), made.is_not_null().to_numpy()
        return ids, known

    def nanos(
        self,
        key: str,
        rows: "RowNumbers",
        convert: Callable[[Sequence[bytes]], tuple[Int64, Bool]],
    ) -> tuple[Int64, Bool]:
        """Exact ns of decimal numbers of µs, and which rows have a usable one.

        `convert` reads what is written in any other way than digits, a point and digits.
        """
        kind, first, count, negative, _, zeros = self._table[self._place[key]][:, rows.shapes]
        decimal = (kind != ABSENT) & (zeros >= -1)
        out, usable = np.zeros(len(kind), np.int64), decimal.copy()
        to_nanos(rows.first + first, count, negative, zeros, rows.numbers, decimal, out, usable)
        other = np.flatnonzero((kind != ABSENT) & ~usable)
        if len(other):
            picked = RowNumbers(rows.shapes[other], rows.first[other], rows.numbers)
            texts = [self._values.text(one) for one in self.ids(key, picked).tolist()]
            out[other], usable[other] = convert(texts)
        return out, usable


class RowNumbers:
    """Rows as shapes and numbers: the shape of each, and where its numbers begin."""

    __slots__ = ("first", "numbers", "shapes")

    def __init__(self, shapes: Int64, first: Int64, numbers: Int64) -> None:
        self.shapes = shapes
        self.first = first
        self.numbers = numbers

    def pick(self, rows: NDArray[Any]) -> "RowNumbers":
        """Some of the rows."""
        return RowNumbers(self.shapes[rows], self.first[rows], self.numbers)
