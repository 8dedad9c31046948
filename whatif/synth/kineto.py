"""Writes what was played as a trace in the format of PyTorch's profiler (Kineto)."""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from ingest.errors import UsageError
from whatif.models.kernels.machine import Machine
from whatif.synth.play import HostRow, Played, Work
from whatif.synth.script import COMPUTE, Group, Kernel, Thread
from whatif.synth.shown import record

BASE_NS = 1_767_189_312_000_000_000
"""`baseTimeNanoseconds`: the floor of a quarter of a year, the same on all ranks."""
ORIGIN_NS = 5_239_871_000_000_000
"""Start of the run after that base."""
WARP = 32
NAMES = {
    "V100": "Tesla V100-SXM2-32GB",
    "A100": "NVIDIA A100-SXM4-80GB",
    "H100": "NVIDIA H100 80GB HBM3",
    "H200": "NVIDIA H200",
    "B200": "NVIDIA B200",
}
CALLBACKS = {
    "cudaLaunchKernel": 211,
    "cudaLaunchKernelExC": 430,
    "cudaEventRecord": 135,
    "cudaStreamWaitEvent": 147,
    "cudaDeviceSynchronize": 165,
}
COMPUTE_MAJOR = {"volta": 7, "ampere": 8, "ada": 8, "hopper": 9, "blackwell": 10}

Event = dict[str, object]


def write_trace(  # noqa: PLR0913  (by keyword, each told in the file's header)
    played: Played,
    path: Path,
    *,
    machine: Machine,
    world_size: int,
    groups: tuple[Group, ...],
    nodes_of: int,
    metadata: Mapping[str, object],
) -> None:
    """Write a file (gzip without a time stamp, so that equal runs give equal bytes).

    Raises:
        UsageError: it cannot be written.
    """
    header: dict[str, object] = {
        "schemaVersion": 1,
        "deviceProperties": [_device(machine, number) for number in range(nodes_of)],
        "cupti_version": 26,
        "cuda_runtime_version": 12_080,
        "cuda_driver_version": 12_080,
        "distributedInfo": _distributed_info(played.rank, world_size, groups),
        "record_shapes": 1,
        "with_modules": 1,
        "trace_id": f"{played.rank:032X}",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
        **metadata,
    }
    try:
        with (
            path.open("wb") as file,
            gzip.GzipFile(fileobj=file, mode="wb", compresslevel=5, mtime=0, filename="") as stream,
        ):
            for text in _document(header, _events(played, machine, nodes_of), played.rank):
                stream.write(text.encode())
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror or error}", hint="give another folder"
        ) from error


def _document(header: dict[str, object], events: Iterator[Event], rank: int) -> Iterator[str]:
    yield "{\n"
    for key, value in header.items():
        yield f"  {json.dumps(key)}: {json.dumps(value)},\n"
    yield '  "traceEvents": [\n'
    comma = ""
    for event in events:
        yield comma + _line(event)
        comma = ",\n"
    yield f'\n  ],\n  "traceName": "rank{rank}.json"\n}}\n'


def device_name(machine: Machine) -> str:
    """As profilers write the device."""
    for short, name in NAMES.items():
        if machine.name.upper().startswith(short):
            return name
    return machine.name


def _device(machine: Machine, number: int) -> dict[str, object]:
    return {
        "id": number,
        "name": device_name(machine),
        "totalGlobalMem": int(machine.memory_bytes or 0),
        "computeMajor": COMPUTE_MAJOR.get(machine.architecture.split("_")[0], 9),
        "computeMinor": 0,
        "maxThreadsPerBlock": 1_024,
        "maxThreadsPerMultiprocessor": 2_048,
        "regsPerBlock": 65_536,
        "warpSize": WARP,
        "sharedMemPerBlock": 49_152,
        "numSms": machine.sms or 1,
        "regsPerMultiprocessor": 65_536,
        "sharedMemPerBlockOptin": 232_448,
        "sharedMemPerMultiprocessor": 233_472,
    }


def _distributed_info(rank: int, world_size: int, groups: tuple[Group, ...]) -> dict[str, object]:
    whole = Group(
        name="0", description="default_pg", ranks=tuple(range(world_size)), stream=COMPUTE
    )
    return {
        "backend": "nccl",
        "rank": rank,
        "world_size": world_size,
        "pg_count": 1 + len(groups),
        "pg_config": [_group(each) for each in (whole, *groups)],
        "nccl_version": "2.27.5",
    }


def _group(group: Group) -> dict[str, object]:
    return {
        "pg_name": group.name,
        "pg_desc": group.description,
        "backend_config": "cuda:nccl",
        "pg_size": len(group.ranks),
        "ranks": list(group.ranks),
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


def _events(played: Played, machine: Machine, nodes_of: int) -> Iterator[Event]:
    device = played.rank % nodes_of
    launches = {work.correlation for work in played.works}
    for index, row in enumerate(sorted(played.rows, key=lambda row: (row.start_ns, -row.end_ns))):
        yield _host_event(played.rank, row, index)
        if row.correlation in launches:
            thread = _thread(played.rank, row.thread)
            yield _flow("s", row.correlation, _process(played.rank), thread, row.start_ns)
    for work in played.works:
        yield _device_event(played.rank, device, work, machine)
        yield _flow("f", work.correlation, device, work.launch.stream, work.start_ns)
    for wait in played.waits:
        yield {
            "ph": "X",
            "cat": "cuda_sync",
            "name": "Stream Wait Event",
            "pid": device,
            "tid": wait.stream,
            "ts": ORIGIN_NS + wait.at_ns,
            "dur": 0,
            "args": {
                "cuda_sync_kind": "Stream Wait Event",
                "wait_on_stream": wait.on_stream,
                "wait_on_cuda_event_record_corr_id": wait.record,
                "wait_on_cuda_event_id": wait.record,
                "stream": wait.stream,
                "correlation": wait.correlation,
                "device": device,
                "context": 1,
            },
        }
    yield from _names(played, device)
    yield from _frame(played)


def _process(rank: int) -> int:
    return 41_000 + 113 * rank


def _thread(rank: int, thread: Thread) -> int:
    return _process(rank) + (87 if thread is Thread.AUTOGRAD else 0)


def _host_event(rank: int, row: HostRow, index: int) -> Event:
    args = dict(row.args)
    if row.correlation:
        args = {"cbid": CALLBACKS[row.name]} | {k: v for k, v in args.items() if v}
    elif row.category == "cpu_op":
        args["Ev Idx"] = index
    return {
        "ph": "X",
        "cat": row.category,
        "name": row.name,
        "pid": _process(rank),
        "tid": _thread(rank, row.thread),
        "ts": ORIGIN_NS + row.start_ns,
        "dur": row.end_ns - row.start_ns,
        "args": args,
    }


def _flow(phase: str, correlation: int, process: int, track: int, at_ns: int) -> Event:
    event: Event = {"ph": phase, "id": correlation, "pid": process, "tid": track}
    event |= {"ts": ORIGIN_NS + at_ns, "cat": "ac2g", "name": "ac2g"}
    return event if phase == "s" else event | {"bp": "e"}


def _device_event(rank: int, device: int, work: Work, machine: Machine) -> Event:
    stream = work.launch.stream
    args: dict[str, object] = {"External id": work.external, "queued": 0, "device": device}
    args |= {"context": 1, "stream": stream, "correlation": work.correlation}
    args |= _geometry(work.launch.kernel, machine)
    if work.launch.exchange is not None:
        args |= record(work.launch.exchange, rank)
    return {
        "ph": "X",
        "cat": "kernel",
        "name": work.launch.kernel.name,
        "pid": device,
        "tid": stream,
        "ts": ORIGIN_NS + work.start_ns,
        "dur": work.end_ns - work.start_ns,
        "args": args,
    }


def _geometry(kernel: Kernel, machine: Machine) -> dict[str, object]:
    blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2]
    sms = machine.sms or 1
    return {
        "registers per thread": kernel.registers,
        "shared memory": kernel.shared_bytes,
        "blocks per SM": round(blocks / sms, 6),
        "warps per SM": round(blocks * kernel.block / WARP / sms, 6),
        "grid": list(kernel.grid),
        "block": [kernel.block, 1, 1],
        "est. achieved occupancy %": 0,
    }


def _names(played: Played, device: int) -> Iterator[Event]:
    process = _process(played.rank)
    for number, labels, order in (
        (process, "CPU", process),
        (device, f"GPU {device}", 5_000_000 + device),
    ):
        for key, value in (("name", "python"), ("labels", labels), ("sort_index", order)):
            yield _meta(f"process_{key}", number, 0, {key: value})
    for stream in sorted({work.launch.stream for work in played.works}):
        yield _meta("thread_name", device, stream, {"name": f"stream {stream} "})
    for thread in Thread:
        track = _thread(played.rank, thread)
        purpose = "pt_autograd_0" if thread is Thread.AUTOGRAD else "python"
        yield _meta("thread_name", process, track, {"name": f"thread {track} ({purpose})"})


def _meta(name: str, process: int, track: int, args: dict[str, object]) -> Event:
    return {"name": name, "ph": "M", "ts": ORIGIN_NS, "pid": process, "tid": track, "args": args}


def _frame(played: Played) -> Iterator[Event]:
    yield {
        "ph": "X",
        "cat": "Trace",
        "ts": ORIGIN_NS,
        "dur": played.end_ns,
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
        "ts": ORIGIN_NS,
    }
    yield {
        "name": "Record Window End",
        **instant,
        "pid": "",
        "tid": "",
        "ts": ORIGIN_NS + played.end_ns + 8_000_000,
    }
