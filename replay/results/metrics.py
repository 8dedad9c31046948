"""Step time and breakdown of a schedule (DESIGN section 7, Step and Breakdown)."""

from dataclasses import dataclass

import numpy as np

from ingest.units import Nanos
from ingest.vocab import DEVICE_KINDS, LaneKind, TaskKind
from replay.engine.schedule import Schedule
from replay.graph.arrays import Int64, TaskGraph
from replay.results.cover import disjoint


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Boundaries of the steps, ns after the run's origin."""

    boundary_ns: Int64
    """Shape (steps + 1,): latest over the ranks."""
    rank_boundary_ns: Int64
    """Shape (ranks, steps + 1)."""

    @property
    def per_step_ns(self) -> Int64:
        """Length of each step of the run."""
        return np.diff(self.boundary_ns)

    @property
    def mean_ns(self) -> Nanos:
        """Mean step of the run, rounded half to even."""
        return _mean(self.boundary_ns)

    def rank_mean_ns(self, position: int) -> Nanos:
        """Mean step of the rank at `position` of `graph.ranks`, by its own boundaries."""
        return _mean(self.rank_boundary_ns[position])


def _mean(boundary_ns: Int64) -> Nanos:
    return Nanos(round(int(boundary_ns[-1] - boundary_ns[0]) / (len(boundary_ns) - 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Where a step went; the first four add up to the step exactly. ns per step."""

    compute_ns: int
    exposed_comm_ns: int
    exposed_memcpy_ns: int
    idle_ns: int
    exposed_wait_ns: int
    """Part of `exposed_comm_ns` in which members only waited for others."""

    @property
    def total_ns(self) -> int:
        """The step."""
        return self.compute_ns + self.exposed_comm_ns + self.exposed_memcpy_ns + self.idle_ns


def step_times(graph: TaskGraph, schedule: Schedule) -> StepTimes:
    """Boundaries of every rank and of the run on a schedule."""
    return step_times_of_ends(graph, schedule.end_ns[graph.boundaries.task])


def step_times_of_ends(graph: TaskGraph, ends_ns: Int64) -> StepTimes:
    """Boundaries from the ends of the tasks that close the steps, `graph.boundaries.task`."""
    bounds = graph.boundaries
    latest_ns = bounds.floor_ns.copy()
    count = np.diff(bounds.start)
    filled = np.flatnonzero(count)
    if len(filled):
        latest_ns[filled] = np.maximum(
            latest_ns[filled], np.maximum.reduceat(ends_ns, bounds.start[filled])
        )
    per_rank = latest_ns.reshape(len(bounds.ranks), bounds.n_steps + 1)
    run_ns = per_rank.max(axis=0)
    if not graph.steps_recorded:
        run_ns = np.array([per_rank[:, 0].min(), per_rank[:, 1].max()], np.int64)
    return StepTimes(boundary_ns=run_ns, rank_boundary_ns=per_rank)


def breakdown(graph: TaskGraph, schedule: Schedule) -> Breakdown:
    """Mean over the ranks (several devices of a process count each, then their mean)."""
    times = step_times(graph, schedule)
    per_rank = rank_breakdowns(graph, schedule)
    total_ns = int(times.mean_ns)

    def mean(name: str) -> int:
        return round(sum(int(getattr(part, name)) for part in per_rank) / len(per_rank))

    compute_ns, comm_ns = mean("compute_ns"), mean("exposed_comm_ns")
    memcpy_ns = mean("exposed_memcpy_ns")
    return Breakdown(
        compute_ns=compute_ns,
        exposed_comm_ns=comm_ns,
        exposed_memcpy_ns=memcpy_ns,
        idle_ns=total_ns - compute_ns - comm_ns - memcpy_ns,
        exposed_wait_ns=min(mean("exposed_wait_ns"), comm_ns),
    )


def rank_breakdowns(graph: TaskGraph, schedule: Schedule) -> tuple[Breakdown, ...]:
    """Breakdown of each rank over the run's steps, in the order of `graph.ranks`."""
    times = step_times(graph, schedule)
    window = (int(times.boundary_ns[0]), int(times.boundary_ns[-1]))
    on_device = np.isin(graph.tasks.kind, [int(kind) for kind in DEVICE_KINDS])
    links = np.array([lane.kind == LaneKind.LINK for lane in graph.lanes] + [False], bool)
    on_device &= ~links[graph.tasks.lane]
    result = []
    for info in graph.ranks:
        mine = graph.tasks.rank == info.rank
        device_tasks = np.flatnonzero(mine & on_device)
        if len(device_tasks):
            parts = _of_devices(graph, schedule, device_tasks, window)
        else:
            parts = [_of_host(graph, schedule, np.flatnonzero(mine), window)]
        result.append(_per_step(parts, window, len(graph.steps)))
    return tuple(result)


@dataclass(frozen=True, slots=True)
class _Whole:
    compute_ns: int
    comm_ns: int
    memcpy_ns: int
    wait_ns: int


def _per_step(parts: list[_Whole], window: tuple[int, int], n_steps: int) -> Breakdown:
    share = len(parts) * n_steps

    def mean(name: str) -> int:
        return round(sum(int(getattr(part, name)) for part in parts) / share)

    compute_ns, comm_ns, memcpy_ns = mean("compute_ns"), mean("comm_ns"), mean("memcpy_ns")
    total_ns = round((window[1] - window[0]) / n_steps)
    return Breakdown(
        compute_ns=compute_ns,
        exposed_comm_ns=comm_ns,
        exposed_memcpy_ns=memcpy_ns,
        idle_ns=total_ns - compute_ns - comm_ns - memcpy_ns,
        exposed_wait_ns=min(mean("wait_ns"), comm_ns),
    )


def _of_devices(
    graph: TaskGraph, schedule: Schedule, ids: Int64, window: tuple[int, int]
) -> list[_Whole]:
    devices = np.array([lane.device for lane in graph.lanes], np.int64)[graph.tasks.lane[ids]]
    return [
        _of_device(graph, schedule, ids[devices == device], window) for device in np.unique(devices)
    ]


def _of_device(graph: TaskGraph, schedule: Schedule, ids: Int64, window: tuple[int, int]) -> _Whole:
    kind = graph.tasks.kind[ids]
    compute = kind == TaskKind.KERNEL
    transfer = kind == TaskKind.TRANSFER
    copies = (kind == TaskKind.MEMCPY) | (kind == TaskKind.MEMSET)
    waiting_lo, waiting_hi = _waiting(graph, schedule, ids[transfer])
    lo, hi = schedule.start_ns[ids], schedule.end_ns[ids]
    compute_ns = covered_ns(lo[compute], hi[compute], window)
    busy = compute | transfer
    moving_ns = covered_ns(lo[busy], hi[busy], window)
    with_comm = (np.concatenate([lo[busy], waiting_lo]), np.concatenate([hi[busy], waiting_hi]))
    comm_ns = covered_ns(*with_comm, window)
    everything = (
        np.concatenate([with_comm[0], lo[copies]]),
        np.concatenate([with_comm[1], hi[copies]]),
    )
    return _Whole(
        compute_ns,
        comm_ns - compute_ns,
        covered_ns(*everything, window) - comm_ns,
        comm_ns - moving_ns,
    )


def _waiting(graph: TaskGraph, schedule: Schedule, transfers: Int64) -> tuple[Int64, Int64]:
    """From the arrival of each member (its ARRIVE is the task before) to its transfer."""
    assert (graph.tasks.kind[transfers - 1] == TaskKind.ARRIVE).all(), "arrive precedes transfer"
    return schedule.start_ns[transfers - 1], schedule.start_ns[transfers]


def _of_host(graph: TaskGraph, schedule: Schedule, ids: Int64, window: tuple[int, int]) -> _Whole:
    """Compute = the step's threads not waiting; communication = they wait while a member runs."""
    steps = np.array([lane.steps for lane in graph.lanes] + [False], bool)
    kind = graph.tasks.kind[ids]
    host = (kind == TaskKind.HOST_WORK) | (kind == TaskKind.HOST_CALL)
    carrying = steps[graph.tasks.lane[ids]]
    working = host & carrying if carrying.any() else host
    transfers = ids[kind == TaskKind.TRANSFER]
    lo, hi = schedule.start_ns[ids], schedule.end_ns[ids]
    waiting_lo, waiting_hi = _waiting(graph, schedule, transfers)
    compute_ns = covered_ns(lo[working], hi[working], window)
    moving_lo = np.concatenate([lo[working], schedule.start_ns[transfers]])
    moving_hi = np.concatenate([hi[working], schedule.end_ns[transfers]])
    moving_ns = covered_ns(moving_lo, moving_hi, window)
    all_lo = np.concatenate([moving_lo, waiting_lo])
    all_hi = np.concatenate([moving_hi, waiting_hi])
    comm_ns = covered_ns(all_lo, all_hi, window)
    return _Whole(compute_ns, comm_ns - compute_ns, 0, comm_ns - moving_ns)


def covered_ns(lo: Int64, hi: Int64, window: tuple[int, int]) -> int:
    """Length of the union of the intervals inside the window."""
    lo, hi = np.clip(lo, *window), np.clip(hi, *window)
    order = np.argsort(lo, kind="stable")
    lo, hi = disjoint(lo[order], hi[order])
    return int((hi - lo).sum())
