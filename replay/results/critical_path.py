"""The chain of tasks and lags that a schedule's last boundary hangs on."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ingest.vocab import HOST_KINDS, CollectiveKind, KernelClass, Phase
from replay.engine.schedule import Schedule
from replay.graph.arrays import NONE, Bool, Int64, TaskGraph
from replay.results.metrics import step_times
from replay.results.walks import chain

_STEP = "ProfilerStep#"


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticalPath:
    """Tasks from the first to the last boundary, in time order.

    `span_ns[i]` is what task i adds to the path inside the window. Before it lie `lag_ns[i]` (lag
    of the edge that bound it, and for the first task the time until it was released) and
    `residual_ns[i]` (what its edges leave unexplained). All together are the window's length.
    """

    task: Int64
    edge: Int64
    """Index of the edge that bound the task; -1 where none did."""
    span_ns: Int64
    lag_ns: Int64
    residual_ns: Int64
    window_ns: tuple[int, int]

    @property
    def length_ns(self) -> int:
        """From the first to the last boundary."""
        return self.window_ns[1] - self.window_ns[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPieces:
    """The path cut at the boundaries of the steps; what has no length is left out.

    Rows are in time order and follow one another without a hole: a row begins at `ts_ns` with its
    lag, its residual comes next, its span last.
    """

    task: Int64
    edge: Int64
    step: Int64
    """Ordinal of the step, from 0: by when the piece lies, not by when its task was issued."""
    ts_ns: Int64
    span_ns: Int64
    lag_ns: Int64
    residual_ns: Int64

    @property
    def total_ns(self) -> Int64:
        """Length of each piece."""
        return self.span_ns + self.lag_ns + self.residual_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A part of the path; `label` is None where the path has no such name."""

    label: str | None
    total_ns: int


def critical_path(graph: TaskGraph, schedule: Schedule) -> CriticalPath:
    """Walk back from the task that ends the last step along the edges that bound each start."""
    times = step_times(graph, schedule)
    window = (int(times.boundary_ns[0]), int(times.boundary_ns[-1]))
    edges = graph.edges
    task, edge = chain(
        _last_task(graph, schedule, window[1]),
        window[0],
        schedule.start_ns,
        schedule.end_ns,
        schedule.blocked_by,
        edges.src,
        edges.from_start,
    )
    cuts_ns = np.full(2 * len(task), window[0], np.int64)
    cuts_ns[::2] = schedule.start_ns[task]
    bound = np.flatnonzero(edge >= 0)
    source = edges.src[edge[bound]]
    from_start = edges.from_start[edge[bound]]
    cuts_ns[2 * bound + 1] = np.where(
        from_start, schedule.start_ns[source], schedule.end_ns[source]
    )
    length_ns = _between(cuts_ns, window)
    before_ns = length_ns[1::2]
    residual_ns = np.clip(graph.tasks.residual_ns[task], 0, before_ns)
    return CriticalPath(
        task=task[::-1],
        edge=edge[::-1],
        span_ns=length_ns[::2][::-1],
        lag_ns=(before_ns - residual_ns)[::-1],
        residual_ns=residual_ns[::-1],
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
    """The task that ends the run; where the last step has no length, none of the step before."""
    bounds = graph.boundaries
    if not len(bounds.task):
        return -1
    number = np.repeat(np.arange(len(bounds.start) - 1), np.diff(bounds.start))
    is_last = number % (bounds.n_steps + 1) == bounds.n_steps
    for closing in (bounds.task[is_last], bounds.task):
        at = closing[schedule.end_ns[closing] == moment_ns]
        if len(at):
            return int(at[0])
    return int(bounds.task[np.argmax(schedule.end_ns[bounds.task])])


def cut_at_steps(path: CriticalPath, boundary_ns: Int64) -> PathPieces:
    """The path, cut at the boundaries of the run's steps.

    Args:
        path: from the first to the last boundary.
        boundary_ns: all boundaries, as `StepTimes.boundary_ns`.
    """
    if not path.length_ns or not len(path.task):
        nothing = np.zeros(0, np.int64)
        return PathPieces(**dict.fromkeys(PathPieces.__slots__, nothing))
    parts = np.stack([path.lag_ns, path.residual_ns, path.span_ns], axis=1).reshape(-1)
    ends_ns = path.window_ns[0] + np.cumsum(parts)
    inner = boundary_ns[(boundary_ns > path.window_ns[0]) & (boundary_ns < path.window_ns[1])]
    points = np.unique(np.concatenate([[path.window_ns[0]], ends_ns, inner]))
    lo_ns, length_ns = points[:-1], np.diff(points)
    part = np.searchsorted(ends_ns, lo_ns, side="right")
    step = np.searchsorted(boundary_ns, lo_ns, side="right") - 1
    step = np.clip(step, 0, len(boundary_ns) - 2)
    place = part // 3
    begins = np.ones(len(place), bool)
    begins[1:] = (place[1:] != place[:-1]) | (step[1:] != step[:-1])
    row = np.cumsum(begins) - 1
    columns = np.zeros((3, int(begins.sum())), np.int64)
    np.add.at(columns, (part % 3, row), length_ns)
    return PathPieces(
        task=path.task[place[begins]],
        edge=path.edge[place[begins]],
        step=step[begins],
        ts_ns=lo_ns[begins],
        span_ns=columns[2],
        lag_ns=columns[0],
        residual_ns=columns[1],
    )


def pieces_of(pieces: PathPieces, mask: Bool) -> PathPieces:
    """The pieces where `mask` is true."""
    return PathPieces(**{name: getattr(pieces, name)[mask] for name in PathPieces.__slots__})


def shares_by_class(graph: TaskGraph, pieces: PathPieces) -> tuple[Share, ...]:
    """By kind of work: host, collective, copies, each kernel class, lags, residuals."""
    kind = graph.tasks.kind[pieces.task]
    number = graph.tasks.kernel_class[pieces.task].astype(np.int64)
    host = np.isin(kind, [int(one) for one in HOST_KINDS])
    n_classes = max(KernelClass) + 1
    number[host] = n_classes
    labels = [KernelClass(code).name.lower() for code in range(n_classes)] + ["host"]
    found = list(_grouped(number, pieces.span_ns, lambda code: labels[code]))
    found += [
        Share(label="lag", total_ns=int(pieces.lag_ns.sum())),
        Share(label="residual", total_ns=int(pieces.residual_ns.sum())),
    ]
    return _largest_first(found)


def shares_by_rank(graph: TaskGraph, pieces: PathPieces) -> tuple[Share, ...]:
    """By rank, with the lags and residuals before its tasks."""
    rank = graph.tasks.rank[pieces.task].astype(np.int64)
    return _largest_first(_grouped(rank, pieces.total_ns, lambda number: str(number)))


def shares_by_collective(graph: TaskGraph, pieces: PathPieces) -> tuple[Share, ...]:
    """Transfers by kind and communicator; None is all that is no collective."""
    collective = graph.tasks.collective[pieces.task]
    columns = graph.collectives
    n_groups = max(len(graph.groups), 1)
    code = columns.kind.astype(np.int64) * n_groups + columns.group
    number = np.full(len(collective), NONE, np.int64)
    member = collective >= 0
    number[member] = code[collective[member]]
    return _largest_first(
        _grouped(
            number,
            pieces.span_ns,
            lambda code: collective_label(graph, code // n_groups, code % n_groups),
        )
    )


def shares_by_module(graph: TaskGraph, pieces: PathPieces) -> tuple[Share, ...]:
    """By `nn.Module` or annotation, with lags and residuals; None is all outside of them."""
    module = modules(graph)[pieces.task]
    return _largest_first(_grouped(module, pieces.total_ns, lambda name: graph.names[name]))


def shares_by_phase(graph: TaskGraph, pieces: PathPieces) -> tuple[Share, ...]:
    """Forward, backward, optimizer, with lags and residuals; None where it is not known."""
    phase = graph.tasks.phase[pieces.task].astype(np.int64)
    phase = np.where(phase == Phase.UNKNOWN, NONE, phase)
    return _largest_first(
        _grouped(phase, pieces.total_ns, lambda number: Phase(number).name.lower())
    )


def modules(graph: TaskGraph) -> Int64:
    """Name of the module or annotation around each task, -1 for none: a step is neither."""
    steps = np.array([name.startswith(_STEP) for name in graph.names] + [False], bool)
    module = graph.tasks.module.astype(np.int64)
    return np.where(steps[module], NONE, module)


def collective_label(graph: TaskGraph, kind: int, group: int) -> str:
    """Kind, number of members and name of the communicator, where it has one."""
    known = graph.groups[group]
    name = f" in {known.name}" if known.name else ""
    return f"{CollectiveKind(kind).name.lower()} of {known.size}{name}"


def _grouped(number: Int64, total_ns: Int64, label: Callable[[int], str]) -> list[Share]:
    """Sum per number, named by `label`; a negative number has no name."""
    kept: Bool = total_ns > 0
    codes, place = np.unique(number[kept], return_inverse=True)
    sums = np.zeros(len(codes), np.int64)
    np.add.at(sums, place, total_ns[kept])
    return [
        Share(label=label(int(code)) if code >= 0 else None, total_ns=int(total))
        for code, total in zip(codes, sums, strict=True)
    ]


def _largest_first(shares: list[Share]) -> tuple[Share, ...]:
    kept = [share for share in shares if share.total_ns]
    return tuple(sorted(kept, key=lambda share: (-share.total_ns, share.label or "")))
