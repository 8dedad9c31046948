"""Kineto's Chrome trace JSON -> columns of one file."""

import sys
from collections.abc import Mapping
from typing import Any, Protocol, TypeGuard

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ingest.errors import TraceError
from ingest.issues import IssueLog
from ingest.lexicon.columns import RowNumbers
from ingest.lexicon.values import (
    Convert,
    decimal_nanos,
    floats,
    identifiers,
    integers,
    small_integers,
    triples,
)
from ingest.lexicon.values import (
    words as as_words,
)
from ingest.lexicon.words import Words, text
from ingest.parsed import (
    COUNTER_SCHEMA,
    CPU_OP_SCHEMA,
    DEVICE_SCHEMA,
    FLOW_SCHEMA,
    LABEL_SCHEMA,
    MEMORY_SCHEMA,
    SYNC_SCHEMA,
    ArgumentRows,
    Arguments,
    Parsed,
    Schema,
    Slices,
    Sparse,
)
from ingest.readers.batches import Batch, ragged
from ingest.readers.faults import HINT
from ingest.readers.sides import Side
from ingest.readers.source import Source
from ingest.readers.stream import read_events
from ingest.vocab import DEVICE_CATEGORIES

Int64 = NDArray[np.int64]

_LABELS = frozenset(
    {"process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"}
)
_COMPLETE, _ARROW_START, _ARROW_END, _LABEL, _COUNTER, _INSTANT, _OTHER = range(7)
_PHASES = {
    "X": _COMPLETE, "s": _ARROW_START, "f": _ARROW_END, "M": _LABEL, "C": _COUNTER,
    "i": _INSTANT, "I": _INSTANT,
}  # fmt: skip
_DEVICE: Mapping[str, tuple[str, Convert]] = {
    "device": ("device", integers),
    "stream": ("stream", integers),
    "context": ("context", integers),
    "queued_us": ("queued", floats),
    "bytes": ("bytes", integers),
    "memory_bw_gbps": ("memory bandwidth (GB/s)", floats),
    "grid": ("grid", triples),
    "block": ("block", triples),
    "registers_per_thread": ("registers per thread", integers),
    "shared_memory": ("shared memory", integers),
    "blocks_per_sm": ("blocks per SM", floats),
    "warps_per_sm": ("warps per SM", floats),
    "occupancy_percent": ("est. achieved occupancy %", floats),
    "priority": ("priority", integers),
    "graph_id": ("graph id", identifiers),
    "graph_node_id": ("graph node id", identifiers),
}
_SYNC: Mapping[str, tuple[str, Convert]] = {
    "kind": ("cuda_sync_kind", as_words),
    "stream": ("stream", small_integers),
    "wait_on_stream": ("wait_on_stream", small_integers),
    "wait_on_cuda_event_id": ("wait_on_cuda_event_id", identifiers),
    "wait_on_cuda_event_record_corr_id": ("wait_on_cuda_event_record_corr_id", identifiers),
}
_OP: Mapping[str, tuple[str, Convert | None]] = {
    "sequence_number": ("Sequence number", integers),
    "fwd_thread_id": ("Fwd thread id", integers),
    "record_function_id": ("Record function id", integers),
    "ev_idx": ("Ev Idx", integers),
    "input_dims": ("Input Dims", None),
    "input_type": ("Input type", None),
    "input_strides": ("Input Strides", None),
    "concrete_inputs": ("Concrete Inputs", None),
    "kernel_backend": ("kernel_backend", None),
}
_MEMORY: Mapping[str, tuple[str, Convert]] = {
    "device_type": ("Device Type", integers),
    "device": ("Device Id", integers),
    "addr": ("Addr", identifiers),
    "bytes": ("Bytes", integers),
    "total_allocated": ("Total Allocated", identifiers),
    "total_reserved": ("Total Reserved", identifiers),
}
_MEMORY_ARGUMENTS: Schema = {
    "row": pl.Int64,
    **{column: dtype for column, dtype in MEMORY_SCHEMA.items() if column in _MEMORY},
}
_TALKS = (
    r"(?i)c10d|record_param_comms|^(nccl|rccl|gloo|mpi|ucc|xccl|hccl|oneccl)|all_?reduce|all_?gather"
    r"|reduce_?scatter|all_?to_?all|broadcast|barrier|isend|irecv|send|recv|coalesced"
)
"""Names of rows that may describe a collective: their arguments stay in memory."""
CLAMPED, UNFINISHED = 1, 2


class Sink(Protocol):
    """Where arguments go as they are read."""

    count: int
    """How many have gone there: the number of the next."""

    def write(self, rows: ArgumentRows) -> None:
        """Take some."""


def read_kineto(source: Source, words: Words, sink: Sink, *, strict: bool) -> Parsed:
    """Read one file.

    Args:
        source: the file.
        words: the run's; grow as the file needs.
        sink: takes the arguments of complete events, batch by batch.
        strict: refuse what has to be repaired.

    Raises:
        TraceError: empty, not JSON, no trace in it, no events; with `strict` also anything that
            had to be repaired or left out.
    """
    log = IssueLog()
    reader = _Reader(words, sink, log)
    ending = read_events(source, words.lexicon, reader.take, log, strict=strict)
    if strict and log.repairs:
        told = ", ".join(f"{name} ({number})" for name, number in log.repairs.items())
        raise TraceError(f"`{source.path.name}` needs repairs: {told}", hint=HINT)
    return reader.parsed(ending.header, ending.digest, complete=ending.complete)


class _Reader:
    """Takes batches of events of one file and collects columns."""

    def __init__(self, words: Words, sink: Sink, log: IssueLog) -> None:
        self._words = words
        self._sink = sink
        self._log = log
        self._n_events = 0
        self._n_rows = 0
        self._parts: dict[str, list[Any]] = {}
        self._talks = np.zeros(0, np.bool_)
        self._steps = np.zeros(0, np.bool_)
        self._sides = {
            "device": Side(words, _DEVICE, DEVICE_SCHEMA),
            "sync": Side(words, _SYNC, SYNC_SCHEMA),
            "cpu_op": Side(words, _OP, CPU_OP_SCHEMA),
            "memory": Side(words, _MEMORY, _MEMORY_ARGUMENTS),
        }

    def take(self, batch: Batch) -> None:
        """Add the events of a batch."""
        words = self._words
        words.catch_up()
        self._n_events += len(batch)
        events = RowNumbers(batch.shape, batch.shape_first[:-1], batch.shape_numbers)
        arguments = RowNumbers(batch.args + 1, batch.args_first[:-1], batch.args_numbers)
        phase = words.codes("ph", events, lambda value: _PHASES.get(text(value), _OTHER))
        rows_of = [np.flatnonzero(phase == code) for code in range(_OTHER + 1)]
        self._complete(batch, events, arguments, rows_of[_COMPLETE])
        self._arrows(events, np.flatnonzero((phase == _ARROW_START) | (phase == _ARROW_END)), phase)
        self._label_rows(batch, events, arguments, rows_of[_LABEL])
        self._counter_rows(batch, events, rows_of[_COUNTER])
        self._instants(batch, events, arguments, rows_of[_INSTANT])
        others = events.shapes[rows_of[_OTHER]]
        without = int((~words.events.has("ph", others)).sum())
        self._log.count("event_without_phase", without)
        self._log.count("event_other", len(others) - without)

    def _add(self, part: str, value: Any) -> None:  # noqa: ANN401  (array or frame)
        if len(value):
            self._parts.setdefault(part, []).append(value)

    def _complete(
        self, batch: Batch, events: RowNumbers, arguments: RowNumbers, rows: Int64
    ) -> None:
        words, log = self._words, self._log
        ts, timed = words.events.nanos("ts", events.pick(rows), decimal_nanos)
        log.count("event_without_time", int((~timed).sum()))
        if not timed.all():
            rows, ts = rows[timed], ts[timed]
        events, arguments = events.pick(rows), arguments.pick(rows)
        dur, finished = words.events.nanos("dur", events, decimal_nanos)
        negative = finished & (dur < 0)
        log.count("missing_duration", int((~finished).sum()))
        log.count("negative_duration", int(negative.sum()))
        repair = np.where(negative, CLAMPED, np.where(finished, 0, UNFINISHED))
        written = words.codes("cat", events, words.category)
        category = words.modern(written)
        log.count("old_category", int((category != written).sum()))
        name = words.name_numbers(batch.name[rows], events)
        category = self._without_old_steps(category, name)
        self._add("category", category.astype(np.int16))
        self._add("name", name.astype(np.int32))
        self._add("thread", words.thread_numbers(events).astype(np.int32))
        self._add("ts", ts)
        self._add("dur", np.where(finished & ~negative, dur, 0))
        self._add("repair", repair.astype(np.int8))
        self._add("args_id", self._send_arguments(batch, rows).astype(np.int32))
        self._ids(arguments)
        self._add_sides(category, arguments)
        self._messages(batch, rows, name, arguments)
        self._n_rows += len(rows)

    def _without_old_steps(self, category: Int64, name: Int64) -> Int64:
        """Old profilers filed `ProfilerStep#N` under operators."""
        words = self._words
        known = len(self._steps)
        self._steps = np.concatenate([self._steps, words.names.matching("^ProfilerStep#", known)])
        moved = self._steps[name] & (category == words.categories.add("cpu_op"))
        return np.where(moved, words.categories.add("user_annotation"), category)

    def _send_arguments(self, batch: Batch, rows: Int64) -> Int64:
        """Hand arguments to the store; returns their numbers there."""
        present = batch.args[rows] >= 0
        sent = rows[present]
        numbers = np.full(len(rows), -1, np.int64)
        numbers[present] = self._sink.count + np.arange(len(sent))
        if len(sent):
            first, values = ragged(batch.args_first, batch.args_numbers, sent)
            self._sink.write(ArgumentRows(numbers[present], batch.args[sent], first, values))
        return numbers

    def _ids(self, arguments: RowNumbers) -> None:
        keys = self._words.arguments
        self._sparse("correlation", *keys.unsigned("correlation", arguments))
        found, known = keys.unsigned("External id", arguments)
        if keys.anywhere("external id"):
            older, present = keys.unsigned("external id", arguments)
            found, known = np.where(known, found, older), known | present
        self._sparse("external_id", found, known)

    def _sparse(self, part: str, values: NDArray[np.uint64], known: NDArray[np.bool_]) -> None:
        rows = np.flatnonzero(known)
        self._add(f"{part}_row", rows.astype(np.int32) + self._n_rows)
        self._add(part, values[rows])

    def _add_sides(self, category: Int64, arguments: RowNumbers) -> None:
        categories = self._words.categories
        on_device = np.array([word in DEVICE_CATEGORIES for word in categories.texts], np.bool_)
        device = on_device[category]
        sync = category == categories.add("cuda_sync")
        op = category == categories.add("cpu_op")
        for side, chosen in (("device", device), ("sync", sync), ("cpu_op", op)):
            rows = np.flatnonzero(chosen)
            self._sides[side].add(rows + self._n_rows, arguments.pick(rows))

    def _messages(self, batch: Batch, rows: Int64, name: Int64, arguments: RowNumbers) -> None:
        words = self._words
        known = len(self._talks)
        if known < len(words.names.texts):
            self._talks = np.concatenate([self._talks, words.names.matching(_TALKS, known)])
        kept = self._talks[name] | words.arguments.has("Collective name", arguments.shapes)
        kept &= batch.args[rows] >= 0
        found = np.flatnonzero(kept)
        if len(found):
            first, numbers = ragged(batch.args_first, batch.args_numbers, rows[found])
            self._add("message_row", (found + self._n_rows).astype(np.int32))
            self._add("message_shape", batch.args[rows[found]])
            self._add("message_count", np.diff(first))
            self._add("message_numbers", numbers)

    def _arrows(self, events: RowNumbers, rows: Int64, phase: Int64) -> None:
        words = self._words
        ts, timed = words.events.nanos("ts", events.pick(rows), decimal_nanos)
        self._log.count("event_without_time", int((~timed).sum()))
        rows, ts = rows[timed], ts[timed]
        if not len(rows):
            return
        picked = events.pick(rows)
        category = words.modern(words.codes("cat", picked, words.category))
        unnamed = np.flatnonzero(category == words.categories.add(""))
        if len(unnamed):
            names = words.events.objects("name", picked.pick(unnamed))
            category[unnamed] = [words.categories.add(text(one)) for one in names]
        number, is_whole, others = words.events.whole("id", picked)
        text_id = np.full(len(rows), -1, np.int64)
        if others.any():
            text_id[others] = words.events.ids("id", picked.pick(np.flatnonzero(others)))
        thread = words.thread_numbers(picked)
        for part, values in (
            ("flow_start", phase[rows] == _ARROW_START),
            ("flow_name", category.astype(np.int32)),
            ("flow_id", number),
            ("flow_known", is_whole),
            ("flow_text", text_id.astype(np.int32)),
            ("flow_thread", thread.astype(np.int32)),
            ("flow_ts", ts),
        ):
            self._add(part, values)

    def _flows(self) -> pl.DataFrame:
        known = pl.Series(self._column("flow_known", np.bool_))
        return pl.DataFrame(
            {
                "is_start": self._column("flow_start", np.bool_),
                "name": self._column("flow_name", np.int32),
                "id": pl.Series(self._column("flow_id", np.int64)).set(~known, None),
                "text_id": self._column("flow_text", np.int32),
                "thread": self._column("flow_thread", np.int32),
                "ts": self._column("flow_ts", np.int64),
            },
            schema=dict(FLOW_SCHEMA),
        )

    def _label_rows(
        self, batch: Batch, events: RowNumbers, arguments: RowNumbers, rows: Int64
    ) -> None:
        """Names of processes and threads; the same again (some files repeat them) is left out."""
        words = self._words
        name = words.name_numbers(batch.name[rows], events.pick(rows))
        texts = words.names.texts
        kinds = [one for one in np.unique(name).tolist() if texts[one] in _LABELS]
        known = np.isin(name, kinds)
        self._log.count("event_other", int((~known).sum()))
        rows, name = rows[known], name[known]
        thread = words.thread_numbers(events.pick(rows))
        shape, first, count = (
            batch.args[rows],
            arguments.first[rows],
            np.diff(batch.args_first)[rows],
        )
        what = words.distinct_arguments.number(
            shape[None], first[None], count[None], arguments.numbers
        )
        _, kept = np.unique(np.stack([name, thread, what]), axis=1, return_index=True)
        found = []
        for at in np.sort(kept).tolist():
            pid, tid = words.threads[int(thread[at])]
            numbers = arguments.numbers[first[at] : first[at] + count[at]]
            value = _label(words.arguments_of(int(shape[at]), numbers))
            found.append((texts[int(name[at])], pid, tid, value))
        self._add("labels", pl.DataFrame(found, schema=dict(LABEL_SCHEMA), orient="row"))

    def _counter_rows(self, batch: Batch, events: RowNumbers, rows: Int64) -> None:
        words = self._words
        ts, timed = words.events.nanos("ts", events.pick(rows), decimal_nanos)
        self._log.count("event_without_time", int((~timed).sum()))
        rows, ts = rows[timed], ts[timed]
        name = words.name_numbers(batch.name[rows], events.pick(rows))
        thread = words.thread_numbers(events.pick(rows))
        found: list[tuple[int, int, str, float]] = []
        for at, row in enumerate(rows.tolist()):
            before = len(found)
            numbers = batch.args_numbers[batch.args_first[row] : batch.args_first[row + 1]]
            title = words.names.texts[int(name[at])]
            series = words.arguments_of(int(batch.args[row]), numbers)
            found += [
                (int(thread[at]), int(ts[at]), _series_name(title, key, len(series)), float(value))
                for key, value in series.items()
                if _is_sample(value)
            ]
            self._log.count("counter_without_value", int(len(found) == before))
        self._add("counters", pl.DataFrame(found, schema=dict(COUNTER_SCHEMA), orient="row"))

    def _instants(
        self, batch: Batch, events: RowNumbers, arguments: RowNumbers, rows: Int64
    ) -> None:
        words = self._words
        name = words.name_numbers(batch.name[rows], events.pick(rows))
        is_memory = name == words.names.add("[memory]")
        self._log.count("event_instant", int((~is_memory).sum()))
        rows = rows[is_memory]
        ts, timed = words.events.nanos("ts", events.pick(rows), decimal_nanos)
        self._log.count("event_without_time", int((~timed).sum()))
        rows, ts = rows[timed], ts[timed]
        if len(rows):
            self._sides["memory"].add(rows, arguments.pick(rows))
            self._add("memory_ts", ts)
            self._add("memory_thread", words.thread_numbers(events.pick(rows)).astype(np.int32))

    def parsed(self, header: Mapping[str, object], digest: str, *, complete: bool) -> Parsed:
        """What was collected."""
        device = self._sides["device"].frame()
        thread = self._column("thread", np.int32)
        name = self._column("name", np.int32)
        sync = self._sides["sync"].frame()
        counts = self._column("message_count", np.int64)
        ts, dur = self._column("ts", np.int64), self._column("dur", np.int64)
        return Parsed(
            header=header,
            digest=digest,
            n_events=self._n_events,
            complete=complete,
            own_span_ns=(int(ts.min()), int((ts + dur).max())) if len(ts) else (0, 0),
            slices=Slices(
                self._column("category", np.int16),
                name,
                thread,
                ts,
                dur,
                self._column("args_id", np.int32),
                self._column("repair", np.int8),
            ),
            correlation=Sparse(
                self._column("correlation_row", np.int32), self._column("correlation", np.uint64)
            ),
            external_id=Sparse(
                self._column("external_id_row", np.int32), self._column("external_id", np.uint64)
            ),
            device=self._with_lanes(device, thread),
            sync=sync.with_columns(pl.col("kind").fill_null(self._names_of(sync, name))),
            cpu_op=self._sides["cpu_op"].frame(),
            flows=self._flows(),
            labels=self._frame("labels", LABEL_SCHEMA),
            memory=self._sides["memory"]
            .frame()
            .with_columns(
                ts=pl.Series(self._column("memory_ts", np.int64)),
                thread=pl.Series(self._column("memory_thread", np.int32)),
            )
            .select(MEMORY_SCHEMA.keys()),
            counters=self._frame("counters", COUNTER_SCHEMA),
            messages=Arguments(
                self._column("message_row", np.int32),
                self._column("message_shape", np.int64),
                np.concatenate([[0], np.cumsum(counts)]),
                self._column("message_numbers", np.int64),
            ),
            log=self._log,
        )

    def _column(self, part: str, dtype: type[np.generic]) -> NDArray[Any]:
        parts = self._parts.pop(part, [])
        return np.concatenate(parts) if parts else np.zeros(0, dtype)

    def _frame(self, part: str, schema: Schema) -> pl.DataFrame:
        parts = self._parts.pop(part, [])
        typed = [one.select(schema.keys()).cast(pl.Schema(schema)) for one in parts]
        return pl.concat(typed) if typed else pl.DataFrame(schema=dict(schema))

    def _names_of(self, frame: pl.DataFrame, name: NDArray[np.int32]) -> pl.Series:
        texts = self._words.names.texts
        return pl.Series(
            [texts[one] for one in name[frame["row"].to_numpy()].tolist()], dtype=pl.String
        )

    def _with_lanes(self, device: pl.DataFrame, thread: NDArray[np.int32]) -> pl.DataFrame:
        """Device and stream as recorded, else as the process and the thread say."""
        of_row = thread[device["row"].to_numpy()]
        distinct, place = np.unique(of_row, return_inverse=True)
        pairs = [self._words.threads[one] for one in distinct.tolist()]
        lanes = pl.DataFrame(pairs, schema=["pid", "tid"], orient="row").cast(pl.String)
        lanes = lanes.cast(pl.Int64, strict=False)[place]
        return device.with_columns(
            pl.col("device").fill_null(lanes["pid"]), pl.col("stream").fill_null(lanes["tid"])
        )


def _is_sample(value: object) -> TypeGuard[int | float]:
    """A number that a double holds."""
    if not isinstance(value, int) or isinstance(value, bool):
        return isinstance(value, float)
    return abs(value) <= sys.float_info.max


def _series_name(title: str, key: str, series: int) -> str:
    return title if series == 1 else f"{title}: {key}"


def _label(args: Mapping[str, object]) -> str | None:
    found = (args.get(key) for key in ("name", "labels", "sort_index"))
    value = next((value for value in found if value is not None), None)
    return None if value is None else text(value)
