"""Kineto's Chrome trace JSON -> columns of one file."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec
import polars as pl

from ingest.errors import TraceError
from ingest.issues import IssueLog
from ingest.parsed import (
    CPU_OP_SCHEMA,
    DEVICE_SCHEMA,
    FLOW_SCHEMA,
    LABEL_SCHEMA,
    SLICE_SCHEMA,
    SYNC_SCHEMA,
    Parsed,
)
from ingest.readers.events import (
    NO_ARGS,
    NO_RAW,
    Args,
    Event,
    decode_any,
    decode_args,
    decode_events,
    decode_top,
    integer,
    number,
    text,
    triple,
    unsigned,
)
from ingest.readers.repair import (
    decode_piece,
    find_events,
    header_without_events,
    split_events,
)
from ingest.readers.source import Source
from ingest.vocab import DEVICE_CATEGORIES

OLD_CATEGORIES: Mapping[str, str] = {
    "Operator": "cpu_op",
    "Runtime": "cuda_runtime",
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "User annotation": "user_annotation",
    "PythonFunction": "python_function",
}
_LABELS = frozenset(
    {"process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"}
)
_PHASE_ISSUES = {"C": "event_counter", "i": "event_instant", "I": "event_instant"}
_LONGEST_NS = 1 << 62
_LONGEST_EXPONENT = 18


def read_kineto(source: Source, *, strict: bool) -> Parsed:
    """Read one file.

    Raises:
        TraceError: empty, not JSON, no trace in it, no events; with `strict` also anything that
            would have to be repaired or left out.
    """
    log = IssueLog()
    data = source.read(log)
    name = source.path.name
    try:
        header, events, complete = _decode_whole(data, name)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if strict:
            raise _strict_error(data, name, error) from error
        header, events, complete = _decode_piecewise(data, name, log)
    if strict and log.counts:
        raise TraceError(f"`{name}`: {', '.join(log.counts)}", hint="without --strict it is read")
    if not events:
        raise TraceError(f"`{name}`: no events")
    if log.counts.get("gzip_damaged"):
        complete = False
    return _Columns(log).build(header, events, complete=complete)


def _decode_whole(data: bytes, name: str) -> tuple[dict[str, object], list[Event], bool]:
    if data.lstrip()[:1] == b"[":
        return {}, decode_events(data), True
    top = decode_top(data)
    if "traceEvents" not in top:
        raise TraceError(f"`{name}`: no traceEvents: not a Chrome trace")
    header = {key: decode_any(raw) for key, raw in top.items() if key != "traceEvents"}
    return header, decode_events(top["traceEvents"]), True


def _decode_piecewise(
    data: bytes, name: str, log: IssueLog
) -> tuple[dict[str, object], list[Event], bool]:
    split = find_events(data)
    if split is None:
        raise TraceError(f"`{name}` {_why_no_trace(data)}")
    events = []
    for piece in split_events(data, split):
        cut = not split.complete and piece.offset + len(piece.body) == len(data)
        quiet = IssueLog() if cut else log
        event = decode_piece(piece, quiet)
        if event is not None:
            events.append(event)
    if not split.complete:
        log.at(
            "truncated",
            byte_offset=len(data),
            excerpt=data[-120:].decode("utf-8", "replace"),
            action=f"kept the {len(events)} whole events",
        )
    return header_without_events(data, split), events, split.complete


def _why_no_trace(data: bytes) -> str:
    try:
        decode_any(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "is not JSON"
    return "has no traceEvents: not a Chrome trace"


def _strict_error(data: bytes, name: str, error: Exception) -> TraceError:
    offset = _first_bad_byte(data)
    line = data.count(b"\n", 0, offset) + 1
    column = offset - (data.rfind(b"\n", 0, offset) + 1) + 1
    what = "is truncated" if offset >= len(data) else f"is not valid JSON: {error}"
    events = ""
    if offset >= len(data) and (split := find_events(data)) is not None:
        whole = sum(1 for piece in split_events(data, split) if piece.body.endswith(b"}"))
        events = f" after {whole} whole events"
    return TraceError(
        f"`{name}` {what}{events} (line {line}, column {column}, byte {offset})",
        hint="without --strict the file is repaired as far as possible and every repair is counted",
    )


def _first_bad_byte(data: bytes) -> int:
    """Offset at which a strict JSON decoder stops; the length of the data when they end early."""
    try:
        decode_any(data)
    except msgspec.DecodeError as error:
        message = str(error)
        _, found, tail = message.rpartition("(byte ")
        if found:
            return int(tail.rstrip(")"))
    except UnicodeDecodeError as error:
        return error.start
    return len(data)


class _Columns:
    """Collects the rows of each table while walking the events once."""

    def __init__(self, log: IssueLog) -> None:
        self.log = log
        self.slices: list[tuple[object, ...]] = []
        self.device: list[tuple[object, ...]] = []
        self.sync: list[tuple[object, ...]] = []
        self.cpu_op: list[tuple[object, ...]] = []
        self.flows: list[tuple[object, ...]] = []
        self.labels: list[tuple[object, ...]] = []

    def build(self, header: dict[str, object], events: list[Event], *, complete: bool) -> Parsed:
        for row, event in enumerate(events):
            self._add(row, event)
        return Parsed(
            header=header,
            n_events=len(events),
            complete=complete,
            slices=_frame(self.slices, SLICE_SCHEMA),
            device=_frame(self.device, DEVICE_SCHEMA),
            sync=_frame(self.sync, SYNC_SCHEMA),
            cpu_op=_frame(self.cpu_op, CPU_OP_SCHEMA),
            flows=_frame(self.flows, FLOW_SCHEMA),
            labels=_frame(self.labels, LABEL_SCHEMA),
            log=self.log,
        )

    def _add(self, row: int, event: Event) -> None:
        if event.ph == "X":
            self._add_slice(row, event)
        elif event.ph in {"s", "f", "t"}:
            ts = self._nanos(event.ts)
            label = event.cat or _word(event.name)
            self.flows.append(
                (event.ph, label, _word(event.id), _word(event.pid), _word(event.tid), ts)
            )
        elif event.ph == "M":
            self._add_label(event)
        else:
            self.log.count(_PHASE_ISSUES.get(event.ph, "event_other"))

    def _add_label(self, event: Event) -> None:
        kind = _word(event.name)
        if kind not in _LABELS:
            self.log.count("event_other")
            return
        args = _args(event)
        value = next((v for v in (args.label, args.labels, args.sort_index) if v is not None), None)
        self.labels.append((kind, _word(event.pid), _word(event.tid), _word(value)))

    def _add_slice(self, row: int, event: Event) -> None:
        ts = self._nanos(event.ts)
        if ts is None:
            self.log.count("event_without_time")
            return
        dur, repair = self._duration(event)
        category = event.cat or ""
        if category in OLD_CATEGORIES:
            category = OLD_CATEGORIES[category]
            self.log.count("old_category")
        args = _args(event)
        external = args.external_id if args.external_id is not None else args.old_external_id
        self.slices.append(
            (
                row,
                category,
                _word(event.name) or "",
                _word(event.pid),
                _word(event.tid),
                ts,
                dur,
                unsigned(args.correlation),
                unsigned(external),
                text(event.args),
                repair,
            )
        )
        if category in DEVICE_CATEGORIES:
            self.device.append(_device_row(row, event, args))
        elif category == "cuda_sync":
            self.sync.append(_sync_row(row, event, args))
        elif category == "cpu_op":
            self.cpu_op.append(_op_row(row, args))

    def _duration(self, event: Event) -> tuple[int, str | None]:
        dur = self._nanos(event.dur)
        if dur is None:
            self.log.count("missing_duration")
            return 0, "unfinished"
        if dur < 0:
            self.log.count("negative_duration")
            return 0, "clamped"
        return dur, None

    def _nanos(self, value: Decimal | None) -> int | None:
        """Exact ns of a decimal number of µs; None when it is missing or not usable."""
        if value is None or not value.is_finite() or value.adjusted() > _LONGEST_EXPONENT:
            return None
        nanos = int((value * 1000).to_integral_value())
        return nanos if -_LONGEST_NS < nanos < _LONGEST_NS else None


def _args(event: Event) -> Args:
    if event.args is NO_RAW:
        return NO_ARGS
    try:
        return decode_args(event.args)
    except msgspec.DecodeError:
        return NO_ARGS


def _word(value: Any) -> str | None:  # noqa: ANN401  (whatever the file holds)
    return None if value is None else str(value)


def _device_row(row: int, event: Event, args: Args) -> tuple[object, ...]:
    device = integer(args.device)
    stream = integer(args.stream)
    queued = number(args.queued)
    return (
        row,
        device if device is not None else integer(event.pid),
        stream if stream is not None else integer(event.tid),
        integer(args.context),
        None if queued is None else round(queued * 1000),
        integer(args.bytes),
        number(args.bandwidth),
        triple(args.grid),
        triple(args.block),
        integer(args.registers),
        integer(args.shared_memory),
        number(args.blocks_per_sm),
        number(args.warps_per_sm),
        number(args.occupancy),
        integer(args.priority),
        unsigned(args.graph_id),
        unsigned(args.graph_node_id),
    )


def _sync_row(row: int, event: Event, args: Args) -> tuple[object, ...]:
    stream = integer(args.stream)
    return (
        row,
        _word(args.sync_kind) or _word(event.name),
        integer(args.device),
        stream if stream is not None and stream < (1 << 31) else None,
        integer(args.wait_on_stream),
        unsigned(args.wait_on_event),
        unsigned(args.wait_on_record),
    )


def _op_row(row: int, args: Args) -> tuple[object, ...]:
    return (
        row,
        integer(args.sequence_number),
        integer(args.fwd_thread_id),
        integer(args.record_function_id),
        integer(args.ev_idx),
        text(args.input_dims),
        text(args.input_type),
        text(args.input_strides),
        text(args.concrete_inputs),
        _word(args.kernel_backend),
    )


def _frame(rows: list[tuple[object, ...]], schema: Mapping[str, Any]) -> pl.DataFrame:
    columns: Iterable[Iterable[object]] = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pl.DataFrame(
        {
            name: pl.Series(name, list(values), dtype=kind, strict=False)
            for (name, kind), values in zip(schema.items(), columns, strict=True)
        }
    )


def looks_like_trace(head: bytes) -> bool:
    """The first bytes could begin a Chrome trace: an object or list of JSON."""
    return head.lstrip()[:1] in {b"{", b"["}


def whole_events(data: bytes) -> Iterator[bytes]:
    """The whole events of a possibly broken file, as written."""
    split = find_events(data)
    if split is not None:
        yield from (piece.body for piece in split_events(data, split))
