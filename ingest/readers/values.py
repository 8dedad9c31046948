"""Lists of decoded JSON values -> typed columns; what does not fit becomes NULL."""

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from ingest.readers.events import NO_RAW
from ingest.units import micros_to_nanos

Convert = Callable[[Sequence[Any]], pl.Series]

_TWO_63 = 1 << 63
_EXACT_MICROS = float(1 << 43)
"""Below it a double tells decimal numbers of µs with three digits after the point apart."""
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


def integers(values: Sequence[Any]) -> pl.Series:
    """Signed 64-bit numbers."""
    return _whole(values, -_TWO_63, _TWO_63, pl.Int64)


def identifiers(values: Sequence[Any]) -> pl.Series:
    """Ids up to 64 bits, kept as they are."""
    return _whole(values, 0, 2 * _TWO_63, pl.UInt64)


def small_integers(values: Sequence[Any]) -> pl.Series:
    """Numbers of streams and the like; the profiler's 4294967295 for `all` becomes NULL."""
    return _whole(values, -(1 << 31), 1 << 31, pl.Int64)


def _whole(values: Sequence[Any], low: int, high: int, dtype: type[pl.DataType]) -> pl.Series:
    numbers = values
    if not set(map(type, values)) <= {int, type(None)}:
        numbers = [integer(value) for value in values]
    present = [number for number in numbers if number is not None]
    if present and not low <= min(present) <= max(present) < high:
        numbers = [n if n is not None and low <= n < high else None for n in numbers]
    return pl.Series(numbers, dtype=dtype)


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


def raw_text(values: Sequence[msgspec.Raw]) -> pl.Series:
    """JSON as it is written; NULL when absent."""
    return pl.Series(
        [None if raw is NO_RAW else str(raw, "utf-8", "replace") for raw in values],
        dtype=pl.String,
    )


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


def nanos(values: Sequence[Decimal | None]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Exact ns of decimal numbers of µs, and which of them are usable.

    Below 2^43 µs a double is the nearest of all numbers with three digits: whole µs and the rest
    apart are exact. Absolute times (1.7e15 µs) are not below, and go through decimals.
    """
    try:
        micros = np.array([np.nan if value is None else value for value in values], np.float64)
    except ValueError:  # a signalling NaN, which only a decimal can hold
        micros = np.full(len(values), np.inf)
    usable = np.abs(micros) < _EXACT_MICROS
    whole = np.floor(np.where(usable, micros, 0.0))
    rest = np.rint((np.where(usable, micros, 0.0) - whole) * 1000)
    found = whole.astype(np.int64) * 1000 + rest.astype(np.int64)
    for row in np.flatnonzero(~usable & ~np.isnan(micros)).tolist():
        value = values[row]
        exact = _nanos_of(value)
        if exact is not None:
            found[row], usable[row] = exact, True
    return found, usable


def _nanos_of(value: Decimal | None) -> int | None:
    if value is None or not value.is_finite() or abs(value) > _LONGEST_NS:
        return None
    exact = micros_to_nanos(value)
    return exact if abs(exact) < _LONGEST_NS else None
