"""What a reader hands on: the columns of one file, times in ns as recorded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ingest.issues import IssueLog

_LATEST_NS = 1 << 61
Schema: TypeAlias = Mapping[str, pl.DataType | type[pl.DataType]]

DEVICE_SCHEMA: Schema = {
    "row": pl.Int64,
    "device": pl.Int64,
    "stream": pl.Int64,
    "context": pl.Int64,
    "queued_us": pl.Float64,
    "bytes": pl.Int64,
    "memory_bw_gbps": pl.Float64,
    "grid": pl.List(pl.Int32),
    "block": pl.List(pl.Int32),
    "registers_per_thread": pl.Int64,
    "shared_memory": pl.Int64,
    "blocks_per_sm": pl.Float64,
    "warps_per_sm": pl.Float64,
    "occupancy_percent": pl.Float64,
    "priority": pl.Int64,
    "graph_id": pl.UInt64,
    "graph_node_id": pl.UInt64,
}
"""Arguments of device work; `row` is the row in the slices."""

SYNC_SCHEMA: Schema = {
    "row": pl.Int64,
    "kind": pl.String,
    "stream": pl.Int64,
    "wait_on_stream": pl.Int64,
    "wait_on_cuda_event_id": pl.UInt64,
    "wait_on_cuda_event_record_corr_id": pl.UInt64,
}
CPU_OP_SCHEMA: Schema = {
    "row": pl.Int64,
    "sequence_number": pl.Int64,
    "fwd_thread_id": pl.Int64,
    "record_function_id": pl.Int64,
    "ev_idx": pl.Int64,
    "input_dims": pl.Int32,
    "input_type": pl.Int32,
    "input_strides": pl.Int32,
    "concrete_inputs": pl.Int32,
    "kernel_backend": pl.Int32,
}
"""Texts are numbers of `Words.values`."""
FLOW_SCHEMA: Schema = {
    "is_start": pl.Boolean,
    "name": pl.Int32,
    "id": pl.Int64,
    "text_id": pl.Int32,
    "thread": pl.Int32,
    "ts": pl.Int64,
}
"""Ends of arrows: `name` is a category; an id that is no whole number is a text (of `values`)."""

LABEL_SCHEMA: Schema = {
    "kind": pl.String,
    "pid": pl.String,
    "tid": pl.String,
    "value": pl.String,
}
"""Metadata (`M`) events: process_name, process_labels, process_sort_index, thread_name, ..."""

MEMORY_SCHEMA: Schema = {
    "thread": pl.Int32,
    "ts": pl.Int64,
    "device_type": pl.Int64,
    "device": pl.Int64,
    "addr": pl.UInt64,
    "bytes": pl.Int64,
    "total_allocated": pl.UInt64,
    "total_reserved": pl.UInt64,
}
"""Allocations and releases (`[memory]` instants of profile_memory)."""

COUNTER_SCHEMA: Schema = {
    "thread": pl.Int32,
    "ts": pl.Int64,
    "name": pl.String,
    "value": pl.Float64,
}
"""Samples of counters (`C` events), one row per series."""


class Sparse(NamedTuple):
    """Ids that few rows have."""

    row: NDArray[np.int32]
    value: NDArray[np.uint64]


class Arguments(NamedTuple):
    """Arguments of some rows, as shapes and numbers: row r has `numbers[first[r]:first[r + 1]]`."""

    row: NDArray[np.int32]
    shape: NDArray[np.int64]
    first: NDArray[np.int64]
    numbers: NDArray[np.int64]


class ArgumentRows(NamedTuple):
    """Arguments on their way to the store: row r has `numbers[first[r]:first[r + 1]]`."""

    args_id: NDArray[np.int64]
    shape: NDArray[np.int64]
    first: NDArray[np.int64]
    numbers: NDArray[np.int64]


@dataclass(slots=True)
class Slices:
    """Complete (`X`) events in the order of the file; times are ns as recorded.

    The columns are big: whoever makes others of them takes them away (`release`).
    """

    category: NDArray[np.int16]
    name: NDArray[np.int32]
    thread: NDArray[np.int32]
    ts: NDArray[np.int64]
    dur: NDArray[np.int64]
    args_id: NDArray[np.int32]
    """Number of the arguments in the store; -1: none."""
    repair: NDArray[np.int8]
    """0: none, 1: clamped, 2: unfinished."""

    def __len__(self) -> int:
        return len(self.ts)

    def release(self, column: str) -> NDArray[Any]:
        """Give a column up."""
        array: NDArray[Any] = getattr(self, column)
        setattr(self, column, array[:0].copy())
        return array


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """One file as columns; names, categories and threads are numbers of the run's words."""

    header: Mapping[str, object]
    """Top-level keys beside the events."""
    digest: str
    """SHA-256 of the stored bytes."""
    n_events: int
    complete: bool
    """False when the file ends before its events do."""
    own_span_ns: tuple[int, int]
    """Start of the first slice and end of the last as recorded, ns; 0 without any."""
    slices: Slices
    correlation: Sparse
    external_id: Sparse
    device: pl.DataFrame
    sync: pl.DataFrame
    cpu_op: pl.DataFrame
    flows: pl.DataFrame
    labels: pl.DataFrame
    memory: pl.DataFrame
    counters: pl.DataFrame
    messages: Arguments
    """Of the rows that may describe communication."""
    log: IssueLog = field(repr=False)

    @property
    def base_ns(self) -> int:
        """`baseTimeNanoseconds`, to which all times of the file are relative; 0: not recorded."""
        base = self.header.get("baseTimeNanoseconds")
        return base if isinstance(base, int) and abs(base) < _LATEST_NS else 0

    @property
    def span_ns(self) -> tuple[int, int]:
        """Start of the first slice and end of the last, ns, as Unix time where that is known."""
        begin, end = self.own_span_ns
        return begin + self.base_ns, end + self.base_ns
