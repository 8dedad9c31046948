"""Lists of decoded JSON values -> typed columns; what does not fit becomes NULL."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ingest.units import micros_to_nanos

Convert = Callable[[Sequence[Any]], pl.Series]

_TWO_63 = 1 << 63
_LONGEST_NS = 1 << 61
"""73 years: sums of a base, a time and a duration stay within 64 bits."""
_NUMBER_TYPES = ({int}, {float}, {int, float}, {int, type(None)}, {float, type(None)})
_TRIPLE = 3
_WHOLE_NUMBER = re.compile(r"\s*-?\d{1,20}\s*", re.ASCII)


def integer(value: Any) -> int | None:  # noqa: ANN401  (whatever the file holds)
    """A whole number written as a number or as text; None for anything else."""
    if type(value) is int:
        return value
    if isinstance(value, str):
        return int(value) if _WHOLE_NUMBER.fullmatch(value) else None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None


@dataclass(frozen=True, slots=True)
class Whole:
    """Whole numbers within limits; what is none, or beyond, becomes NULL."""

    low: int
    high: int
    """Excluded."""
    dtype: type[pl.DataType]

    def __call__(self, values: Sequence[Any]) -> pl.Series:
        """A column of them."""
        numbers = [integer(value) for value in values]
        fits = [n if n is not None and self.low <= n < self.high else None for n in numbers]
        return pl.Series(fits, dtype=self.dtype)

    def of_numbers(self, values: NDArray[np.int64], known: NDArray[np.bool_]) -> pl.Series:
        """A column of 64-bit numbers of which some are known."""
        fits = known & (values >= max(self.low, -_TWO_63)) & (values <= min(self.high, _TWO_63) - 1)
        kept = pl.Series(np.where(fits, values, 0)).cast(self.dtype)
        return kept if fits.all() else kept.set(pl.Series(~fits), None)


integers = Whole(-_TWO_63, _TWO_63, pl.Int64)
"""Signed 64-bit numbers."""
identifiers = Whole(0, 2 * _TWO_63, pl.UInt64)
"""Ids up to 64 bits, kept as they are."""
small_integers = Whole(-(1 << 31), 1 << 31, pl.Int64)
"""Numbers of streams and the like; the profiler's 4294967295 for `all` becomes NULL."""


def floats(values: Sequence[Any]) -> pl.Series:
    """Numbers as doubles."""
    if set(map(type, values)) not in _NUMBER_TYPES:
        values = [value if type(value) in {int, float} else None for value in values]
    return pl.Series(values, dtype=pl.Float64, strict=False)


def words(values: Sequence[Any]) -> pl.Series:
    """Text, and numbers as text."""
    if not set(map(type, values)) <= {str, type(None)}:
        values = [value if value is None else str(value) for value in values]
    return pl.Series(values, dtype=pl.String)


def triples(values: Sequence[Any]) -> pl.Series:
    """Grids and blocks: three whole numbers each."""
    known = [_is_triple(value) for value in values]
    if not any(known):
        return pl.Series([None] * len(values), dtype=pl.List(pl.Int32))
    filled = [value if ok else (0,) * _TRIPLE for value, ok in zip(values, known, strict=True)]
    table = pl.DataFrame({"value": np.array(filled, np.int64).astype(np.int32), "known": known})
    listed = pl.col("value").arr.to_list()
    return table.select(pl.when(pl.col("known")).then(listed)).to_series()


def _is_triple(value: Any) -> bool:  # noqa: ANN401  (whatever the file holds)
    return (
        type(value) is list
        and len(value) == _TRIPLE
        and all(type(part) is int and 0 <= part < (1 << 31) for part in value)
    )


def decimal_nanos(texts: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Exact ns of µs written as a number in any way, or as text; and which are usable."""
    found = [_nanos_of(_decimal(text)) for text in texts]
    usable = np.array([one is not None for one in found], np.bool_)
    return np.array([one or 0 for one in found], np.int64), usable


def _decimal(text: bytes) -> Decimal | None:
    try:
        return Decimal(text.decode("utf-8").strip('"').strip())
    except InvalidOperation:
        return None


def _nanos_of(value: Decimal | None) -> int | None:
    if value is None or not value.is_finite() or value.copy_abs() > _LONGEST_NS:
        return None
    exact = micros_to_nanos(value)
    return exact if abs(exact) < _LONGEST_NS else None
