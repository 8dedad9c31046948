"""What HTA's answers mean, in whole nanoseconds over the plain JSON: no frames, no rounding."""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

Interval = tuple[int, int]
LAUNCHES = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync"}
WAITS = {"Event Sync", "Context Sync"}
SHORT_GAP_NS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A complete event; times in ns as recorded."""

    name: str
    category: str
    start: int
    dur: int
    stream: int
    correlation: int

    @property
    def end(self) -> int:
        return self.start + self.dur

    @property
    def on_device(self) -> bool:
        """As HTA tells a device row from a host row."""
        return (self.stream >= 0 and self.correlation >= 0) or self.name in WAITS


def read(path: Path) -> list[Row]:
    """The rows that HTA keeps: of several steps all but the last, and the work of their calls."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    events = json.loads(text, parse_float=Decimal)["traceEvents"]
    rows = [_row(e) for e in events if "dur" in e and e.get("cat", "Trace") != "Trace"]
    steps = [row for row in rows if "ProfilerStep" in row.name]
    if len({row.name for row in steps}) < 2:
        return rows
    last = max(row.start for row in steps if not row.on_device)
    host = [row for row in rows if not row.on_device and row.start < last]
    calls = {row.correlation for row in host}
    return host + [row for row in rows if row.on_device and row.correlation in calls]


def _row(event: dict[str, Any]) -> Row:
    args = event.get("args", {})
    stream = str(args.get("stream", -1))
    return Row(
        name=event["name"],
        category=event["cat"],
        start=int(event["ts"] * 1000),
        dur=int(event["dur"] * 1000),
        stream=int(stream) if re.fullmatch(r"-?\d+", stream) else -1,
        correlation=int(args.get("correlation", -1)),
    )


def kind(name: str) -> str:
    """COMMUNICATION, MEMORY, COMPUTATION or OTHER."""
    if re.match(r"nccl.*Kernel", name):
        return "COMMUNICATION"
    if re.match(r"Memcpy|Memset|dma", name):
        return "MEMORY"
    return "OTHER" if re.match(r".*Memcpy|Memset|.*Sync", name) else "COMPUTATION"


def union(rows: Iterable[Row]) -> list[Interval]:
    """Times in which any of the rows runs, as separate intervals in order."""
    merged: list[Interval] = []
    for start, end in sorted((row.start, row.end) for row in rows):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def length(intervals: Iterable[Interval]) -> int:
    return sum(end - start for start, end in intervals)


def temporal(rows: Sequence[Row]) -> tuple[int, int, int, int]:
    """Idle, compute, non-compute and total time of the device."""
    device = [row for row in rows if row.stream != -1]
    busy = union(device)
    total = busy[-1][1] - busy[0][0]
    idle = total - length(busy)
    compute = length(union(row for row in device if kind(row.name) == "COMPUTATION"))
    return idle, compute, total - compute - idle, total


def kinds(rows: Sequence[Row]) -> dict[frozenset[str], int]:
    """Time in which exactly these kinds run together; only the kinds that HTA counts."""
    changes: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for name in ("COMPUTATION", "COMMUNICATION", "MEMORY"):
        mine = (row for row in rows if row.stream != -1 and kind(row.name) == name)
        for start, end in union(mine):
            changes[start].append((name, 1))
            changes[end].append((name, -1))
    running: dict[str, int] = defaultdict(int)
    times: dict[frozenset[str], int] = defaultdict(int)
    before = 0
    for at in sorted(changes):
        together = frozenset(name for name, number in running.items() if number)
        times[together] += at - before
        before = at
        for name, change in changes[at]:
            running[name] += change
    return {together: time for together, time in times.items() if together and time}


def overlap(rows: Sequence[Row]) -> float:
    """Share of communication during which there is computation, percent."""
    times = kinds(rows)
    talking = {together: time for together, time in times.items() if "COMMUNICATION" in together}
    hidden = sum(time for together, time in talking.items() if "COMPUTATION" in together)
    return 100 * hidden / sum(talking.values())


def launches(rows: Sequence[Row], device_offset: int) -> list[tuple[int, int, int, int]]:
    """Correlation, duration of the call and of the kernel, time from one to the other."""
    wanted = {row.correlation for row in rows if row.name in LAUNCHES}
    kernels: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if row.stream != -1:
            kernels[row.correlation].append(row)
    return sorted(
        (row.correlation, row.dur, task.dur, max(task.start + device_offset - row.end, 0))
        for row in rows
        if row.stream == -1 and row.correlation in wanted
        for task in kernels[row.correlation]
    )


def idle(rows: Sequence[Row], device_offset: int) -> dict[tuple[int, str], int]:
    """Per stream: gaps because the call came late, short gaps, other gaps (below zero: overlap)."""
    calls = {r.correlation: r for r in rows if not r.on_device and r.correlation > 0}
    gaps: dict[tuple[int, str], int] = defaultdict(int)
    streams: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if row.stream != -1 and row.category in ("kernel", "gpu_memset", "gpu_memcpy"):
            streams[row.stream].append(row)
    for stream, tasks in streams.items():
        tasks.sort(key=lambda task: task.start)
        for task, following in pairwise(tasks):
            call = calls.get(following.correlation)
            gap = following.start - task.end
            if call and call.start > task.end + device_offset:
                gaps[stream, "host_wait"] += gap
            else:
                gaps[stream, "kernel_wait" if gap < SHORT_GAP_NS else "other"] += gap
    return gaps
