"""Kineto's Chrome trace JSON -> columns of one file."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

import msgspec
import numpy as np
import polars as pl

from ingest.errors import TraceError
from ingest.issues import IssueLog
from ingest.parsed import (
    CPU_OP_SCHEMA,
    DEVICE_SCHEMA,
    FLOW_SCHEMA,
    LABEL_SCHEMA,
    SYNC_SCHEMA,
    Parsed,
)
from ingest.readers.decode import Decoded, decode
from ingest.readers.events import NO_ARGS, NO_RAW, Args, Event, decode_args
from ingest.readers.source import Source
from ingest.readers.values import (
    Convert,
    floats,
    identifiers,
    integers,
    nanos,
    raw_text,
    small_integers,
    triples,
    words,
)
from ingest.vocab import DEVICE_CATEGORIES

OLD_CATEGORIES: Mapping[str, str] = {
    "Operator": "cpu_op",
    "Runtime": "cuda_runtime",
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "User annotation": "user_annotation",
    "PythonFunction": "python_function",
    "async": "ac2g",
}
_LABELS = frozenset(
    {"process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"}
)
_ISSUE_OF_PHASE = {"C": "event_counter", "i": "event_instant", "I": "event_instant"}
_COLUMNS_OF_DEVICE: Mapping[str, tuple[str, Convert]] = {
    "device": ("device", integers),
    "stream": ("stream", integers),
    "context": ("context", integers),
    "queued_us": ("queued", floats),
    "bytes": ("bytes", integers),
    "memory_bw_gbps": ("bandwidth", floats),
    "grid": ("grid", triples),
    "block": ("block", triples),
    "registers_per_thread": ("registers", integers),
    "shared_memory": ("shared_memory", integers),
    "blocks_per_sm": ("blocks_per_sm", floats),
    "warps_per_sm": ("warps_per_sm", floats),
    "occupancy_percent": ("occupancy", floats),
    "priority": ("priority", integers),
    "graph_id": ("graph_id", identifiers),
    "graph_node_id": ("graph_node_id", identifiers),
}
_COLUMNS_OF_SYNC: Mapping[str, tuple[str, Convert]] = {
    "kind": ("sync_kind", words),
    "stream": ("stream", small_integers),
    "wait_on_stream": ("wait_on_stream", small_integers),
    "wait_on_cuda_event_id": ("wait_on_event", identifiers),
    "wait_on_cuda_event_record_corr_id": ("wait_on_record", identifiers),
}
_COLUMNS_OF_OP: Mapping[str, tuple[str, Convert]] = {
    "sequence_number": ("sequence_number", integers),
    "fwd_thread_id": ("fwd_thread_id", integers),
    "record_function_id": ("record_function_id", integers),
    "ev_idx": ("ev_idx", integers),
    "input_dims": ("input_dims", raw_text),
    "input_type": ("input_type", raw_text),
    "input_strides": ("input_strides", raw_text),
    "concrete_inputs": ("concrete_inputs", raw_text),
    "kernel_backend": ("kernel_backend", words),
}


def read_kineto(source: Source, *, strict: bool) -> Parsed:
    """Read one file.

    Raises:
        TraceError: empty, not JSON, no trace in it, no events; with `strict` also anything that
            had to be repaired or left out.
    """
    log = IssueLog()
    data = source.read(log)
    decoded = decode(data, source.path.name, log, strict=strict)
    parsed = _columns(decoded, log)
    if strict and log.repairs:
        told = ", ".join(f"{name} ({number})" for name, number in log.repairs.items())
        raise TraceError(
            f"`{source.path.name}` needs repairs: {told}",
            hint="without --strict they are made, counted and listed in import_log",
        )
    return parsed


def _columns(decoded: Decoded, log: IssueLog) -> Parsed:
    of_phase: dict[str, list[Event]] = {}
    for event in decoded.events:
        of_phase.setdefault(event.ph, []).append(event)
    complete = of_phase.pop("X", [])
    ends = [*of_phase.pop("s", ()), *of_phase.pop("f", ())]
    labels = [event for event in of_phase.pop("M", ()) if event.name in _LABELS]
    for phase, events in of_phase.items():
        log.count(_ISSUE_OF_PHASE.get(phase, "event_other"), len(events))
    slices, args = _slices(complete, log)
    category = slices["cat"]
    return Parsed(
        header=decoded.header,
        n_events=len(decoded.events),
        complete=decoded.complete and "gzip_damaged" not in log.counts,
        slices=slices,
        device=_device(slices, args),
        sync=_side(args, category == "cuda_sync", _COLUMNS_OF_SYNC)
        .with_columns(pl.col("kind").fill_null(slices.filter(category == "cuda_sync")["name"]))
        .cast(pl.Schema(SYNC_SCHEMA)),
        cpu_op=_side(args, category == "cpu_op", _COLUMNS_OF_OP).cast(pl.Schema(CPU_OP_SCHEMA)),
        flows=_flows(ends),
        labels=_label_rows(labels),
        log=log,
    )


def _slices(events: Sequence[Event], log: IssueLog) -> tuple[pl.DataFrame, list[Args]]:
    """The complete events that have a time, and their decoded arguments."""
    ts, timed = nanos([event.ts for event in events])
    log.count("event_without_time", int((~timed).sum()))
    if not timed.all():
        events = [event for event, keep in zip(events, timed.tolist(), strict=True) if keep]
    dur, finished = nanos([event.dur for event in events])
    negative = finished & (dur < 0)
    log.count("missing_duration", int((~finished).sum()))
    log.count("negative_duration", int(negative.sum()))
    args = [_args(event) for event in events]
    frame = pl.DataFrame(
        {
            "cat": words([event.cat for event in events]).fill_null(""),
            "name": words([event.name for event in events]).fill_null(""),
            "pid": words([event.pid for event in events]).fill_null(""),
            "tid": words([event.tid for event in events]).fill_null(""),
            "ts": ts[timed],
            "dur": np.where(finished & ~negative, dur, 0),
            "correlation": identifiers([one.correlation for one in args]),
            "external_id": identifiers([_external_id(one) for one in args]),
            "args": raw_text([event.args for event in events]),
            "repair": _repair(finished, negative),
        }
    )
    return _modern(frame, log), args


def _repair(finished: np.ndarray, negative: np.ndarray) -> pl.Series:
    word = np.where(negative, "clamped", np.where(finished, "", "unfinished"))
    return pl.Series(word.tolist(), dtype=pl.String).replace("", None)


def _modern(frame: pl.DataFrame, log: IssueLog) -> pl.DataFrame:
    """Today's categories; old profilers filed `ProfilerStep#N` under operators."""
    category = frame["cat"]
    old = category.is_in(list(OLD_CATEGORIES))
    log.count("old_category", int(old.sum()))
    modern = pl.col("cat").replace(OLD_CATEGORIES)
    is_step = (modern == "cpu_op") & pl.col("name").str.starts_with("ProfilerStep#")
    return frame.with_columns(
        cat=pl.when(is_step).then(pl.lit("user_annotation")).otherwise(modern)
    )


def _args(event: Event) -> Args:
    if event.args is NO_RAW:
        return NO_ARGS
    try:
        return decode_args(event.args)
    except msgspec.ValidationError:  # a list, a text or null: nothing in it becomes a column
        return NO_ARGS


def _external_id(args: Args) -> object:
    return args.old_external_id if args.external_id is None else args.external_id


def _side(
    args: Sequence[Args], chosen: pl.Series, columns: Mapping[str, tuple[str, Convert]]
) -> pl.DataFrame:
    """Columns of the chosen rows, from their arguments."""
    rows = chosen.arg_true()
    picked = [args[row] for row in rows]
    made = {
        name: convert(list(map(attrgetter(field), picked)))
        for name, (field, convert) in columns.items()
    }
    return pl.DataFrame({"row": rows.cast(pl.Int64), **made})


def _device(slices: pl.DataFrame, args: Sequence[Args]) -> pl.DataFrame:
    """Device and stream as recorded, else as the process and the thread say."""
    chosen = slices["cat"].is_in(list(DEVICE_CATEGORIES))
    frame = _side(args, chosen, _COLUMNS_OF_DEVICE)
    rows = slices.filter(chosen)
    return frame.with_columns(
        pl.col("device").fill_null(rows["pid"].cast(pl.Int64, strict=False)),
        pl.col("stream").fill_null(rows["tid"].cast(pl.Int64, strict=False)),
    ).cast(pl.Schema(DEVICE_SCHEMA))


def _flows(events: Sequence[Event]) -> pl.DataFrame:
    ts, timed = nanos([event.ts for event in events])
    frame = pl.DataFrame(
        {
            "ph": words([event.ph for event in events]),
            "name": words([event.cat or event.name for event in events]).replace(OLD_CATEGORIES),
            "id": words([event.id for event in events]),
            "pid": words([event.pid for event in events]).fill_null(""),
            "tid": words([event.tid for event in events]).fill_null(""),
            "ts": ts,
        },
        schema=dict(FLOW_SCHEMA),
    )
    return frame.filter(pl.Series(timed))


def _label_rows(events: Iterable[Event]) -> pl.DataFrame:
    rows = [(event, _args(event)) for event in events]
    return pl.DataFrame(
        {
            "kind": words([event.name for event, _ in rows]),
            "pid": words([event.pid for event, _ in rows]).fill_null(""),
            "tid": words([event.tid for event, _ in rows]).fill_null(""),
            "value": words([_label(args) for _, args in rows]),
        },
        schema=dict(LABEL_SCHEMA),
    )


def _label(args: Args) -> object:
    found = (args.label, args.labels, args.sort_index)
    return next((value for value in found if value is not None), None)
