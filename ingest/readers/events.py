"""Typed decoding of Chrome trace events and of the arguments that tables need."""

from decimal import Decimal
from typing import Any

import msgspec

NO_RAW = msgspec.Raw(b"")
BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for text that is no JSON, or not the JSON of an event."""


class Event(msgspec.Struct, gc=False):
    """One event of `traceEvents`; arguments stay as they are written.

    Times are decimals because absolute ones do not fit a double. `gc=False` keeps the garbage
    collector from walking hundreds of thousands of them; they hold no cycles.
    """

    ph: str = ""
    cat: str | None = None
    name: str | int | float | None = None
    pid: str | int | float | None = None
    tid: str | int | float | None = None
    ts: Decimal | None = None
    dur: Decimal | None = None
    id: str | int | float | None = None
    args: msgspec.Raw = NO_RAW


class Args(msgspec.Struct, gc=False):
    """Arguments that become columns; the file may hold any type for each."""

    correlation: Any = None
    external_id: Any = msgspec.field(default=None, name="External id")
    old_external_id: Any = msgspec.field(default=None, name="external id")
    device: Any = None
    stream: Any = None
    context: Any = None
    queued: Any = None
    bytes: Any = None
    bandwidth: Any = msgspec.field(default=None, name="memory bandwidth (GB/s)")
    grid: Any = None
    block: Any = None
    registers: Any = msgspec.field(default=None, name="registers per thread")
    shared_memory: Any = msgspec.field(default=None, name="shared memory")
    blocks_per_sm: Any = msgspec.field(default=None, name="blocks per SM")
    warps_per_sm: Any = msgspec.field(default=None, name="warps per SM")
    occupancy: Any = msgspec.field(default=None, name="est. achieved occupancy %")
    priority: Any = None
    graph_id: Any = msgspec.field(default=None, name="graph id")
    graph_node_id: Any = msgspec.field(default=None, name="graph node id")
    sync_kind: Any = msgspec.field(default=None, name="cuda_sync_kind")
    wait_on_stream: Any = None
    wait_on_event: Any = msgspec.field(default=None, name="wait_on_cuda_event_id")
    wait_on_record: Any = msgspec.field(default=None, name="wait_on_cuda_event_record_corr_id")
    sequence_number: Any = msgspec.field(default=None, name="Sequence number")
    fwd_thread_id: Any = msgspec.field(default=None, name="Fwd thread id")
    record_function_id: Any = msgspec.field(default=None, name="Record function id")
    ev_idx: Any = msgspec.field(default=None, name="Ev Idx")
    input_dims: msgspec.Raw = msgspec.field(default=NO_RAW, name="Input Dims")
    input_type: msgspec.Raw = msgspec.field(default=NO_RAW, name="Input type")
    input_strides: msgspec.Raw = msgspec.field(default=NO_RAW, name="Input Strides")
    concrete_inputs: msgspec.Raw = msgspec.field(default=NO_RAW, name="Concrete Inputs")
    kernel_backend: Any = msgspec.field(default=None, name="kernel_backend")
    label: Any = msgspec.field(default=None, name="name")
    labels: Any = None
    sort_index: Any = None


NO_ARGS = Args()
decode_args = msgspec.json.Decoder(Args).decode
decode_event = msgspec.json.Decoder(Event).decode
decode_events = msgspec.json.Decoder(list[Event]).decode
decode_top = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
decode_any = msgspec.json.Decoder().decode
