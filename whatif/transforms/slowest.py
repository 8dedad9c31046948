"""All wait for the slowest replica: of more there is a slower one, of fewer a faster one.

How long a replica works by itself is told by a replay without the collectives that join replicas.
How far that differs over replicas and steps says how slow the slowest of another number is. The
slowest of those that stand for them then works so much longer, and the others wait for it.
"""

from dataclasses import dataclass, replace
from math import comb

import numpy as np
from numpy.typing import NDArray

from ingest.vocab import EdgeKind, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import Bool, Int64, TaskGraph
from replay.graph.csr import destinations
from replay.graph.outside import incomplete, outside_waiters
from replay.results.metrics import step_times
from whatif.models.bound import Bound
from whatif.models.order_statistics import wait_ratio
from whatif.transforms.base import with_durations

Float64 = NDArray[np.float64]

WORK = (
    TaskKind.HOST_WORK,
    TaskKind.HOST_CALL,
    TaskKind.KERNEL,
    TaskKind.MEMCPY,
    TaskKind.MEMSET,
)
LEAST_FACTOR = 0.02
"""Work never vanishes, whatever the spread says of few replicas that differ much."""
CORRECTIONS = 2
"""Rounds in which the factor is set right: part of a step does not stretch with the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSteps:
    """How long each replica in the files works by itself."""

    replica: Int64
    """Number of each, shape (replicas,)."""
    step_ns: Float64
    """Shape (replicas, steps)."""


def own_steps(graph: TaskGraph, chosen: Bool, replica_of: dict[int, int]) -> OwnSteps:
    """Steps of each replica without the chosen collectives.

    Args:
        graph: of the run.
        chosen: per collective.
        replica_of: by rank, the replica that it is part of.
    """
    free = _without_waits(graph, chosen)
    bounds_ns = step_times(free, replay(free)).rank_boundary_ns
    of_rank = np.array([replica_of[info.rank] for info in graph.ranks], np.int64)
    replicas = np.unique(of_rank)
    step_ns = np.array(
        [np.diff(bounds_ns[of_rank == replica].max(axis=0)) for replica in replicas], np.float64
    )
    return OwnSteps(replica=replicas, step_ns=step_ns)


def _without_waits(graph: TaskGraph, chosen: Bool) -> TaskGraph:
    """Members of the chosen collectives wait for nobody, and their transfers take no time.

    How long a transfer took is one fact of all its members, not of a replica.
    """
    edges, tasks = graph.edges, graph.tasks
    member = np.append(chosen, False)[tasks.collective]
    dst = destinations(graph)
    waits = member[dst] & (tasks.kind[dst] == TaskKind.TRANSFER)
    waits &= np.isin(edges.kind, (EdgeKind.COLLECTIVE, EdgeKind.P2P))
    return replace(
        with_durations(graph, np.where(member, 0, tasks.dur_ns)),
        edges=replace(edges, src=np.where(waits, dst - 1, edges.src).astype(np.int32)),
    )


def slowest_of_fewer(step_ns: Float64, count: int) -> Float64:
    """Expected slowest step of `count` drawn from all replicas, per step.

    Args:
        step_ns: shape (replicas, steps).
        count: at most the number of replicas.
    """
    n_all = len(step_ns)
    draws = comb(n_all, count)  # beyond a float from some thousand replicas on, its parts are not
    weight = np.array([comb(place, count - 1) / draws for place in range(n_all)])
    expected: Float64 = weight @ np.sort(step_ns, axis=0)
    return expected


def spread_ns(step_ns: Float64) -> float:
    """Standard deviation over the replicas, pooled over the steps; 0 of one replica.

    Args:
        step_ns: shape (replicas, steps).
    """
    if len(step_ns) == 1:
        return 0.0
    return float(np.sqrt(step_ns.var(axis=0, ddof=1).mean()))


def with_slowest(
    graph: TaskGraph, chosen: Bool, replica_of: dict[int, int], wanted_ns: Float64
) -> tuple[TaskGraph, float]:
    """The graph in which the slowest replica of each step needs the wanted time by itself.

    Args:
        graph: of the replicas that stand for all.
        chosen: collectives that join replicas.
        replica_of: by rank.
        wanted_ns: per step.

    Returns:
        The graph, and the mean factor on the work of the slowest.
    """
    before = own_steps(graph, chosen, replica_of)
    slowest = before.step_ns.argmax(axis=0)
    steps = np.arange(before.step_ns.shape[1])
    own_ns = before.step_ns[slowest, steps]
    change_ns = wanted_ns - own_ns
    if (np.abs(change_ns) < 1.0).all():
        return graph, 1.0
    factor = np.maximum(wanted_ns / np.maximum(own_ns, 1.0), LEAST_FACTOR)
    changed = _stretched(graph, replica_of, before.replica[slowest], factor)
    for _ in range(CORRECTIONS):
        now = own_steps(changed, chosen, replica_of)
        done_ns = now.step_ns[slowest, steps] - own_ns
        reached = np.abs(done_ns) > 0.1 * np.abs(change_ns)
        gain = np.divide(change_ns, done_ns, out=np.ones_like(done_ns), where=reached)
        factor = np.maximum(1.0 + (factor - 1.0) * np.clip(gain, 0.5, 2.0), LEAST_FACTOR)
        changed = _stretched(graph, replica_of, before.replica[slowest], factor)
    return changed, float(factor.mean())


def _stretched(
    graph: TaskGraph, replica_of: dict[int, int], slowest: Int64, factor: Float64
) -> TaskGraph:
    """Work of one replica per step takes `factor` of its time."""
    tasks = graph.tasks
    replica = np.full(1 + max(replica_of), -1, np.int64)
    for rank, number in replica_of.items():
        replica[rank] = number
    of_task = np.where(
        (tasks.rank >= 0) & (tasks.rank < len(replica)),
        replica[np.clip(tasks.rank, 0, len(replica) - 1)],
        -1,
    )
    inside = (tasks.step >= 0) & (tasks.step < len(factor)) & ~tasks.fixed
    step = np.where(inside, tasks.step, 0)
    chosen = inside & (of_task == slowest[step]) & np.isin(tasks.kind, WORK)
    dur_ns = np.where(chosen, np.rint(tasks.dur_ns * factor[step]), tasks.dur_ns)
    return with_durations(graph, dur_ns.astype(np.int64))


def with_outside_waits(
    graph: TaskGraph, chosen: Bool, before: int, after: int, bound: Bound
) -> TaskGraph:
    """Waits for members that are not in the files, scaled to another number of replicas.

    Args:
        graph: of the run.
        chosen: per collective, those whose replicas change.
        before: replicas now, 2 or more.
        after: replicas to be.
        bound: of the spread.
    """
    tasks = graph.tasks
    partly = np.append(chosen & incomplete(graph.collectives), False)[tasks.collective]
    waiting = np.zeros(graph.n_tasks, bool)
    waiting[np.flatnonzero(outside_waiters(graph).either) - 1] = True
    waiting &= partly & ~tasks.fixed & (tasks.kind == TaskKind.ARRIVE)
    ratio = wait_ratio(before, after, bound)
    scaled_ns = np.rint(tasks.dur_ns * ratio).astype(np.int64)
    return with_durations(graph, np.where(waiting, scaled_ns, tasks.dur_ns))
