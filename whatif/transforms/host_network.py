"""Collectives on the host over another network."""

from dataclasses import dataclass, replace

import numpy as np

from ingest.units import BytesPerSecond, Nanos, Rate
from ingest.vocab import TaskKind
from replay.graph.arrays import Int64, TaskGraph
from whatif.models import gloo
from whatif.models.bound import Bound
from whatif.transforms.base import free, with_durations
from whatif.transforms.host_transfers import moving_ns, with_moving
from whatif.transforms.links import Jobs, link_numbers, weight_of


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
    assumptions: tuple[str, ...]


def over_network(graph: TaskGraph, network: HostNetwork, bound: Bound) -> Moved:
    """Scale the transfers of collectives on the host; all others stay."""
    tasks, calls = graph.tasks, graph.collectives
    task = np.flatnonzero(free(graph, tasks.kind == TaskKind.TRANSFER))
    task = task[calls.on_host[tasks.collective[task]]]
    measured_ns, moving = tasks.dur_ns[task], moving_ns(graph, task)
    columns = _calls_of(graph, task)
    base, told = _base(graph, network)
    new_ns = gloo.scaled_ns(
        moving,
        columns,
        base_rate_bytes_per_s=base,
        new_rate_bytes_per_s=network.new_bytes_per_s,
        factor=network.factor,
        base_delay_ns=network.base_delay_ns,
        new_delay_ns=network.new_delay_ns,
        bound=bound,
    )
    dur_ns = tasks.dur_ns.copy()
    dur_ns[task] = with_moving(measured_ns, moving, new_ns)
    latency_ns = calls.latency_ns.copy()
    latency_ns[tasks.collective[task]] = np.rint(
        gloo.latency_ns(columns, network.new_delay_ns)
    ).astype(np.int64)
    changed = replace(
        with_durations(graph, dur_ns), collectives=replace(calls, latency_ns=latency_ns)
    )
    return Moved(graph=changed, assumptions=(told, gloo.SOURCE))


def recorded_rate(graph: TaskGraph) -> BytesPerSecond | None:
    """Rate of the hosts' links as the recorded transfers show it, each as if alone; or None."""
    tasks, calls = graph.tasks, graph.collectives
    task = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)
    task = task[calls.on_host[tasks.collective[task]]]
    if not len(task):
        return None
    start_ns = tasks.ts_ns[task].astype(np.float64)
    moving = moving_ns(graph, task).astype(np.float64)
    jobs = Jobs.of(link_numbers(graph, task), start_ns)
    alone_ns = jobs.alone(start_ns + moving, weight_of(np.zeros_like(moving), moving))
    return gloo.inferred_rate(np.rint(alone_ns).astype(np.int64), _calls_of(graph, task))


def _base(graph: TaskGraph, network: HostNetwork) -> tuple[BytesPerSecond | None, str]:
    if network.base_bytes_per_s is not None:
        base = network.base_bytes_per_s
        return base, f"base: {_shown(base)} between hosts (given)"
    found = recorded_rate(graph)
    if found is None:
        return None, "base: no transfer between hosts tells its rate"
    return found, f"base: {_shown(found)} between hosts (read off the recorded transfers)"


def _shown(bytes_per_s: float) -> str:
    return Rate(BytesPerSecond(round(bytes_per_s)), None).understood


def _calls_of(graph: TaskGraph, task: Int64) -> gloo.HostCalls:
    calls, number = graph.collectives, graph.tasks.collective[task]
    return gloo.HostCalls(
        kind=calls.kind[number].astype(np.int64),
        size_bytes=calls.size_bytes[number],
        members=calls.members_expected[number].astype(np.int64),
    )
