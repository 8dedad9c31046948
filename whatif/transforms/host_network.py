"""Collectives on the host over another network."""

from dataclasses import dataclass, replace

import numpy as np

from ingest.units import BytesPerSecond, Nanos
from ingest.vocab import TaskKind
from replay.graph.arrays import Float64, Int64, TaskGraph
from whatif.models import gloo
from whatif.models.bound import Bound
from whatif.transforms.base import free, with_durations
from whatif.transforms.host_transfers import (
    moving_ns,
    receivers_last,
    sends_seen_elsewhere,
    with_moving,
)
from whatif.transforms.links import Jobs, link_numbers

CONTRADICTION = 1.6
"""Factor between the rate that was said and the one that the transfers show, beyond which one of
them is wrong. On links of known rates all-reduces show 0.96 to 1.04 of it, messages, whose first
bytes may be faster, up to 1.5."""
END = {Bound.NOMINAL: np.minimum, Bound.LOW: np.minimum, Bound.HIGH: np.maximum}
"""Which answer of several that are as well founded is the end of the range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostNetwork:
    """The network between hosts, in the recording and in the scenario; one direction, one way."""

    base_bytes_per_s: BytesPerSecond | None = None
    """None: read off the recorded transfers."""
    new_bytes_per_s: BytesPerSecond | None = None
    factor: float | None = None
    """New rate over base; the rate stays where neither is given."""
    base_delay_ns: Nanos = gloo.NO_DELAY
    new_delay_ns: Nanos = gloo.NO_DELAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The graph with its host transfers on the new network, and what was taken for granted."""

    graph: TaskGraph
    recorded_latency_ns: Int64
    """Per collective, the latency of the recorded network: for `Context`."""
    assumptions: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    """Those of them that count where nothing moves, too."""


def over_network(graph: TaskGraph, network: HostNetwork, bound: Bound) -> Moved:
    """Scale the transfers of collectives on the host; all others stay."""
    tasks, calls = graph.tasks, graph.collectives
    task = _host_transfers(graph)
    if not len(task):
        return Moved(graph=graph, recorded_latency_ns=calls.latency_ns, assumptions=())
    moving, columns = moving_ns(graph, task), _calls_of(graph, task)
    base_latency_ns = gloo.latency_ns(columns, network.base_delay_ns)
    alone_ns, shared_frac = _alone(graph, task, moving, base_latency_ns)
    bases, told = _bases(alone_ns, columns, network)
    doubts = told if len(bases) > 1 else ()
    if bound is Bound.NOMINAL:
        bases = bases[:1]
    new_alone_ns = END[bound].reduce(
        [
            gloo.scaled_ns(
                np.rint(alone_ns).astype(np.int64),
                columns,
                base_rate_bytes_per_s=base,
                new_rate_bytes_per_s=network.new_bytes_per_s,
                factor=network.factor,
                base_delay_ns=network.base_delay_ns,
                new_delay_ns=network.new_delay_ns,
                bound=bound,
            )
            for base in bases
        ]
    )
    latency_ns = np.minimum(gloo.latency_ns(columns, network.new_delay_ns), new_alone_ns)
    beside_ns = latency_ns + (new_alone_ns - latency_ns) * shared_frac
    unchanged = new_alone_ns == np.rint(alone_ns).astype(np.int64)
    new_ns = np.where(unchanged, moving, np.rint(beside_ns)).astype(np.int64)
    free_task = free(graph, np.ones(graph.n_tasks, bool))[task]
    dur_ns = tasks.dur_ns.copy()
    dur_ns[task] = np.where(
        free_task, with_moving(tasks.dur_ns[task], moving, new_ns), dur_ns[task]
    )
    changed = with_durations(graph, dur_ns)
    new_calls = replace(calls, latency_ns=_per_collective(graph, task, latency_ns))
    return Moved(
        graph=replace(changed, collectives=new_calls),
        recorded_latency_ns=_per_collective(graph, task, base_latency_ns),
        assumptions=(*told, gloo.SOURCE),
        doubts=doubts,
    )


def recorded_rate(graph: TaskGraph, delay_ns: Nanos = gloo.NO_DELAY) -> BytesPerSecond | None:
    """Rate of the hosts' links as the recorded transfers show it, each as if alone; or None."""
    task = _host_transfers(graph)
    if not len(task):
        return None
    columns = _calls_of(graph, task)
    latency_ns = gloo.latency_ns(columns, delay_ns)
    alone_ns, _ = _alone(graph, task, moving_ns(graph, task), latency_ns)
    return gloo.inferred_rate(np.rint(alone_ns).astype(np.int64), columns, delay_ns=delay_ns)


def between_runs_frac(before: TaskGraph, after: TaskGraph) -> float:
    """Part of the step by which runs over gloo differ anyway, where transfers on hosts changed."""
    was, now = (graph.tasks.dur_ns[_host_transfers(graph)] for graph in (before, after))
    return 0.0 if np.array_equal(was, now) else gloo.BETWEEN_RUNS_FRAC


def _per_collective(graph: TaskGraph, task: Int64, latency_ns: Float64) -> Int64:
    found_ns = graph.collectives.latency_ns.copy()
    found_ns[graph.tasks.collective[task]] = np.rint(latency_ns).astype(np.int64)
    return found_ns


def _host_transfers(graph: TaskGraph) -> Int64:
    tasks = graph.tasks
    task = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)
    return task[graph.collectives.on_host[tasks.collective[task]]]


def _alone(
    graph: TaskGraph, task: Int64, moving: Int64, latency_ns: Float64
) -> tuple[Float64, Float64]:
    """Time that each recorded transfer would have taken alone, and by how much sharing slowed it.

    Args:
        graph: as recorded.
        task: transfers.
        moving: part of their durations in which their bytes moved.
        latency_ns: part of that in which they shared nothing.
    """
    start_ns, taken_ns = graph.tasks.ts_ns[task].astype(np.float64), moving.astype(np.float64)
    latency_ns = np.minimum(latency_ns, taken_ns)
    alone_ns = taken_ns.copy()
    rows = np.flatnonzero(~sends_seen_elsewhere(graph, task))
    jobs = Jobs.of(link_numbers(graph, task[rows]), start_ns[rows])
    alone_ns[rows], _ = jobs.alone((start_ns + taken_ns)[rows], latency_ns[rows])
    bytes_ns = np.maximum(alone_ns - latency_ns, 0.0)
    shared = np.divide(
        taken_ns - latency_ns, bytes_ns, out=np.ones_like(taken_ns), where=bytes_ns > 0
    )
    return alone_ns, shared


def _bases(
    alone_ns: Float64, columns: gloo.HostCalls, network: HostNetwork
) -> tuple[list[BytesPerSecond | None], tuple[str, ...]]:
    """Rates that the recorded network may have, the likeliest first, and how they are known."""
    given = network.base_bytes_per_s
    found = gloo.inferred_rate(
        np.rint(alone_ns).astype(np.int64), columns, delay_ns=network.base_delay_ns
    )
    if given is None:
        if found is None:
            return [None], ("base: no transfer between hosts tells its rate",)
        shown = f"base: {_shown(found)} between hosts (read off the recorded transfers)"
        return [found], (shown,)
    if found is None or not _contradicts(found, given):
        return [given], ()
    told = (
        f"the recorded transfers show {_shown(found)} between hosts, --base-net says "
        f"{_shown(given)}: the range holds both"
    )
    return [given, found], (told,)


def _contradicts(found: BytesPerSecond, given: BytesPerSecond) -> bool:
    """The transfers are far from what the link carries, or from what a core sends on it."""
    expected = min(given, gloo.CORE_BYTES_PER_S)
    return bool(max(found / expected, expected / found) > CONTRADICTION)


def _shown(rate: BytesPerSecond) -> str:
    return f"{rate * 8 / 1e9:.3g} Gbps"


def _calls_of(graph: TaskGraph, task: Int64) -> gloo.HostCalls:
    calls, number = graph.collectives, graph.tasks.collective[task]
    return gloo.HostCalls(
        kind=calls.kind[number].astype(np.int64),
        size_bytes=calls.size_bytes[number],
        members=calls.members_expected[number].astype(np.int64),
        receiver_last=receivers_last(graph)[number],
    )
