"""Writes what a rank's profiler saw as a Kineto trace, in the shape of PyTorch 2.9 on H100."""

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

from ddp8_events import Work
from ddp8_host import COMPUTE_STREAM, NCCL_STREAM, HostRow, Rank

BASE_NS = 1_767_189_312_000_000_000
"""`baseTimeNanoseconds`: the floor of a quarter of a year, the same on all ranks."""
ORIGIN_NS = 5_239_871_000_000_000
"""Start of the simulation after that base."""
GPU = "NVIDIA H100 80GB HBM3"

Event = dict[str, object]


def write_trace(rank: Rank, world_size: int, path: Path) -> None:
    """Write `path` (gzip without a time stamp, so that equal runs give equal bytes)."""
    text = "".join(_document(rank, world_size))
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=9, mtime=0, filename="") as stream:
        stream.write(text.encode())
    path.write_bytes(buffer.getvalue())


def _document(rank: Rank, world_size: int) -> Iterator[str]:
    header: dict[str, object] = {
        "schemaVersion": 1,
        "deviceProperties": [_device(number) for number in range(world_size)],
        "cupti_version": 26,
        "cuda_runtime_version": 12_080,
        "cuda_driver_version": 12_080,
        "distributedInfo": _distributed_info(rank.number, world_size),
        "record_shapes": 1,
        "trace_id": f"{rank.number:032X}",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
    }
    yield "{\n"
    for key, value in header.items():
        yield f"  {json.dumps(key)}: {json.dumps(value)},\n"
    yield '  "traceEvents": [\n'
    yield ",\n".join(_line(event) for event in _events(rank))
    yield f'\n  ],\n  "traceName": "rank{rank.number}.json"\n}}\n'


def _device(number: int) -> dict[str, object]:
    return {
        "id": number,
        "name": GPU,
        "totalGlobalMem": 85_028_372_480,
        "computeMajor": 9,
        "computeMinor": 0,
        "maxThreadsPerBlock": 1_024,
        "maxThreadsPerMultiprocessor": 2_048,
        "regsPerBlock": 65_536,
        "warpSize": 32,
        "sharedMemPerBlock": 49_152,
        "numSms": 132,
        "regsPerMultiprocessor": 65_536,
        "sharedMemPerBlockOptin": 232_448,
        "sharedMemPerMultiprocessor": 233_472,
    }


def _distributed_info(rank: int, world_size: int) -> dict[str, object]:
    group = {
        "pg_name": "0",
        "pg_desc": "default_pg",
        "backend_config": "cuda:nccl",
        "pg_size": world_size,
        "ranks": list(range(world_size)),
    }
    return {
        "backend": "nccl",
        "rank": rank,
        "world_size": world_size,
        "pg_count": 1,
        "pg_config": [group],
        "nccl_version": "2.27.5",
    }


def _line(event: Event) -> str:
    """One event as text; times become microseconds with three decimals without any float."""
    parts = []
    for key, value in event.items():
        if key in ("ts", "dur"):
            assert isinstance(value, int)
            text = f"{value // 1_000}.{value % 1_000:03d}"
        else:
            text = json.dumps(value)
        parts.append(f'"{key}": {text}')
    return "    {" + ", ".join(parts) + "}"


def _events(rank: Rank) -> Iterator[Event]:
    recording = rank.recording
    calls = [row for row in recording.rows if row.correlation]
    operators = sorted(
        (row for row in recording.rows if not row.correlation),
        key=lambda row: (-row.thread, row.start_ns, -row.end_ns),
    )
    for index, row in enumerate(operators):
        yield _host_event(rank, row) | {"args": row.args | {"Ev Idx": index}}
    launches = {work.correlation for work in rank.launched}
    for row in calls:
        yield _host_event(rank, row) | {"args": row.args}
        if row.correlation in launches:
            yield _flow("s", row.correlation, rank.process, row.thread, row.start_ns)
    for stream in (rank.compute, rank.nccl):
        for work in stream.finished:
            if recording.start_ns <= work.start_ns and work.end_ns <= recording.stop_ns:
                yield from _device_events(rank, work, stream.number)
    yield from _annotations(rank, operators)
    yield from _names(rank)
    yield from _frame(rank)


def _host_event(rank: Rank, row: HostRow) -> Event:
    return {
        "ph": "X",
        "cat": row.category,
        "name": row.name,
        "pid": rank.process,
        "tid": row.thread,
        "ts": ORIGIN_NS + row.start_ns,
        "dur": row.end_ns - row.start_ns,
    }


def _flow(phase: str, correlation: int, process: int, track: int, at_ns: int) -> Event:
    event: Event = {"ph": phase, "id": correlation, "pid": process, "tid": track}
    event |= {"ts": ORIGIN_NS + at_ns, "cat": "ac2g", "name": "ac2g"}
    return event if phase == "s" else event | {"bp": "e"}


def _device_events(rank: Rank, work: Work, stream: int) -> Iterator[Event]:
    seen_from_launch = work.launched_ns >= rank.recording.start_ns
    args: dict[str, object] = {}
    if seen_from_launch:
        args["External id"] = work.external
    if work.category == "kernel":
        args["queued"] = 0
    args |= {"device": rank.number, "context": 1, "stream": stream}
    args |= {"correlation": work.correlation, **work.args}
    if seen_from_launch:
        args |= work.metadata
    yield {
        "ph": "X",
        "cat": work.category,
        "name": work.name,
        "pid": rank.number,
        "tid": stream,
        "ts": ORIGIN_NS + work.start_ns,
        "dur": work.end_ns - work.start_ns,
        "args": args,
    }
    yield _flow("f", work.correlation, rank.number, stream, work.start_ns)


def _annotations(rank: Rank, operators: list[HostRow]) -> Iterator[Event]:
    """Annotations as the GPU sees them: 1 ns early and 2 ns long, as Kineto writes them."""
    for row in operators:
        if row.category != "user_annotation":
            continue
        for stream in (rank.compute, rank.nccl):
            inside = [
                work for work in stream.finished if row.start_ns <= work.launched_ns < row.end_ns
            ]
            on_autograd_thread = row.thread != rank.process
            if not inside or (on_autograd_thread and stream is rank.compute):
                continue
            yield {
                "ph": "X",
                "cat": "gpu_user_annotation",
                "name": row.name,
                "pid": rank.number,
                "tid": stream.number,
                "ts": ORIGIN_NS + inside[0].start_ns - 1,
                "dur": inside[-1].end_ns - inside[0].start_ns + 2,
                "args": {"External id": row.args["External id"]},
            }


def _names(rank: Rank) -> Iterator[Event]:
    process, device = rank.process, rank.number
    yield from _process(rank, process, "python", "CPU", process)
    yield from _process(rank, device, "python", f"GPU {device}", 5_000_000 + device)
    for stream in (COMPUTE_STREAM, NCCL_STREAM):
        yield from _track(rank, device, stream, f"stream {stream} ")
    threads = {row.thread for row in rank.recording.rows}
    for thread in sorted(threads):
        purpose = "pt_autograd_0" if thread != process else "python"
        yield from _track(rank, process, thread, f"thread {thread} ({purpose})")


def _process(rank: Rank, process: int, name: str, labels: str, order: int) -> Iterator[Event]:
    for key, value in (("name", name), ("labels", labels), ("sort_index", order)):
        yield _meta(rank, f"process_{key}", process, 0, {key: value})


def _track(rank: Rank, process: int, track: int, name: str) -> Iterator[Event]:
    yield _meta(rank, "thread_name", process, track, {"name": name})
    yield _meta(rank, "thread_sort_index", process, track, {"sort_index": track})


def _meta(rank: Rank, name: str, process: int, track: int, args: dict[str, object]) -> Event:
    at_ns = ORIGIN_NS + rank.recording.start_ns
    return {"name": name, "ph": "M", "ts": at_ns, "pid": process, "tid": track, "args": args}


def _frame(rank: Rank) -> Iterator[Event]:
    start_ns = ORIGIN_NS + rank.recording.start_ns
    stop_ns = ORIGIN_NS + rank.recording.stop_ns
    yield {
        "ph": "X",
        "cat": "Trace",
        "ts": start_ns,
        "dur": stop_ns - start_ns,
        "pid": "Spans",
        "tid": "PyTorch Profiler",
        "name": "PyTorch Profiler (0)",
        "args": {"Op count": 0},
    }
    instant: Event = {"ph": "i", "s": "g"}
    yield {
        "name": "Iteration Start: PyTorch Profiler",
        **instant,
        "pid": "Traces",
        "tid": "Trace PyTorch Profiler",
        "ts": start_ns,
    }
    yield {"name": "Record Window End", **instant, "pid": "", "tid": "", "ts": stop_ns + 8_000_000}
