"""Columns that only some rows have: collected as numbers, converted once per file."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ingest.lexicon.columns import RowNumbers
from ingest.lexicon.values import Convert, Whole
from ingest.lexicon.words import Words
from ingest.parsed import Schema

Int64 = NDArray[np.int64]


class _Part(NamedTuple):
    """One batch of one column: whole numbers, or numbers of values that are still to be decoded."""

    values: Int64
    known: NDArray[np.bool_]
    are_ids: bool


class Side:
    """Rows of one side table: a key of the arguments for each column."""

    def __init__(
        self,
        words: Words,
        columns: Mapping[str, tuple[str, Convert | None]],
        schema: Schema,
    ) -> None:
        """Columns are named with their key and what converts it; None keeps numbers of values."""
        self._words = words
        self._columns = columns
        self._schema = schema
        self._rows: list[Int64] = []
        self._parts: dict[str, list[_Part]] = {column: [] for column in columns}

    def add(self, rows: Int64, arguments: RowNumbers) -> None:
        """Take rows (of the slices) with their arguments."""
        if not len(rows):
            return
        self._rows.append(rows)
        keys = self._words.arguments
        for column, (key, convert) in self._columns.items():
            if isinstance(convert, Whole):
                values, is_whole, others = keys.whole(key, arguments)
                if not others.any():
                    self._parts[column].append(_Part(values, is_whole, are_ids=False))
                    continue
            ids = keys.ids(key, arguments)
            self._parts[column].append(_Part(ids, ids >= 0, are_ids=True))

    def frame(self) -> pl.DataFrame:
        """All rows, with `row` first."""
        if not self._rows:
            return pl.DataFrame(schema=dict(self._schema))
        made = {
            column: pl.concat([self._converted(part, convert) for part in _merged(parts)])
            for (column, parts), (_, convert) in zip(
                self._parts.items(), self._columns.values(), strict=True
            )
        }
        frame = pl.DataFrame({"row": np.concatenate(self._rows), **made})
        return frame.select(self._schema.keys()).cast(pl.Schema(self._schema))

    def _converted(self, part: _Part, convert: Convert | None) -> pl.Series:
        if convert is None:
            return pl.Series(part.values).set(pl.Series(~part.known), None)
        if isinstance(convert, Whole) and not part.are_ids:
            return convert.of_numbers(part.values, part.known)
        distinct, place = np.unique(part.values, return_inverse=True)
        values = self._words.values
        return convert([None if one < 0 else values[one] for one in distinct.tolist()]).gather(
            place
        )


def _merged(parts: Sequence[_Part]) -> list[_Part]:
    """Batches of one kind that follow one another as one."""
    merged: list[list[_Part]] = []
    for part in parts:
        if merged and merged[-1][0].are_ids == part.are_ids:
            merged[-1].append(part)
        else:
            merged.append([part])
    return [
        _Part(
            np.concatenate([one.values for one in group]),
            np.concatenate([one.known for one in group]),
            group[0].are_ids,
        )
        for group in merged
    ]
