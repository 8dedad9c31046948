"""What a reader hands on: the columns of one file, times in ns as recorded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import polars as pl

from ingest.issues import IssueLog

Schema: TypeAlias = Mapping[str, pl.DataType | type[pl.DataType]]

SLICE_SCHEMA: Schema = {
    "cat": pl.String,
    "name": pl.String,
    "pid": pl.String,
    "tid": pl.String,
    "ts": pl.Int64,
    "dur": pl.Int64,
    "correlation": pl.UInt64,
    "external_id": pl.UInt64,
    "args": pl.String,
    "repair": pl.String,
}
"""Complete (`X`) events in the order of the file; times are ns as recorded."""

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
    "input_dims": pl.String,
    "input_type": pl.String,
    "input_strides": pl.String,
    "concrete_inputs": pl.String,
    "kernel_backend": pl.String,
}
FLOW_SCHEMA: Schema = {
    "ph": pl.String,
    "name": pl.String,
    "id": pl.String,
    "pid": pl.String,
    "tid": pl.String,
    "ts": pl.Int64,
}
"""Ends of arrows: `ph` is s (start) or f (finish)."""

LABEL_SCHEMA: Schema = {
    "kind": pl.String,
    "pid": pl.String,
    "tid": pl.String,
    "value": pl.String,
}
"""Metadata (`M`) events: process_name, process_labels, process_sort_index, thread_name, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """One file as columns."""

    header: Mapping[str, object]
    """Top-level keys beside the events."""
    n_events: int
    complete: bool
    """False when the file ends before its events do."""
    slices: pl.DataFrame
    device: pl.DataFrame
    sync: pl.DataFrame
    cpu_op: pl.DataFrame
    flows: pl.DataFrame
    labels: pl.DataFrame
    log: IssueLog = field(repr=False)
