"""What a run is bound by, and how far its CPU is ahead of its device."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ingest.vocab import DEVICE_KINDS, EdgeKind, LaneKind, TaskKind
from replay.graph import thresholds
from replay.graph.arrays import Bool, Float64, Int64, TaskGraph
from replay.results.causes import NOT_FETCHING, Cause, Fetching, fetching_ns, task_causes
from replay.results.critical_path import CriticalPath
from replay.results.fidelity import Baseline
from replay.results.stragglers import Stragglers


class BoundBy(StrEnum):
    """What holds a run back most."""

    DEVICE = "device"
    HOST = "host"
    INPUT = "input"
    COMMUNICATION = "communication"
    COPIES = "copies"
    STRAGGLER = "straggler"
    ABSENT = "absent_ranks"
    UNKNOWN = "unknown"


OF_CAUSE = {
    Cause.HOST: BoundBy.HOST,
    Cause.INPUT: BoundBy.HOST,
    Cause.COMPUTE: BoundBy.DEVICE,
    Cause.COPIES: BoundBy.COPIES,
    Cause.TRANSFER: BoundBy.COMMUNICATION,
    Cause.WAIT: BoundBy.ABSENT,
    Cause.UNKNOWN: BoundBy.UNKNOWN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBound:
    """Shares are of the critical path or of the steps, 0 to 1."""

    by: BoundBy
    path_frac: dict[Cause, float]
    """Share of the critical path by cause; they add up to 1."""
    rank: int | None
    """The rank that most of the critical path lies on; None when it is shared, or for one rank."""
    idle_frac: float | None
    """Part of the steps in which a device does nothing, mean over devices; None without any."""
    idle_launch_frac: float | None
    """Part of the steps in which an idle device waits for its next launch."""
    idle_input_frac: float | None
    """Part of that in which the host is inside its data loader."""
    path_idle_launch_frac: float | None
    """The same, of the ranks that the critical path lies on, by their shares of it: one late host
    makes the devices of the others wait inside collectives, where they are not idle."""
    ahead_ns: dict[int, int]
    """By rank: median time from the end of the launching call to the start of a device task,
    over the tasks launched in the steps."""
    step_ns: int
    """Median step, the measure of `ahead_steps`."""

    @property
    def ahead_steps(self) -> float | None:
        """How many steps the CPU of the median rank is ahead of its device."""
        if not self.ahead_ns or self.step_ns <= 0:
            return None
        return float(np.median(list(self.ahead_ns.values()))) / self.step_ns


def run_bound(
    graph: TaskGraph,
    baseline: Baseline,
    late: Stragglers,
    fetching: Fetching = NOT_FETCHING,
) -> RunBound:
    """The rule, on the calibrated replay.

    1. The critical path (DESIGN: the chain of tasks and lags that the last boundary hangs on) is
       split into host work, device compute, copies, transfers of collectives, waiting for members
       that are not in the files, and what no task explains. The largest share names the bound.
    2. Host-bound is input-bound where the host is in its data loader for most of the time that the
       devices idle and wait for launches; without a device, for most of the host part of the path.
    3. It is a straggler where the ranks that meet one rank wait for it, exposed, for longer than
       half of that largest share: without the lateness it would no longer be what it is.
    """
    path_frac = path_shares(graph, baseline.path, input_frac(graph, fetching))
    sides = dict.fromkeys(OF_CAUSE.values(), 0.0)
    for cause, share in path_frac.items():
        sides[OF_CAUSE[cause]] += share
    by = max(sides, key=lambda side: sides[side])
    devices = _idle_by_device(graph, baseline, fetching)
    idle = _idle(devices)
    if by is BoundBy.HOST and _in_the_loader(path_frac, idle):
        by = BoundBy.INPUT
    step_ns = int(baseline.replayed.mean_ns)
    if late.worst is not None and late.worst.cost_ns > max(sides.values()) * step_ns / 2:
        by = BoundBy.STRAGGLER
    return RunBound(
        by=by,
        path_frac=path_frac,
        rank=_rank_of_path(graph, baseline),
        idle_frac=None if idle is None else idle[0],
        idle_launch_frac=None if idle is None else idle[1],
        idle_input_frac=None if idle is None else idle[2],
        path_idle_launch_frac=_path_idle(graph, baseline, devices),
        ahead_ns=_ahead(graph),
        step_ns=int(np.median(baseline.replayed.per_step_ns)),
    )


def _in_the_loader(path_frac: dict[Cause, float], idle: tuple[float, float, float] | None) -> bool:
    if idle is None:
        return path_frac[Cause.INPUT] > path_frac[Cause.HOST]
    return idle[2] > idle[1] / 2


def input_frac(graph: TaskGraph, fetching: Fetching) -> Float64:
    """Per task: share of its recorded duration inside the data loader."""
    inside: Float64 = fetching_ns(graph, fetching) / np.maximum(graph.tasks.dur_ns, 1)
    return inside


def path_shares(
    graph: TaskGraph, path: CriticalPath, in_loader_frac: Float64
) -> dict[Cause, float]:
    """Share of a critical path by cause; they add up to 1.

    Args:
        graph: replayed.
        path: of its schedule.
        in_loader_frac: per task of the unchanged run (`input_frac`); tasks that a what-if has added
            behind those load nothing.
    """
    spent_ns = np.bincount(
        task_causes(graph)[path.task], weights=path.span_ns, minlength=len(Cause)
    )
    recorded = path.task < len(in_loader_frac)
    input_ns = float((path.span_ns[recorded] * in_loader_frac[path.task[recorded]]).sum())
    spent_ns[Cause.HOST] -= input_ns
    spent_ns[Cause.INPUT] += input_ns
    spent_ns[Cause.UNKNOWN] += path.lag_ns.sum() + path.residual_ns.sum()
    total_ns = max(path.length_ns, 1)
    return {cause: float(spent_ns[cause]) / total_ns for cause in Cause}


def _rank_of_path(graph: TaskGraph, baseline: Baseline) -> int | None:
    if len(graph.ranks) == 1:
        return None
    rank = graph.tasks.rank[baseline.path.task]
    for info in graph.ranks:
        mine_ns = int(baseline.path.span_ns[rank == info.rank].sum())
        if mine_ns > thresholds.ONE_RANK_FRAC * baseline.path.length_ns:
            return info.rank
    return None


def _ahead(graph: TaskGraph) -> dict[int, int]:
    tasks = graph.tasks
    links = np.array([lane.kind == LaneKind.LINK for lane in graph.lanes] + [False], bool)
    launched = np.isin(tasks.kind, [int(kind) for kind in DEVICE_KINDS - {TaskKind.TRANSFER}])
    launched &= (tasks.caller >= 0) & (tasks.step >= 0) & ~links[tasks.lane]
    ids = np.flatnonzero(launched)
    caller = tasks.caller[ids]
    queued_ns = tasks.ts_ns[ids] - tasks.ts_ns[caller] - tasks.dur_ns[caller]
    return {
        info.rank: max(int(np.median(queued_ns[tasks.rank[ids] == info.rank])), 0)
        for info in graph.ranks
        if (tasks.rank[ids] == info.rank).any()
    }


@dataclass(frozen=True, slots=True)
class _DeviceIdle:
    """Parts of the steps."""

    rank: int
    idle: float
    launch: float
    """Of it waiting for a launch."""
    loader: float
    """Of that with the host in its loader."""


def _idle(devices: Sequence[_DeviceIdle]) -> tuple[float, float, float] | None:
    """Mean over the devices; None without a device."""
    if not devices:
        return None
    return (
        float(np.mean([device.idle for device in devices])),
        float(np.mean([device.launch for device in devices])),
        float(np.mean([device.loader for device in devices])),
    )


def _path_idle(
    graph: TaskGraph, baseline: Baseline, devices: Sequence[_DeviceIdle]
) -> float | None:
    """Waiting for launches, mean over the devices by the share of their rank in the path."""
    rank, span_ns = graph.tasks.rank[baseline.path.task], baseline.path.span_ns
    weights = [float(span_ns[rank == device.rank].sum()) for device in devices]
    if not sum(weights):
        return None
    return float(np.average([device.launch for device in devices], weights=weights))


def _idle_by_device(graph: TaskGraph, baseline: Baseline, fetching: Fetching) -> list[_DeviceIdle]:
    """Idle time of every device that has work."""
    tasks = graph.tasks
    device_of_lane = np.array([lane.device for lane in graph.lanes] + [-1], np.int64)
    links = np.array([lane.kind == LaneKind.LINK for lane in graph.lanes] + [False], bool)
    busy = np.isin(tasks.kind, [int(kind) for kind in DEVICE_KINDS]) & ~links[tasks.lane]
    window = baseline.replayed.boundary_ns[[0, -1]]
    whole_ns = int(window[1] - window[0])
    if whole_ns <= 0:
        return []
    found = []
    for info in graph.ranks:
        mine = np.flatnonzero(busy & (tasks.rank == info.rank))
        devices = device_of_lane[tasks.lane[mine]]
        for device in np.unique(devices):
            lo_ns, hi_ns, launched = _gaps(graph, baseline, mine[devices == device], window)
            length_ns = hi_ns - lo_ns
            in_loader_ns = fetching.of(info.rank).within(lo_ns, hi_ns)
            idle_ns, launch_ns, loader_ns = (
                int(part.sum())
                for part in (length_ns, length_ns * launched, in_loader_ns * launched)
            )
            found.append(
                _DeviceIdle(
                    info.rank, idle_ns / whole_ns, launch_ns / whole_ns, loader_ns / whole_ns
                )
            )
    return found


def _gaps(
    graph: TaskGraph, baseline: Baseline, ids: Int64, window: Int64
) -> tuple[Int64, Int64, Bool]:
    """Idle stretches of a device in the window, and whether a launch (or nothing) ended each.

    A member that waits in its collective holds its stream: the device is not idle.
    """
    schedule = baseline.schedule
    member = graph.tasks.kind[ids] == TaskKind.ARRIVE
    start_ns = schedule.start_ns[ids]
    end_ns = np.where(member, schedule.start_ns[np.minimum(ids + 1, graph.n_tasks - 1)], 0)
    end_ns = np.maximum(end_ns, schedule.end_ns[ids])
    order = np.argsort(start_ns, kind="stable")
    start_ns, end_ns = np.clip(start_ns[order], *window), np.clip(end_ns[order], *window)
    reach_ns = np.maximum.accumulate(np.concatenate([window[:1], end_ns]))
    next_ns = np.concatenate([start_ns, window[1:]])
    edge = schedule.blocked_by[ids[order]]
    kind = np.append(graph.edges.kind, np.int8(EdgeKind.STREAM_ORDER))[edge]
    launched = np.isin(kind, (EdgeKind.LAUNCH, EdgeKind.GRAPH_LAUNCH))
    return reach_ns, np.maximum(next_ns, reach_ns), np.append(launched, [True])
