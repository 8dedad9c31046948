"""Device work of CUDA and HIP graphs that the profiler did not record.

A graph's kernels follow one another without the host, so a gap before one of them that comes back
with the same length at each launch of the graph is a node without a row (Kineto leaves out some:
in one public trace 60 % of a graph's time). Such a gap belongs to the graph, and the kernel after
it starts that much later.
"""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import RuntimeKind
from replay.graph import thresholds
from replay.graph.arrays import Bool, Int64
from replay.graph.lessons import Lessons
from replay.graph.recorded import Recorded, take


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nodes:
    """Device rows of graph launches by (call, start)."""

    row: Int64
    graph: Int64
    """The same number for launches with the same kernels in the same order."""
    place: Int64
    """Ordinal within the launch."""
    gap_ns: Int64
    """Since the stream's previous task or, for the first of a stream, the call ended."""


def from_graphs(recorded: Recorded) -> Bool:
    """Device rows that a graph launch started: by its name, or by how many rows the call has."""
    host, device = recorded.host, recorded.device
    width = np.bincount(device.call[device.call >= 0], minlength=len(host))
    by_graph = (host.kind == RuntimeKind.GRAPH_LAUNCH) | (width > thresholds.LONE_LAUNCH_ROWS)
    return take(by_graph.astype(np.int64), device.call, 0).astype(bool)


def graph_gaps(recorded: Recorded, lessons: Lessons) -> Int64:
    """Per device row the time, ns, that unrecorded nodes of its graph take before it; 0 for none.

    Counted where at least `GRAPH_GAP_SAMPLES` launches of the graph show it, most of them within
    `TWIN_TOLERANCE_FRAC` of their median, and no other task of the launch ends just before.
    Launches that `lessons` leave out, by the moment of the call, show nothing.
    """
    found = np.zeros(len(recorded.device), np.int64)
    nodes = _nodes(recorded)
    if not len(nodes.row):
        return found
    _, twin = np.unique(np.stack([nodes.graph, nodes.place]), axis=1, return_inverse=True)
    twin = np.asarray(twin, np.int64).reshape(-1)
    call = recorded.device.call[nodes.row]
    shown = lessons.teaches(recorded.host.trace[call], recorded.host.ts_ns[call])
    gap_ns = _repeated(twin[shown], nodes.gap_ns[shown], int(twin.max()) + 1)
    found[nodes.row] = np.where(gap_ns > thresholds.GRAPH_GAP_NS, gap_ns, 0)[twin]
    return found


def _repeated(twin: Int64, gap_ns: Int64, n_twins: int) -> Int64:
    """Per twin the median gap if enough of them are near it; 0 else."""
    count = np.bincount(twin, minlength=n_twins)
    median_ns = np.zeros(n_twins, np.int64)
    first = np.cumsum(count) - count
    some = count > 0
    order = np.lexsort((gap_ns, twin))
    median_ns[some] = gap_ns[order[(first + (count - 1) // 2)[some]]]
    near = np.abs(gap_ns - median_ns[twin]) <= (
        thresholds.TWIN_TOLERANCE_FRAC * median_ns[twin] + thresholds.CLOCK_TOLERANCE_NS
    )
    enough = count >= thresholds.GRAPH_GAP_SAMPLES
    enough &= 2 * np.bincount(twin, near, minlength=n_twins) > count
    return np.where(enough, median_ns, 0)


def _latest_end_before(end_ns: Int64, launch: Int64) -> Int64:
    """Latest end among the earlier rows of the same launch; far in the past for its first."""
    low_ns = int(end_ns.min(initial=0))
    span_ns = int(end_ns.max(initial=0)) - low_ns + 2
    latest = np.maximum.accumulate(launch * span_ns + end_ns - low_ns + 1)
    before = np.concatenate([[0], latest[:-1]]) - launch * span_ns
    return np.where(before > 0, before + low_ns - 1, np.iinfo(np.int64).min // 2)


def _nodes(recorded: Recorded) -> _Nodes:
    device, host = recorded.device, recorded.host
    row = np.flatnonzero(from_graphs(recorded))
    row = row[np.lexsort((device.ts_ns[row], device.call[row]))]
    call, first = np.unique(device.call[row], return_index=True)
    size = np.diff(np.append(first, len(row)))
    kernels = [device.name[row[lo : lo + n]].tobytes() for lo, n in zip(first, size, strict=True)]
    number: dict[bytes, int] = {}
    graph = np.array([number.setdefault(names, len(number)) for names in kernels], np.int64)
    previous = np.maximum(row - 1, 0)
    follows = (row > 0) & (device.lane[previous] == device.lane[row])
    ready_ns = np.where(follows, device.end_ns[previous], np.iinfo(np.int64).min // 2)
    inside = follows & (device.call[previous] == device.call[row])
    called_ns = host.end_ns[device.call[row]]
    ready_ns = np.where(inside, ready_ns, np.maximum(ready_ns, called_ns))
    beside_ns = _latest_end_before(device.end_ns[row], np.repeat(np.arange(len(call)), size))
    joins = (beside_ns > ready_ns) & (device.ts_ns[row] - beside_ns <= thresholds.FROM_TIME_LAG_NS)
    ready_ns = np.where(joins, device.ts_ns[row], ready_ns)
    return _Nodes(
        row=row,
        graph=np.repeat(graph, size),
        place=np.arange(len(row)) - np.repeat(first, size),
        gap_ns=device.ts_ns[row] - ready_ns,
    )
