"""Neighbouring kernels merged into one: one launch, and what they hand on stays on the chip."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from msgspec import Struct

from ingest.vocab import EdgeKind, KernelClass, TaskKind
from replay.graph.arrays import NONE, Bool, Int64, TaskGraph
from replay.graph.csr import destinations
from whatif.models.bound import Bound
from whatif.models.overlap import Float64
from whatif.transforms.base import Applied, Context, free
from whatif.transforms.devices import computing, device_of_lane
from whatif.transforms.host_calls import callers_of_only
from whatif.transforms.rewire import rewired
from whatif.transforms.select import is_compute, select

BY_COMPUTE = (KernelClass.GEMM, KernelClass.ATTENTION, KernelClass.CONVOLUTION)
"""Classes that keep their time: what they read and write hides behind what they multiply."""
HANDED_ON = {Bound.LOW: 1 / 2, Bound.NOMINAL: 1 / 3, Bound.HIGH: 0.0}
"""Part of a kernel's traffic that goes to or comes from its neighbour: half where it reads one
tensor and writes one, a third where it reads two, nothing where its neighbour uses other data."""
FIXED_QUANTILE = 0.02
"""The shortest kernels of a run show what every kernel costs, whatever it does."""


class Fuse(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="fuse"
):
    """Runs of selected kernels, next to each other on a stream, become one kernel each."""

    where: str

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--fuse {self.where}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Take the later launches away, and of the durations what fusion saves."""
        label = f"fuse {self.where}"
        chosen = free(graph, select(graph, self.where)) & is_compute(graph)
        pairs = _pairs(graph, chosen)
        if not len(pairs.later):
            reason = "no two of the selected kernels follow each other with nothing between them"
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        return Applied(
            graph=_fused(graph, pairs, context.bound),
            label=label,
            context=context,
            known_errors=(
                "fused kernels not judged: no public pair of runs differs in this alone",
            ),
            assumptions=(
                f"{len(pairs.later):,} kernels are merged into the one before them; what they hand "
                "on is taken for a third of their traffic, in the range for none or a half of it",
                "products, attention and convolution keep their time; the host work between "
                "the launches goes with them, in the range it stays",
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pairs:
    """Neighbours that become part of one kernel."""

    earlier: Int64
    later: Int64
    between: Int64
    """Host tasks between the launches of pairs; nothing else stands there."""


def _pairs(graph: TaskGraph, chosen: Bool) -> _Pairs:
    tasks = graph.tasks
    ids = np.flatnonzero((tasks.lane >= 0) & (device_of_lane(graph)[tasks.lane] >= 0))
    ids = ids[np.lexsort((ids, tasks.ts_ns[ids], tasks.lane[ids]))]
    earlier, later = ids[:-1], ids[1:]
    pair = chosen[earlier] & chosen[later] & (tasks.lane[earlier] == tasks.lane[later])
    pair &= (tasks.step[earlier] == tasks.step[later]) & ~_held_by_others(graph)[later]
    earlier, later = earlier[pair], later[pair]
    calls, first = _Calls(graph), tasks.caller[earlier].astype(np.int64)
    caller = tasks.caller[later]
    launched = (caller != NONE) & (calls.after(first) == caller)
    joined = launched | (first == caller)
    return _Pairs(
        earlier=earlier[joined], later=later[joined], between=calls.between(first[launched])
    )


def _held_by_others(graph: TaskGraph) -> Bool:
    """Tasks that wait for more than their launch and their stream."""
    own = np.isin(graph.edges.kind, (EdgeKind.LAUNCH, EdgeKind.GRAPH_LAUNCH, EdgeKind.STREAM_ORDER))
    held = np.zeros(graph.n_tasks, bool)
    held[destinations(graph)[~own]] = True
    return held


class _Calls:
    """Calls of host threads with the work between them."""

    def __init__(self, graph: TaskGraph) -> None:
        tasks = graph.tasks
        kinds = (TaskKind.HOST_WORK, TaskKind.HOST_CALL, TaskKind.HOST_WAIT)
        ids = np.flatnonzero(np.isin(tasks.kind, [int(kind) for kind in kinds]))
        self._ids = ids[np.lexsort((ids, tasks.ts_ns[ids], tasks.lane[ids]))]
        self._place = np.full(graph.n_tasks + 1, NONE, np.int64)
        self._place[self._ids] = np.arange(len(ids))
        no_work = tasks.kind[self._ids] != TaskKind.HOST_WORK
        behind = np.where(no_work, np.arange(len(ids)), len(ids))
        self._behind = np.append(np.minimum.accumulate(behind[::-1])[::-1], len(ids))
        """Per place the next one, itself among them, that is no work; the end for none."""
        self._is_call = np.append(tasks.kind[self._ids] == TaskKind.HOST_CALL, False)
        self._lane = np.append(tasks.lane[self._ids], NONE)

    def after(self, calls: Int64) -> Int64:
        """The call that follows each with nothing but work between; -1 for none."""
        place = self._place[calls]
        behind = self._behind[place + 1]
        found = (place >= 0) & self._is_call[behind] & (self._lane[behind] == self._lane[place])
        return np.where(found, np.append(self._ids, NONE)[behind], NONE)

    def between(self, calls: Int64) -> Int64:
        """The work between the calls and those that follow them; all of them have one."""
        first = self._place[calls] + 1
        count = self._behind[first] - first
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        work: Int64 = self._ids[np.repeat(first, count) + within]
        return work


def _fused(graph: TaskGraph, pairs: _Pairs, bound: Bound) -> TaskGraph:
    tasks, edges = graph.tasks, graph.edges
    later = np.zeros(graph.n_tasks, bool)
    later[pairs.later] = True
    dur_ns = np.rint(_device_time(graph, pairs, later, bound)).astype(np.int64)
    dur_ns[callers_of_only(graph, later)] = 0
    if bound != Bound.HIGH:
        dur_ns[pairs.between] = 0
    dst = destinations(graph)
    launches = later[dst] & np.isin(edges.kind, (EdgeKind.LAUNCH, EdgeKind.GRAPH_LAUNCH))
    changed = replace(
        graph,
        tasks=replace(tasks, dur_ns=dur_ns, residual_ns=np.where(later, 0, tasks.residual_ns)),
        edges=replace(edges, lag_ns=np.where(later[dst], 0, edges.lag_ns)),
    )
    return rewired(changed, ~launches)


def _device_time(graph: TaskGraph, pairs: _Pairs, later: Bool, bound: Bound) -> Float64:
    """Durations of all tasks, ns.

    Later kernels lose what each kernel costs to start, those that memory limits what they hand on.
    """
    tasks = graph.tasks
    kernels = tasks.dur_ns[computing(graph, device_of_lane(graph))]
    # An earlier what-if may have taken the time of all of them.
    least_ns = np.quantile(kernels, FIXED_QUANTILE, method="lower") if len(kernels) else 0
    fixed_ns = np.minimum(float(least_ns), tasks.dur_ns)
    moving_ns = tasks.dur_ns - fixed_ns
    by_memory = ~np.isin(tasks.kernel_class, [int(code) for code in BY_COMPUTE])
    saved_ns = np.zeros(graph.n_tasks)
    for end, size, smaller in _sizes(graph, pairs, np.where(by_memory, moving_ns, np.inf)):
        moves = np.isfinite(size) & (size > 0)
        share = np.divide(smaller, size, out=np.zeros(len(end)), where=moves)
        part = HANDED_ON[bound] * share
        np.add.at(saved_ns, end, np.where(by_memory[end], part * moving_ns[end], 0.0))
    left_ns: Float64 = np.where(later, 0.0, fixed_ns) + moving_ns - saved_ns
    return np.where(np.isin(np.arange(graph.n_tasks), _ends(pairs)), left_ns, tasks.dur_ns)


def _sizes(
    graph: TaskGraph, pairs: _Pairs, moving_ns: Float64
) -> Iterator[tuple[Int64, Float64, Float64]]:
    """Per end of the pairs: its kernels, what they move, and what the smaller of the pair moves.

    In bytes where the shapes tell those of both, else in the time for it (infinite for kernels
    that compute limits: their traffic is not known).
    """
    row = graph.work.rows_of(graph.tasks.slice_id)
    moved = np.append(graph.work.bytes, np.nan)[row]
    earlier, later = moved[pairs.earlier], moved[pairs.later]
    told = (earlier > 0) & (later > 0)
    earlier = np.where(told, earlier, moving_ns[pairs.earlier])
    later = np.where(told, later, moving_ns[pairs.later])
    smaller = np.minimum(earlier, later)
    yield pairs.earlier, earlier, smaller
    yield pairs.later, later, smaller


def _ends(pairs: _Pairs) -> Int64:
    return np.union1d(pairs.earlier, pairs.later)
