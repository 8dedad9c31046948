"""Gathered rows, links and collectives -> frames of the base tables."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ingest.issues import BY_NAME
from ingest.lexicon.columns import Values
from ingest.lexicon.lexer import NUMBER
from ingest.lexicon.shapes import decoded
from ingest.lexicon.words import Words, text
from ingest.normalise.align import MemberState, Operations
from ingest.normalise.awaited import Awaited
from ingest.normalise.correlate import Links
from ingest.normalise.device_repairs import MOVED
from ingest.normalise.device_times import DeviceTimes
from ingest.normalise.flops import count_flops
from ingest.normalise.gather import Gathered, TraceFile, innermost_at, innermost_of, last_started
from ingest.normalise.meetings import RunCollectives, group_rows
from ingest.normalise.messages import DTYPE_NAMES
from ingest.normalise.steps import RECORDED, steps
from ingest.vocab import CollectiveKind

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

_INT64_LIMIT = 1 << 63
_PER_MILLION = 1e6
_STEP_NAME = re.compile(RECORDED, re.ASCII)
_ID_IN_KEY = 1 << 48
_GPU = re.compile(r"^GPU (\d{1,4})\b", re.ASCII)
_REPAIRS = (None, "clamped", "unfinished", "moved", "clipped")
"""By code: none, `CLAMPED`, `UNFINISHED` (of the reader), `MOVED`, `CLIPPED`."""
_OP_TEXTS = ("input_dims", "input_type", "input_strides", "concrete_inputs", "kernel_backend")
_P2P = (CollectiveKind.SEND, CollectiveKind.RECV, CollectiveKind.SEND_RECV)
_TWICE = (CollectiveKind.ALL_REDUCE,)
_SHARED = (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_TO_ALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Everything known of a run, before it is written."""

    gathered: Gathered
    links: Links
    times: DeviceTimes
    collectives: RunCollectives
    ts: Int64
    """Starts of all slices on the common clock, ns after the run's origin."""
    origin_moved_ns: int
    """By how much the origin moved when the clocks were aligned."""
    device: pl.DataFrame
    """Device columns by slice id."""

    def rank(self, rows: Int64 | slice) -> Int64:
        """Rank of some slices."""
        ranks = np.array([file.rank for file in self.gathered.files], np.int64)
        return ranks[self.gathered.trace[rows]]


def frames(rows: Rows, at_once: int) -> Iterator[tuple[str, pl.DataFrame, float]]:
    """Every base table with its frame, in the order of writing; slices in parts of `at_once`.

    The third is the share of all rows that was written before.
    """
    names, dense = _names(rows.gathered)
    yield "name", names, 0.0
    yield "shape", _shapes(rows.gathered.words), 0.0
    recorded = _steps(rows.gathered)
    n = max(len(rows.gathered), 1)
    for first in range(0, len(rows.gathered), at_once):
        yield "slice", _slice(rows, slice(first, first + at_once), dense, recorded), first / n
    small: tuple[tuple[str, Callable[[], pl.DataFrame]], ...] = (
        ("trace", lambda: _trace(rows)),
        ("device", lambda: _device(rows.gathered)),
        ("process", lambda: _process(rows.gathered)),
        ("thread", lambda: _thread(rows)),
        ("step", lambda: steps(rows.gathered, rows.links, rows.ts)),
        ("cpu_op", lambda: _cpu_op(rows)),
        ("runtime", lambda: _runtime(rows)),
        ("kernel", lambda: _kernel(rows, dense, recorded)),
        ("sync", lambda: _sync(rows)),
        ("flow", lambda: _flow(rows)),
        ("memory_event", lambda: _memory_event(rows)),
        ("counter", lambda: _counter(rows)),
        ("process_group", lambda: _process_group(rows)),
        ("collective", lambda: _collective(rows)),
        ("collective_rank", lambda: _collective_rank(rows)),
        ("import_stat", lambda: _import_stat(rows.gathered)),
        ("import_log", lambda: _import_log(rows.gathered)),
    )
    for table, make in small:
        yield table, make(), 1.0


def _process_group(rows: Rows) -> pl.DataFrame:
    types = {"ranks": pl.List(pl.Int64)}
    return pl.DataFrame(group_rows(rows.collectives), schema_overrides=types, strict=False)


def _or_null(values: NDArray[np.integer]) -> pl.Series:
    """Row numbers as a column, -1 as NULL."""
    series = pl.Series(values)
    return series.set(series < 0, None)


def _names(gathered: Gathered) -> tuple[pl.DataFrame, Int32]:
    """Names that a row has, and their ids by number of the words; a broken file leaves others."""
    texts = gathered.words.names.texts
    used = np.zeros(len(texts), np.bool_)
    used[gathered.name] = True
    dense = np.cumsum(used, dtype=np.int32) - 1
    names = [texts[number] for number in np.flatnonzero(used).tolist()]
    return pl.DataFrame({"name_id": np.arange(len(names)), "name": names}), dense


def _shapes(words: Words) -> pl.DataFrame:
    """Shapes of arguments: the texts between the numbers, and which numbers are Python's ids."""
    legal = words.lexicon.args.legal(np.arange(len(words.lexicon.args.texts)))
    found = [
        (number, text.decode("utf-8").split(chr(NUMBER)), *words.python_places(number))
        for number, text in enumerate(words.lexicon.args.texts)
        if legal[number]
    ]
    schema: dict[str, pl.DataType | type[pl.DataType]] = {
        "shape_id": pl.Int64, "parts": pl.List(pl.String), "python_id_at": pl.Int64,
        "python_parent_at": pl.Int64, "python_module_at": pl.Int64,
    }  # fmt: skip
    return pl.DataFrame(found, schema=schema, orient="row")


def _trace(rows: Rows) -> pl.DataFrame:
    clocks = rows.collectives.matched.clocks
    stacks = rows.gathered.is_category("python_function")
    described = []
    for trace_id, file in enumerate(rows.gathered.files):
        mine = rows.gathered.trace == trace_id
        ends = rows.ts[mine] + rows.gathered.dur[mine]
        described.append(
            {
                "trace_id": trace_id,
                "clock_offset_ns": int(clocks.offset_ns[trace_id]),
                "clock_uncertainty_ns": int(np.ceil(clocks.uncertainty_ns[trace_id])),
                "clock_drift_ppm": float(clocks.drift[trace_id]) * _PER_MILLION,
                "clock_base_rank": rows.gathered.files[int(clocks.base[trace_id])].rank,
                "clock_samples": int(clocks.samples[trace_id]),
                "clock_method": clocks.method[trace_id],
                "ts_origin_ns": rows.gathered.origin_ns,
                "device_clock_offset_ns": rows.times.offset_ns[trace_id],
                "launch_skew_ns": rows.times.skew_ns[trace_id],
                "first_ts": int(rows.ts[mine].min()) if mine.any() else None,
                "last_ts": int(ends.max()) if mine.any() else None,
                **_header(file, has_stacks=bool((stacks & mine).any())),
            }
        )
    return pl.DataFrame(described, strict=False, infer_schema_length=None)


def _header(file: TraceFile, *, has_stacks: bool) -> dict[str, object]:
    header = file.parsed.header
    info = header.get("distributedInfo")
    backend = info.get("backend") if isinstance(info, dict) else None
    shapes = file.parsed.cpu_op["input_dims"].is_not_null().any()
    return {
        "path": str(file.path),
        "sha256": file.parsed.digest,
        "format": "kineto",
        "rank": file.rank,
        "world_size": file.world_size,
        "rank_source": file.rank_source,
        "backend": _text(backend),
        "host": _text(header.get("host_name")),
        "pid": _int(header.get("pid")),
        "trace_name": _text(header.get("traceName")),
        "schema_version": _int(header.get("schemaVersion")),
        "display_time_unit": _text(header.get("displayTimeUnit")),
        "base_time_ns": _int(header.get("baseTimeNanoseconds")),
        "n_events": file.parsed.n_events,
        "complete": file.parsed.complete,
        "has_shapes": bool(shapes),
        "has_stacks": has_stacks,
        "has_sync_events": len(file.parsed.sync) > 0,
        "metadata": json.dumps(dict(header), ensure_ascii=False, default=str),
    }


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _int(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if -_INT64_LIMIT <= value < _INT64_LIMIT else None


def _device(gathered: Gathered) -> pl.DataFrame:
    found = []
    for trace_id, file in enumerate(gathered.files):
        listed = file.parsed.header.get("deviceProperties")
        for place, props in enumerate(listed if isinstance(listed, list) else []):
            if isinstance(props, dict):
                found.append(_device_row(trace_id, place, props))
    return pl.DataFrame(found, strict=False, infer_schema_length=None)


def _device_row(trace_id: int, place: int, props: Mapping[str, object]) -> dict[str, object]:
    number = _int(props.get("id"))
    name = _text(props.get("name"))
    return {
        "trace_id": trace_id,
        "device": place if number is None else number,
        "name": name,
        "vendor": _vendor(name),
        "total_mem_bytes": _int(props.get("totalGlobalMem")),
        "num_sms": _int(props.get("numSms")),
        "compute_major": _int(props.get("computeMajor")),
        "compute_minor": _int(props.get("computeMinor")),
        "max_threads_per_sm": _int(props.get("maxThreadsPerMultiprocessor")),
        "props": json.dumps(dict(props), ensure_ascii=False),
    }


def _vendor(name: str | None) -> str | None:
    words = {"nvidia": "NVIDIA", "tesla": "NVIDIA", "amd": "AMD", "instinct": "AMD"}
    lowered = (name or "").lower()
    return next((vendor for word, vendor in words.items() if word in lowered), None)


def _labels(gathered: Gathered, kind: str, keys: list[str], name: str) -> pl.DataFrame:
    parts = [
        file.parsed.labels.filter(pl.col("kind") == kind).with_columns(
            pl.lit(trace_id, dtype=pl.Int32).alias("trace_id")
        )
        for trace_id, file in enumerate(gathered.files)
    ]
    frame = pl.concat(parts).with_columns(pl.col("pid", "tid").fill_null(""))
    return frame.unique(keys, keep="first").select(*keys, pl.col("value").alias(name))


def _process(gathered: Gathered) -> pl.DataFrame:
    processes = gathered.threads.select("upid", "trace_id", "pid").unique(maintain_order=True)
    keys = ["trace_id", "pid"]
    for kind, name in (
        ("process_name", "name"),
        ("process_labels", "labels"),
        ("process_sort_index", "sort_index"),
    ):
        processes = processes.join(_labels(gathered, kind, keys, name), on=keys, how="left")
    return processes.with_columns(pl.col("sort_index").cast(pl.Int64, strict=False))


def _thread(rows: Rows) -> pl.DataFrame:
    gathered = rows.gathered
    keys = ["trace_id", "pid", "tid"]
    threads = gathered.threads
    for kind, name in (("thread_name", "name"), ("thread_sort_index", "sort_index")):
        threads = threads.join(_labels(gathered, kind, keys, name), on=keys, how="left")
    threads = threads.with_columns(pl.col("sort_index").cast(pl.Int64, strict=False))
    roles = pl.DataFrame({"utid": gathered.threads["utid"], "role": _roles(rows)})
    return threads.drop("pid").join(roles, on="utid", how="left")


def _roles(rows: Rows) -> list[str]:
    gathered = rows.gathered
    utid = gathered.utid
    marks: dict[str, Bool] = {
        "stream": gathered.on_device,
        "main": gathered.is_category("user_annotation") & gathered.name_matches("^ProfilerStep#"),
        "autograd": gathered.name_matches("^autograd::engine::"),
        "dataloader": gathered.name_matches("DataLoader|dataloader"),
        "collective": gathered.name_matches(r"^(?:gloo|mpi|ucc):"),
    }
    roles = ["other"] * len(gathered.threads)
    for role, rule in reversed(marks.items()):
        for thread in np.unique(utid[rule]).tolist():
            roles[thread] = role
    return roles


class _Steps(NamedTuple):
    """The rows that are recorded steps, in order, and their numbers, with a NULL behind them."""

    rows: Int64
    numbers: pl.Series


def _steps(gathered: Gathered) -> _Steps:
    recorded = np.flatnonzero(
        gathered.is_category("user_annotation") & gathered.name_matches("^ProfilerStep#")
    )
    numbers = [_step_number(gathered.name_text(row)) for row in recorded.tolist()]
    return _Steps(recorded, pl.Series([*numbers, None], dtype=pl.Int64))


def _step_of(rows: Rows, recorded: _Steps, ids: Int64 | slice) -> pl.Series:
    """Number of the step around some slices; NULL outside, and for numbers no column holds."""
    around = rows.links.step_row[ids]
    place = np.searchsorted(recorded.rows, around)
    return recorded.numbers.gather(np.where(around >= 0, place, len(recorded.rows)))


def _step_number(name: str) -> int | None:
    return int(name.removeprefix("ProfilerStep#")) if _STEP_NAME.fullmatch(name) else None


def _slice(rows: Rows, part: slice, dense: Int32, recorded: _Steps) -> pl.DataFrame:
    gathered = rows.gathered
    ids = np.arange(len(gathered), dtype=np.int32)[part]
    repair = np.where(rows.times.moved[part], MOVED, gathered.repair[part])
    return pl.DataFrame(
        {
            "id": ids,
            "trace_id": gathered.trace[part],
            "rank": rows.rank(part),
            "cat": pl.Series(gathered.words.categories.texts).gather(gathered.category[part]),
            "name_id": dense[gathered.name[part]],
            "ts": rows.ts[part],
            "dur": gathered.dur[part],
            "utid": gathered.utid[part],
            "depth": gathered.depth[part],
            "parent_id": _or_null(gathered.parent[part]),
            "self_dur": gathered.self_dur[part],
            "step": _step_of(rows, recorded, part),
            "correlation": _of_rows(gathered.correlation, ids),
            "external_id": _of_rows(gathered.external_id, ids),
            "repair": pl.Series(_REPAIRS, dtype=pl.String).gather(repair),
            "args_id": _or_null(gathered.args_id[part]),
        }
    )


def _of_rows(sparse: tuple[Int32, NDArray[np.uint64]], ids: Int32) -> pl.Series:
    """Ids that few rows have, for a stretch of rows."""
    rows, values = sparse
    first, last = np.searchsorted(rows, [ids[0], ids[-1] + 1]) if len(ids) else (0, 0)
    dense, known = np.zeros(len(ids), np.uint64), np.zeros(len(ids), np.bool_)
    dense[rows[first:last] - ids[0]], known[rows[first:last] - ids[0]] = values[first:last], True
    return pl.Series(dense).set(pl.Series(~known), None)


def _cpu_op(rows: Rows) -> pl.DataFrame:
    frame = rows.gathered.ids("cpu_op")
    ids = frame["id"].to_numpy()
    values = rows.gathered.words.values
    texts = {column: _texts(frame[column], values) for column in _OP_TEXTS}
    return frame.drop("trace_id", *_OP_TEXTS).with_columns(
        **texts,
        module_id=_or_null(rows.links.module.of(ids)),
        phase=pl.Series(rows.links.phase[ids]),
        flops=count_flops(rows.gathered, frame),
    )


def _texts(numbers: pl.Series, values: Values) -> pl.Series:
    """Values as they are written; a text without its quotes."""
    distinct = numbers.unique()
    texts = [None if number is None else _written(values.text(number)) for number in distinct]
    table = pl.DataFrame({"number": distinct, "text": pl.Series(texts, dtype=pl.String)})
    joined = pl.DataFrame({"number": numbers}).join(
        table, on="number", how="left", maintain_order="left", nulls_equal=True
    )
    return joined["text"]


def _written(text: bytes) -> str:
    return str(decoded(text)) if text.startswith(b'"') else text.decode("utf-8")


def _runtime(rows: Rows) -> pl.DataFrame:
    ids = np.flatnonzero(rows.links.is_runtime)
    return pl.DataFrame(
        {
            "id": ids,
            "kind": rows.links.runtime_kind[ids],
            "n_gpu_events": rows.links.n_device[ids],
        }
    )


def _kernel(rows: Rows, dense: Int32, recorded: _Steps) -> pl.DataFrame:
    gathered, links = rows.gathered, rows.links
    frame = rows.device
    ids = frame["id"].to_numpy()
    previous, gap = _previous(rows, frame)
    return frame.select(
        "id",
        "trace_id",
        "device",
        "stream",
        "context",
        "grid",
        "block",
        "registers_per_thread",
        "shared_memory",
        "blocks_per_sm",
        "warps_per_sm",
        "priority",
        "graph_id",
        "graph_node_id",
        "bytes",
        "memory_bw_gbps",
        (pl.col("queued_us") * 1000).round().cast(pl.Int64).alias("queue_dur"),
        (pl.col("occupancy_percent") / 100).alias("est_occupancy_frac"),
        rank=pl.Series(rows.rank(ids)),
        cat=pl.Series(gathered.words.categories.texts).gather(gathered.category[ids]),
        name_id=pl.Series(dense[gathered.name[ids]]),
        ts=pl.Series(rows.ts[ids]),
        dur=pl.Series(gathered.dur[ids]),
        step=_step_of(rows, recorded, ids),
        phase=pl.Series(links.phase[ids]),
        runtime_id=_or_null(links.call[ids]),
        op_id=_or_null(links.op.of(ids)),
        annotation_id=_or_null(links.annotation.of(ids)),
        module_id=_or_null(links.module.of(ids)),
        linked=pl.Series(links.call[ids] >= 0),
        link_method=pl.Series(["correlation", None]).gather((links.call[ids] < 0).astype(np.int8)),
        prev_id=previous,
        gap_dur=gap,
        **{"class": pl.Series(links.kernel_class[ids])},
    )


def _previous(rows: Rows, frame: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
    """Previous device row of the stream and the gap to its end (below zero: overlap)."""
    ids = frame["id"].to_numpy()
    timed = frame.select("trace_id", "device", "stream").with_columns(
        ts=pl.Series(rows.ts[ids]), end=pl.Series(rows.ts[ids] + rows.gathered.dur[ids]), id=ids
    )
    timed = timed.with_columns(place=pl.int_range(pl.len())).sort(
        ["trace_id", "device", "stream", "ts", "id"]
    )
    lane = ["trace_id", "device", "stream"]
    timed = timed.with_columns(
        previous=pl.col("id").shift(1).over(lane),
        gap=pl.col("ts") - pl.col("end").shift(1).over(lane),
    ).sort("place")
    return timed["previous"], timed["gap"]


def _sync(rows: Rows) -> pl.DataFrame:
    frame = rows.gathered.ids("sync")
    ids = frame["id"].to_numpy()
    known, values = rows.gathered.correlation
    at = np.minimum(np.searchsorted(known, ids), max(len(known) - 1, 0))
    present = known[at] == ids if len(known) else np.zeros(len(ids), np.bool_)
    correlation = pl.Series(values[at] if len(known) else np.zeros(len(ids), np.uint64))
    return frame.drop("trace_id").with_columns(
        correlation=correlation.set(pl.Series(~present), None)
    )


def _flow(rows: Rows) -> pl.DataFrame:
    return pl.concat(_arrows(rows, trace_id) for trace_id in range(len(rows.gathered.files)))


def _arrows(rows: Rows, trace_id: int) -> pl.DataFrame:
    """Arrows with both ends: start and end at the innermost row there; halves are counted."""
    file, words = rows.gathered.files[trace_id], rows.gathered.words
    flows = file.parsed.flows
    flows, keys = _keyed(flows)
    starts = flows.filter("is_start").unique(keys, keep="first", maintain_order=True)
    ends = flows.filter(~pl.col("is_start")).unique(keys, keep="first", maintain_order=True)
    both = starts.join(ends, on=keys, how="inner", suffix="_in", nulls_equal=True)
    file.parsed.log.count("half_flow", len(starts) + len(ends) - 2 * len(both))
    odd = [None if one < 0 else text(words.values[one]) for one in both["text_id"]]
    return both.select(
        pl.col("id").cast(pl.String).fill_null(pl.Series(odd, dtype=pl.String)),
        trace_id=pl.lit(trace_id, dtype=pl.Int32),
        name=pl.Series(words.categories.texts).gather(both["name"]),
        slice_out=_at(rows, trace_id, both["thread"], both["ts"]),
        slice_in=_at(rows, trace_id, both["thread_in"], both["ts_in"]),
    )


def _keyed(flows: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """What arrows are joined by: name and id, as one number where both fit into it."""
    ids = flows["id"].fill_null(-1).to_numpy()
    if len(ids) and int(ids.min()) >= 0 and int(ids.max()) < _ID_IN_KEY:
        key = pl.col("name").cast(pl.Int64) * _ID_IN_KEY + pl.col("id")
        return flows.with_columns(key=key), ["key"]
    return flows, ["name", "id", "text_id"]


def _at(rows: Rows, trace_id: int, thread: pl.Series, ts: pl.Series) -> pl.Series:
    """Slice that starts at a time on a thread, the innermost where several do; NULL for none."""
    gathered = rows.gathered
    base_ns = gathered.files[trace_id].base_ns - gathered.origin_ns
    utid = gathered.utid_of[trace_id][thread.to_numpy()]
    moments = ts.to_numpy() + base_ns
    found = last_started(gathered, utid, moments)
    if not len(gathered):
        return _or_null(found)
    return _or_null(np.where(gathered.ts[found] == moments, found, -1))


def _memory_event(rows: Rows) -> pl.DataFrame:
    """Allocations and releases, with the operator that was running."""
    found = []
    for trace_id, file in enumerate(rows.gathered.files):
        frame = _on_thread(rows, trace_id, file.parsed.memory)
        utid, at = frame["utid"].fill_null(-1).to_numpy(), frame["raw_ts"].to_numpy()
        inside = innermost_at(rows.gathered, utid, at)
        op = innermost_of(rows.gathered, inside, rows.gathered.is_category("cpu_op"))
        found.append(frame.drop("raw_ts").with_columns(op_id=_or_null(op)))
    return pl.concat(found)


def _on_thread(rows: Rows, trace_id: int, frame: pl.DataFrame) -> pl.DataFrame:
    """Instants of a file on the run's clock and threads; `raw_ts` is on the clock of the slices."""
    gathered = rows.gathered
    file = gathered.files[trace_id]
    raw = frame["ts"].to_numpy() + file.base_ns - gathered.origin_ns
    moved = rows.origin_moved_ns
    clocks = rows.collectives.matched.clocks
    aligned = clocks.corrected(raw + moved, np.full(len(raw), trace_id)) - moved
    return frame.drop("thread").with_columns(
        ts=pl.Series(aligned),
        raw_ts=pl.Series(raw),
        trace_id=pl.lit(trace_id, dtype=pl.Int32),
        rank=pl.lit(file.rank, dtype=pl.Int64),
        utid=_or_null(gathered.utid_of[trace_id][frame["thread"].to_numpy()]),
    )


def _counter(rows: Rows) -> pl.DataFrame:
    """Samples of counters; the device where the process is named after one."""
    found = []
    for trace_id, file in enumerate(rows.gathered.files):
        frame = file.parsed.counters
        threads = rows.gathered.words.threads
        named = [_GPU.search(threads[one][0]) for one in frame["thread"].to_list()]
        device = [None if one is None else int(one[1]) for one in named]
        timed = _on_thread(rows, trace_id, frame).drop("utid", "raw_ts")
        found.append(timed.with_columns(device=pl.Series(device, dtype=pl.Int64)))
    return pl.concat(found)


def _collective(rows: Rows) -> pl.DataFrame:
    matched, members = rows.collectives.matched, rows.collectives.described.members
    operations = matched.operations
    n = len(matched.method)
    ts, end = rows.ts[members.slice_id], rows.ts[members.slice_id] + _dur(rows)
    at = matched.collective
    first_arrival = _reduce(np.minimum, ts, at, n)
    last_arrival = _reduce(np.maximum, ts, at, n)
    last = np.lexsort((ts, at))
    last_rank = np.zeros(n, np.int64)
    last_rank[at[last]] = members.rank[last]
    first_member = np.zeros(n, np.int64)
    first_member[at[::-1]] = np.arange(len(at))[::-1]
    recorded = np.array(rows.collectives.described.recorded, object)
    algbw, busbw = _bandwidth(operations)
    dtype = [DTYPE_NAMES[code] if code >= 0 else None for code in operations.dtype.tolist()]
    return pl.DataFrame(
        {
            "coll_id": np.arange(n),
            "pg_key": _or_null(operations.group),
            "seq": _or_null(members.seq[first_member]),
            "comms_id": _or_null(members.comms_id[first_member]),
            "kind": operations.kind.astype(np.int8),
            "collective": pl.Series(recorded[first_member].tolist(), dtype=pl.String),
            "dtype": pl.Series(dtype, dtype=pl.String),
            "msg_bytes": _or_null(operations.size_bytes),
            "group_size": _or_null(operations.members_expected),
            "is_p2p": np.isin(operations.kind, _P2P),
            "on_host": operations.on_host,
            "n_expected": operations.members_expected,
            "n_seen": operations.members_seen,
            "match_method": pl.Series([str(how) for how in matched.method], dtype=pl.String),
            "first_arrival": first_arrival,
            "last_arrival": last_arrival,
            "last_rank": last_rank,
            "end_ts": _reduce(np.maximum, end, at, n),
            "transfer_dur": operations.transfer_ns,
            "transfer_low_dur": operations.transfer_low_ns,
            "transfer_high_dur": operations.transfer_high_ns,
            "algbw": algbw,
            "busbw": busbw,
        }
    )


def _dur(rows: Rows) -> Int64:
    return rows.gathered.dur[rows.collectives.described.members.slice_id]


def _reduce(how: np.ufunc, values: Int64, at: Int64, n: int) -> Int64:
    order = np.argsort(at, kind="stable")
    if not n:
        return np.zeros(0, np.int64)
    first = np.searchsorted(at[order], np.arange(n))
    reduced: Int64 = how.reduceat(values[order], first)
    return reduced


def _bandwidth(operations: Operations) -> tuple[pl.Series, pl.Series]:
    """Algbw and busbw in GB/s as nccl-tests define them; NULL without size or time."""
    kind, size_bytes = operations.kind, operations.size_bytes
    transfer_ns, members = operations.transfer_ns, operations.members_expected
    known = (size_bytes > 0) & (transfer_ns > 0)
    algbw = np.where(known, size_bytes / np.maximum(transfer_ns, 1), 0.0)
    share = (members - 1) / np.maximum(members, 1)
    factor = np.where(np.isin(kind, _TWICE), 2 * share, np.where(np.isin(kind, _SHARED), share, 1))
    unknown = pl.Series(~known)
    return (
        pl.Series(algbw).set(unknown, None),
        pl.Series(algbw * factor).set(unknown, None),
    )


def _collective_rank(rows: Rows) -> pl.DataFrame:
    matched, members = rows.collectives.matched, rows.collectives.described.members
    states = [MemberState(code).name.lower() for code in matched.state.tolist()]
    return pl.DataFrame(
        {
            "coll_id": matched.collective,
            "rank": members.rank,
            "kernel_id": members.slice_id,
            "op_id": _or_null(rows.collectives.record),
            "ts": rows.ts[members.slice_id],
            "dur": _dur(rows),
            "wait_dur": matched.split.wait_ns,
            "transfer_dur": matched.split.transfer_ns,
            "outside_wait_dur": matched.split.outside_wait_ns,
            "state": pl.Series(states, dtype=pl.String),
            "waits_for": _waits_for(matched.awaited, members.slice_id),
        }
    )


def _waits_for(awaited: Awaited, slice_id: Int64) -> pl.Series:
    """Per member the slices it waits for, NULL among them for one without a file; NULL for all."""
    of_row = dict(enumerate(slice_id.tolist()))
    lists = [
        None if rows is None else [of_row.get(row) for row in rows] for rows in awaited.lists()
    ]
    return pl.Series(lists, dtype=pl.List(pl.Int64))


def _import_stat(gathered: Gathered) -> pl.DataFrame:
    rows = [
        (trace_id, name, severity, value, text)
        for trace_id, file in enumerate(gathered.files)
        for name, severity, value, text in file.parsed.log.stats()
    ]
    schema = ["trace_id", "name", "severity", "value", "description"]
    return pl.DataFrame(rows, schema=schema, orient="row")


def failure_stat(n_failed: int) -> pl.DataFrame:
    """The row of `import_stat` that counts files of which nothing could be read."""
    issue = BY_NAME["file_failed"]
    rows = (
        [(None, issue.name, issue.severity.value, n_failed, issue.description)] if n_failed else []
    )
    schema = {
        "trace_id": pl.Int64,
        "name": pl.String,
        "severity": pl.String,
        "value": pl.Int64,
        "description": pl.String,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _import_log(gathered: Gathered) -> pl.DataFrame:
    rows = [
        (trace_id, place.name, place.byte_offset, place.excerpt, place.action)
        for trace_id, file in enumerate(gathered.files)
        for place in file.parsed.log.places
    ]
    schema = {
        "trace_id": pl.Int64,
        "name": pl.String,
        "byte_offset": pl.Int64,
        "event_excerpt": pl.String,
        "action": pl.String,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")
