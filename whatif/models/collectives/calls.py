"""Columns that describe collective calls, one row per call."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ingest.vocab import CollectiveKind

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Columns with one row per call."""

    kind: Int64
    """CollectiveKind."""
    size_bytes: Int64
    """As nccl-tests counts it: of one rank for all-reduce, broadcast, reduce and send/recv, of all
    ranks together for all-gather, reduce-scatter and all-to-all; -1 when not recorded."""
    members: Int64
    nodes: Int64
    """Scale-up domains that the members lie in."""
    largest_node: Int64
    """Members in the fullest of them."""
    sites: Int64


def take(calls: Calls, rows: Int64) -> Calls:
    """Some rows, in the order given."""
    return Calls(**{column.name: getattr(calls, column.name)[rows] for column in fields(calls)})


def recorded_bytes(calls: Calls) -> Float64:
    """Sizes, 0 where there is none."""
    barrier = calls.kind == CollectiveKind.BARRIER
    return np.where(barrier, 0, np.maximum(calls.size_bytes, 0)).astype(np.float64)


def columns_of(calls: Calls) -> list[Int64]:
    """All columns, in the order of the class."""
    return [getattr(calls, column.name) for column in fields(calls)]


def distinct(columns: list[Int64]) -> tuple[Int64, Int64]:
    """Rows that stand for all: their numbers, and for each row the place of the one like it."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    _, first, place = np.unique(mixed, return_index=True, return_inverse=True)
    if all(bool((column[first][place] == column).all()) for column in columns):
        return first, place
    everything = np.arange(len(mixed))
    return everything, everything
