"""The chain of tasks and lags that a schedule's last boundary hangs on."""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import KernelClass, TaskKind
from replay.engine.schedule import Schedule
from replay.graph.arrays import Int64, TaskGraph
from replay.results.metrics import step_times


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticalPath:
    """Tasks from the first to the last boundary, in time order.

    `span_ns[i]` is what task i adds to the path inside the window, `lag_ns[i]` what lies before
    it: lag, residual, and for the first one the time until it was released. Together they are
    the window's length.
    """

    task: Int64
    span_ns: Int64
    lag_ns: Int64
    window_ns: tuple[int, int]

    @property
    def length_ns(self) -> int:
        """From the first to the last boundary."""
        return self.window_ns[1] - self.window_ns[0]


def critical_path(graph: TaskGraph, schedule: Schedule) -> CriticalPath:
    """Walk back from the task that ends the last step along the edges that bound each start."""
    times = step_times(graph, schedule)
    window = (int(times.boundary_ns[0]), int(times.boundary_ns[-1]))
    task = _last_task(graph, schedule, window[1])
    tasks: list[int] = []
    cuts_ns: list[int] = []
    while task >= 0 and (not cuts_ns or cuts_ns[-1] > window[0]):
        tasks.append(task)
        cuts_ns.append(int(schedule.start_ns[task]))
        edge = int(schedule.blocked_by[task])
        if edge < 0:
            cuts_ns.append(window[0])
            break
        task = int(graph.edges.src[edge])
        from_start = bool(graph.edges.from_start[edge])
        cuts_ns.append(int((schedule.start_ns if from_start else schedule.end_ns)[task]))
    length_ns = _between(np.array(cuts_ns, np.int64), window)
    return CriticalPath(
        task=np.array(tasks[::-1], np.int64),
        span_ns=length_ns[::2][::-1],
        lag_ns=length_ns[1::2][::-1],
        window_ns=window,
    )


def _between(cuts_ns: Int64, window: tuple[int, int]) -> Int64:
    """Lengths between neighbouring cuts, from the window's end backwards.

    A task that starts before its source has ended takes over at its own start: no time counts
    twice.
    """
    cuts_ns = np.minimum.accumulate(np.clip(np.insert(cuts_ns, 0, window[1]), *window))
    return cuts_ns[:-1] - cuts_ns[1:]


def _last_task(graph: TaskGraph, schedule: Schedule, moment_ns: int) -> int:
    closing = graph.boundaries.task
    if not len(closing):
        return -1
    ends_ns = schedule.end_ns[closing]
    at = closing[ends_ns == moment_ns]
    return int(at[0]) if len(at) else int(closing[np.argmax(ends_ns)])


def path_shares(graph: TaskGraph, path: CriticalPath) -> dict[str, float]:
    """Share of the path by kind of work: host, collective, memcpy, each kernel class, lags."""
    total = max(path.length_ns, 1)
    shares: dict[str, float] = {}
    kind = graph.tasks.kind[path.task]
    names = np.array([KernelClass(code).name.lower() for code in range(max(KernelClass) + 1)])
    label = names[graph.tasks.kernel_class[path.task]]
    label = np.where(kind <= TaskKind.HOST_WAIT, "host", label)
    for name in np.unique(label):
        shares[str(name)] = float(path.span_ns[label == name].sum()) / total
    shares["lags"] = float(path.lag_ns.sum()) / total
    return shares
