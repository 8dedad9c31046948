"""Rows with their names: what queries give and what is printed."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of a query with their column names."""

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    failed: tuple[tuple[str, str], ...] = ()
    """File and reason of those that could not be read, so the rows lack them."""
    left_out: int = 0
    """Rows that the query has beyond these."""
