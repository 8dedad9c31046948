"""Where every nanosecond of a run's steps goes, down to kernels, collectives and host operators.

An instant of a device belongs to the compute kernels that run (in equal parts where several do),
else to the transfers of collectives, else to members that wait for others, else to copies: the
breakdown of DESIGN section 7. Else the device is idle, and the time goes to what its next task
waited for: the chain of edges that bound each start is walked back through the gap. Of a rank
without device work the threads that carry the steps stand for the device, as in that breakdown.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from math import lcm

import numpy as np

from ingest.vocab import (
    DEVICE_KINDS,
    HOST_KINDS,
    CollectiveKind,
    EdgeKind,
    KernelClass,
    LaneKind,
    Phase,
    TaskKind,
)
from replay.engine.schedule import Schedule
from replay.graph import thresholds
from replay.graph.arrays import NONE, Int64, TaskGraph
from replay.results.unexplained import is_unrecorded_work
from whatif.compare import walks
from whatif.compare.side import Side


class Part(StrEnum):
    """The parts of the breakdown; waiting for members is told apart from transfers."""

    COMPUTE = "compute"
    TRANSFER = "exposed_transfer"
    WAIT = "exposed_wait"
    MEMCPY = "exposed_memcpy"
    IDLE = "idle"


PARTS = tuple(Part)


class Idle(StrEnum):
    """What an idle device (or the waiting thread of a run without one) waited for."""

    HOST = "host work"
    INPUT = "data loader"
    LAUNCH = "launch latency"
    GAPS = "gaps between kernels"
    EVENTS = "waits between streams"
    SYNC = "return of synchronising calls"
    HAND_OVER = "hand-over between threads"
    QUEUE = "full launch queue"
    GRAPH = "CUDA-graph work without rows"
    DEVICE = "another device of the rank"
    RANKS = "other ranks"
    LAST = "the last rank at the end"
    SILENT = "host silent, place known"
    """More than 1 ms without any row, inside a recorded operator or Python frame."""
    BEFORE = "work launched before the recording"
    UNKNOWN = "no known cause"


IDLE = tuple(Idle)
_STEP = re.compile(r"ProfilerStep#\d+")
CPU = "CPU work"
"""Cause of the compute part of ranks without device work."""


class _Way(IntEnum):
    """How the cause column of a piece is to be read."""

    KERNEL = 0
    CPU = 1
    COLLECTIVE = 2
    COPY = 3
    IDLE = 4


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Key:
    """What a piece of time was spent on; equal keys on all ranks and steps are one leaf."""

    part: Part
    cause: str
    """Kernel class, collective, direction of a copy, or why the device was idle."""
    name: str
    """Kernel, call or operator; empty where no row stands for it."""
    op: str
    """Innermost operator that launched it; empty where it is the name or none."""
    module: str
    phase: str
    shape: int
    """Equal for equal grids, blocks and input shapes; -1 where not recorded."""
    size_bytes: int
    """Of a collective; -1 where not recorded."""
    group: str
    """Of a collective: what the framework calls its communicator, and how many ranks it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One key with its time. Per step and rank (mean over ranks, devices of a rank, and steps)."""

    key: Key
    spent_ns: int
    per_step_ns: tuple[float, ...]
    """Of each step, mean over the ranks."""
    count: float
    raw_ns: float
    """Duration of all, whether something hid it or not."""
    places: tuple[int, ...] = ()
    """Of kernels: which ones they are, in launch order, among those of their operator and phase; in
    the first step of the first rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAccount:
    """The parts of one rank; they add up to the step of the run."""

    rank: int
    parts_ns: dict[Part, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The mean step of a run: the leaves add up to it exactly."""

    step_ns: int
    steps_ns: tuple[int, ...]
    """Of each step of the run."""
    leaves: tuple[Leaf, ...]
    """In the order of their keys."""
    ranks: tuple[RankAccount, ...]
    has_device: bool

    def part_ns(self, part: Part) -> int:
        """Sum of the leaves of a part."""
        return sum(leaf.spent_ns for leaf in self.leaves if leaf.key.part is part)


_COLUMNS = ("way", "part", "cause", "name", "op", "module", "phase", "shape", "size", "group")


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Stretches of time that belong to one key, on one rank and in one step."""

    keys: Int64
    """Shape (pieces, len(_COLUMNS))."""
    task: Int64
    """-1 in idle time."""
    rank: Int64
    """Position in `graph.ranks`."""
    step: Int64
    units: Int64
    count: Int64
    raw_ns: Int64


@dataclass(frozen=True, slots=True)
class _Intervals:
    """What may have an instant of one device, in order of the start."""

    task: Int64
    level: Int64
    lo_ns: Int64
    hi_ns: Int64


def account(side: Side) -> Account:
    """Share out the steps of a run, by its calibrated replay (which is the recording)."""
    graph, times = side.graph, side.baseline.replayed
    lanes = [
        (position, intervals)
        for position, info in enumerate(graph.ranks)
        for intervals in _of_rank(side, info.rank)
    ]
    per_rank = [sum(position == other for other, _ in lanes) for position, _ in lanes]
    weight = lcm(*per_rank) if per_rank else 1
    pieces = [
        piece
        for (position, intervals), devices in zip(lanes, per_rank, strict=True)
        for piece in _shared_out(side, position, intervals, weight // devices)
    ]
    boundary_ns = times.boundary_ns
    return Account(
        step_ns=int(times.mean_ns),
        steps_ns=tuple(np.diff(boundary_ns).tolist()),
        leaves=tuple(_leaves(side, _joined(pieces), weight, int(times.mean_ns))),
        ranks=tuple(_rank_accounts(graph, _joined(pieces), weight, int(times.mean_ns))),
        has_device=side.facts.has_device,
    )


def _of_rank(side: Side, rank: int) -> Iterator[_Intervals]:
    """The intervals of each device of a rank, or of its threads where it has none."""
    graph = side.graph
    links = np.array([lane.kind == LaneKind.LINK for lane in graph.lanes] + [False], bool)
    mine = graph.tasks.rank == rank
    on_device = np.isin(graph.tasks.kind, [int(kind) for kind in DEVICE_KINDS])
    ids = np.flatnonzero(mine & on_device & ~links[graph.tasks.lane])
    if not len(ids):
        yield _of_threads(side, np.flatnonzero(mine))
        return
    device = np.array([lane.device for lane in graph.lanes], np.int64)[graph.tasks.lane[ids]]
    for each in np.unique(device):
        yield _of_device(side, ids[device == each])


def _of_device(side: Side, ids: Int64) -> _Intervals:
    kind = side.graph.tasks.kind[ids]
    copies = (kind == TaskKind.MEMCPY) | (kind == TaskKind.MEMSET)
    return _intervals(
        side, ids[kind == TaskKind.KERNEL], ids[kind == TaskKind.TRANSFER], ids[copies]
    )


def _of_threads(side: Side, ids: Int64) -> _Intervals:
    graph = side.graph
    steps = np.array([lane.steps for lane in graph.lanes] + [False], bool)
    kind = graph.tasks.kind[ids]
    host = (kind == TaskKind.HOST_WORK) | (kind == TaskKind.HOST_CALL)
    carrying = steps[graph.tasks.lane[ids]]
    working = ids[host & carrying if carrying.any() else host]
    return _intervals(side, working, ids[kind == TaskKind.TRANSFER], ids[:0])


def _intervals(side: Side, compute: Int64, transfers: Int64, copies: Int64) -> _Intervals:
    """Inside the steps, without empty ones; a member waits from its arrival to its transfer."""
    start_ns, end_ns = side.baseline.schedule.start_ns, side.baseline.schedule.end_ns
    arrivals = transfers - 1
    task = np.concatenate([compute, transfers, arrivals, copies])
    sizes = [len(compute), len(transfers), len(arrivals), len(copies)]
    level = np.repeat(np.arange(walks.LEVELS), sizes)
    lo_ns = start_ns[task]
    hi_ns = np.concatenate(
        [end_ns[compute], end_ns[transfers], start_ns[transfers], end_ns[copies]]
    )
    boundary_ns = side.baseline.replayed.boundary_ns
    lo_ns = np.clip(lo_ns, boundary_ns[0], boundary_ns[-1])
    hi_ns = np.clip(hi_ns, boundary_ns[0], boundary_ns[-1])
    order = np.lexsort((task, level, hi_ns, lo_ns))
    order = order[hi_ns[order] > lo_ns[order]]
    return _Intervals(task[order], level[order], lo_ns[order], hi_ns[order])


def _shared_out(side: Side, position: int, rows: _Intervals, weight: int) -> Iterator[_Pieces]:
    """The pieces of one device: what ran, then what its idle time waited for."""
    boundary_ns = side.baseline.replayed.boundary_ns
    first_step = _step_at(boundary_ns, rows.lo_ns)
    last_step = _step_at(boundary_ns, rows.hi_ns - 1)
    n_pieces = last_step - first_step + 1
    first_piece = np.cumsum(n_pieces) - n_pieces
    units = np.zeros(int(n_pieces.sum()), np.int64)
    points_ns = np.unique(np.concatenate([rows.lo_ns, rows.hi_ns, boundary_ns]))
    gap_lo, gap_hi = walks.share_out(
        rows.lo_ns,
        rows.hi_ns,
        rows.level,
        np.argsort(rows.hi_ns, kind="stable"),
        points_ns,
        _step_at(boundary_ns, points_ns),
        first_piece,
        first_step,
        units,
    )
    row = np.repeat(np.arange(len(rows.task)), n_pieces)
    is_first = np.zeros(len(row), bool)
    is_first[first_piece] = True
    yield _Pieces(
        keys=_running_keys(side.graph, rows.task[row], rows.level[row]),
        task=rows.task[row],
        rank=np.full(len(row), position, np.int64),
        step=np.arange(len(row)) - first_piece[row] + first_step[row],
        units=units * weight,
        count=is_first * weight,
        raw_ns=is_first * (rows.hi_ns - rows.lo_ns)[row] * weight,
    )
    yield _idle_pieces(side, position, _segments(side, position, rows, gap_lo, gap_hi), weight)


def _step_at(boundary_ns: Int64, moment_ns: Int64) -> Int64:
    place = np.searchsorted(boundary_ns, moment_ns, side="right") - 1
    return np.clip(place, 0, len(boundary_ns) - 2)


def _running_keys(graph: TaskGraph, task: Int64, level: Int64) -> Int64:
    tasks, calls = graph.tasks, graph.collectives
    on_host = np.isin(tasks.kind[task], [int(kind) for kind in HOST_KINDS])
    member = (level == 1) | (level == 2)  # noqa: PLR2004  (transfers and waits: `_intervals`)
    number = np.where(member, tasks.collective[task], NONE)
    of_call = np.append(calls.kind.astype(np.int64), CollectiveKind.UNKNOWN)
    way = np.select(
        [on_host, member, level == 3],  # noqa: PLR2004
        [_Way.CPU, _Way.COLLECTIVE, _Way.COPY],
        _Way.KERNEL,
    )
    return np.column_stack(
        [
            way,
            level,
            np.where(member, of_call[number], tasks.kernel_class[task]),
            tasks.name[task],
            tasks.op[task],
            tasks.module[task],
            tasks.phase[task],
            tasks.geometry[task],
            np.append(calls.size_bytes, NONE)[number],
            np.append(calls.group.astype(np.int64), NONE)[number],
        ]
    ).astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Segments:
    """Idle time by what it waited for: task, and code of `walks`."""

    lo_ns: Int64
    hi_ns: Int64
    task: Int64
    what: Int64


def _segments(
    side: Side, position: int, rows: _Intervals, gap_lo: Int64, gap_hi: Int64
) -> _Segments:
    graph, schedule = side.graph, side.baseline.schedule
    edges, rank = graph.edges, graph.ranks[position].rank
    following = _following(graph, rows, gap_hi)
    lag_kind = np.where(is_unrecorded_work(graph), len(EdgeKind), edges.kind).astype(np.int64)
    room = 8 * len(gap_lo) + 64
    while True:
        found = np.empty((room, 4), np.int64)
        n = walks.trace_gaps(
            gap_lo,
            gap_hi,
            following,
            _closing(side, position),
            schedule.start_ns,
            schedule.end_ns,
            graph.tasks.residual_ns,
            schedule.blocked_by,
            edges.src,
            lag_kind,
            edges.from_start,
            graph.tasks.rank,
            rank,
            found,
        )
        if n <= room:
            told = _inside_calls(side, found[:n])
            return _Segments(*_cut(told, side.baseline.replayed.boundary_ns))
        room = n


def _inside_calls(side: Side, found: Int64) -> Int64:
    """Segments in which a device task lay in wait while its call still worked go to that call.

    So it is with copies from pageable memory, which the driver stages first.
    """
    lo_ns, hi_ns, task, what = found.T
    caller = side.graph.tasks.caller[task].astype(np.int64)
    inside = (what == walks.RESIDUAL) & (caller >= 0)
    until_ns = np.where(inside, np.clip(side.baseline.schedule.end_ns[caller], lo_ns, hi_ns), lo_ns)
    calls = np.column_stack([lo_ns, until_ns, caller, np.full(len(task), walks.TASK)])
    rest = np.column_stack([until_ns, hi_ns, task, what])
    both = np.concatenate([calls, rest])
    return both[both[:, 1] > both[:, 0]]


def _following(graph: TaskGraph, rows: _Intervals, gap_hi: Int64) -> Int64:
    """The task that ends each gap; of a member that waited for nobody its arrival."""
    place = np.searchsorted(rows.lo_ns, gap_hi)
    task: Int64 = np.append(rows.task, NONE)[place]
    is_transfer = (task >= 0) & (graph.tasks.kind[task] == TaskKind.TRANSFER)
    return np.where(is_transfer, task - 1, task)


def _closing(side: Side, position: int) -> int:
    """The task that closes the last step of a rank; -1 where none does."""
    bounds = side.graph.boundaries
    at = position * (bounds.n_steps + 1) + bounds.n_steps
    closing = bounds.task[bounds.start[at] : bounds.start[at + 1]]
    if not len(closing):
        return NONE
    return int(closing[np.argmax(side.baseline.schedule.end_ns[closing])])


def _cut(found: Int64, boundary_ns: Int64) -> tuple[Int64, Int64, Int64, Int64]:
    """One row per segment and step that it touches."""
    lo_ns, hi_ns, task, what = found.T
    first, last = _step_at(boundary_ns, lo_ns), _step_at(boundary_ns, hi_ns - 1)
    count = last - first + 1
    row = np.repeat(np.arange(len(lo_ns)), count)
    step = first[row] + np.arange(len(row)) - (np.cumsum(count) - count)[row]
    lo_ns = np.maximum(lo_ns[row], boundary_ns[step])
    hi_ns = np.minimum(hi_ns[row], boundary_ns[step + 1])
    return lo_ns, hi_ns, task[row], what[row]


def _idle_pieces(side: Side, position: int, found: _Segments, weight: int) -> _Pieces:
    graph = side.graph
    step = _step_at(side.baseline.replayed.boundary_ns, found.lo_ns)
    length_ns = found.hi_ns - found.lo_ns
    cause = _causes(graph, side.baseline.schedule, found)
    loading_ns, silent_ns = _of_host_work(side, position, found, cause)
    named = _with_names(side, found, cause)
    keys, spent = [], []
    for part_ns, code in (
        (length_ns - loading_ns - silent_ns, cause),
        (loading_ns, IDLE.index(Idle.INPUT)),
        (silent_ns, _silence(side, found)),
    ):
        each = named.copy()
        each[:, _COLUMNS.index("cause")] = code
        keys.append(each)
        spent.append(part_ns)
    spent_ns = np.concatenate(spent)
    some = np.flatnonzero(spent_ns)
    return _Pieces(
        keys=np.concatenate(keys)[some],
        task=np.full(len(some), NONE, np.int64),
        rank=np.full(len(some), position, np.int64),
        step=np.tile(step, 3)[some],
        units=spent_ns[some] * walks.UNITS * weight,
        count=np.full(len(some), weight, np.int64),
        raw_ns=spent_ns[some] * weight,
    )


_OF_LAG = {
    EdgeKind.PROGRAM_ORDER: Idle.HAND_OVER,
    EdgeKind.HAND_OVER: Idle.HAND_OVER,
    EdgeKind.LAUNCH: Idle.LAUNCH,
    EdgeKind.GRAPH_LAUNCH: Idle.LAUNCH,
    EdgeKind.STREAM_ORDER: Idle.GAPS,
    EdgeKind.EVENT_WAIT: Idle.EVENTS,
    EdgeKind.HOST_SYNC: Idle.SYNC,
    EdgeKind.QUEUE_FULL: Idle.QUEUE,
    EdgeKind.SM_FULL: Idle.GAPS,
    EdgeKind.COLLECTIVE: Idle.RANKS,
    EdgeKind.P2P: Idle.RANKS,
}


def _causes(graph: TaskGraph, schedule: Schedule, found: _Segments) -> Int64:
    """Code in `IDLE` of each segment.

    A residual no longer than lags can be goes where the lag of its edge goes. Where the call of a
    task is recorded and nothing else held it back, its stream was held by work that was launched
    before the recording.
    """
    host = np.isin(graph.tasks.kind[found.task], [int(kind) for kind in HOST_KINDS])
    of_code = np.full(walks.LAG + len(EdgeKind) + 1, IDLE.index(Idle.UNKNOWN), np.int64)
    of_code[walks.AWAY] = IDLE.index(Idle.RANKS)
    of_code[walks.ENDED] = IDLE.index(Idle.LAST)
    for kind, idle in _OF_LAG.items():
        of_code[walks.LAG + kind] = IDLE.index(idle)
    of_code[walks.LAG + len(EdgeKind)] = IDLE.index(Idle.GRAPH)
    cause = of_code[found.what]
    edge = schedule.blocked_by[found.task]
    short = (found.what == walks.RESIDUAL) & (edge >= 0)
    short &= found.hi_ns - found.lo_ns <= thresholds.LONGEST_LAG_NS
    cause[short] = of_code[walks.LAG + graph.edges.kind[edge[short]]]
    queued = (found.what == walks.RELEASED) & (graph.tasks.caller[found.task] >= 0)
    cause[queued] = IDLE.index(Idle.BEFORE)
    task = found.what == walks.TASK
    cause[task] = np.where(host[task], IDLE.index(Idle.HOST), IDLE.index(Idle.DEVICE))
    return cause


def _of_host_work(side: Side, position: int, found: _Segments, cause: Int64) -> tuple[Int64, Int64]:
    """Of each segment of host work: time inside the data loader, and silence without a cause."""
    graph = side.graph
    host = cause == IDLE.index(Idle.HOST)
    steps = np.array([lane.steps for lane in graph.lanes] + [False], bool)
    carrying = host & (steps[graph.tasks.lane[found.task]] | ~steps.any())
    inside_ns = side.fetching.of(graph.ranks[position].rank).within(found.lo_ns, found.hi_ns)
    loading_ns = np.where(carrying, inside_ns, 0)
    length_ns = found.hi_ns - found.lo_ns
    whole_ns = np.maximum(graph.tasks.dur_ns[found.task], 1)
    silent_ns = length_ns * graph.tasks.unexplained_ns[found.task] // whole_ns
    silent_ns = np.where(host, np.minimum(silent_ns, length_ns - loading_ns), 0)
    return loading_ns, silent_ns


def _silence(side: Side, found: _Segments) -> Int64:
    """Cause of the silent part of each segment: its place, where an operator or frame tells it."""
    has_frame = np.isin(found.task, np.fromiter(side.frames, np.int64, len(side.frames)))
    is_placed = (side.graph.tasks.op[found.task] >= 0) | has_frame
    return np.where(is_placed, IDLE.index(Idle.SILENT), IDLE.index(Idle.UNKNOWN))


def _with_names(side: Side, found: _Segments, cause: Int64) -> Int64:
    """Key columns: host work by its operator, its call or the Python frame around it."""
    tasks = side.graph.tasks
    nothing = np.full(len(cause), NONE, np.int64)
    op = tasks.op[found.task].astype(np.int64)
    name = np.where(op >= 0, tasks.name[found.task], _own_names(side)[found.task])
    is_lag = (found.what != walks.TASK) & (cause != IDLE.index(Idle.RANKS))
    return np.column_stack(
        [
            np.full(len(cause), _Way.IDLE),
            np.full(len(cause), PARTS.index(Part.IDLE)),
            cause,
            np.where(is_lag, NONE, name),
            np.where(is_lag, NONE, op),
            nothing,
            np.where(is_lag, Phase.UNKNOWN, tasks.phase[found.task]),
            nothing,
            nothing,
            nothing,
        ]
    ).astype(np.int64)


def _own_names(side: Side) -> Int64:
    """Per task its name, or that of the Python frame around it: a place in `_names`."""
    name = side.graph.tasks.name.astype(np.int64)
    place = {frame: at for at, frame in enumerate(_names(side)) if at >= len(side.graph.names)}
    for task, frame in side.frames.items():
        name[task] = place[frame]
    return name


def _names(side: Side) -> tuple[str, ...]:
    return (*side.graph.names, *sorted(set(side.frames.values())))


def _joined(pieces: list[_Pieces]) -> _Pieces:
    def column(name: str) -> Int64:
        return np.concatenate([getattr(piece, name) for piece in pieces])

    return _Pieces(**{name: column(name) for name in _Pieces.__slots__})


def _leaves(side: Side, pieces: _Pieces, weight: int, step_ns: int) -> Iterator[Leaf]:
    """The pieces by key, with whole nanoseconds that add up to the step."""
    graph, names = side.graph, _names(side)
    rows, leaf = np.unique(pieces.keys, axis=0, return_inverse=True)
    keys = [_key(graph, names, row) for row in rows.tolist()]
    distinct = sorted(set(keys))
    place = {key: number for number, key in enumerate(distinct)}
    leaf = np.array([place[key] for key in keys], np.int64)[leaf.reshape(-1)]
    n_ranks, n_steps = len(graph.ranks), len(graph.steps)
    share = weight * n_ranks
    whole = _exact_sums(leaf, len(distinct), pieces.units)
    spent_ns = whole_numbers(whole, walks.UNITS * share * n_steps, step_ns)
    per_step = np.zeros((len(distinct), n_steps))
    np.add.at(per_step, (leaf, pieces.step), pieces.units / (walks.UNITS * share))
    count = np.bincount(leaf, pieces.count, len(distinct)) / (share * n_steps)
    raw_ns = np.bincount(leaf, pieces.raw_ns, len(distinct)) / (share * n_steps)
    places = _places(graph, pieces, leaf)
    for number, key in enumerate(distinct):
        yield Leaf(
            key=key,
            spent_ns=spent_ns[number],
            per_step_ns=tuple(per_step[number].tolist()),
            count=float(count[number]),
            raw_ns=float(raw_ns[number]),
            places=tuple(places.get(number, ())),
        )


def _places(graph: TaskGraph, pieces: _Pieces, leaf: Int64) -> dict[int, list[int]]:
    """Per leaf the ordinals of its kernels among those of their operators and phase."""
    ordinal = _ordinals(graph)
    chosen = np.flatnonzero((pieces.task >= 0) & (ordinal[pieces.task] >= 0))
    pairs = np.unique(np.column_stack([leaf[chosen], ordinal[pieces.task[chosen]]]), axis=0)
    found: dict[int, list[int]] = {}
    for number, place in pairs.tolist():
        found.setdefault(number, []).append(place)
    return found


def _ordinals(graph: TaskGraph) -> Int64:
    """Per task; -1 for all but the kernels of the first rank's first step that have an operator."""
    tasks = graph.tasks
    first = (tasks.kind == TaskKind.KERNEL) & (tasks.op >= 0) & (tasks.rank == graph.ranks[0].rank)
    ids = np.flatnonzero(first & (tasks.step == 0))
    issued_ns = np.where(tasks.caller[ids] >= 0, tasks.ts_ns[tasks.caller[ids]], tasks.ts_ns[ids])
    group = tasks.op[ids].astype(np.int64) * len(Phase) + tasks.phase[ids]
    order = np.lexsort((tasks.ts_ns[ids], issued_ns, group))
    group, ids = group[order], ids[order]
    ordinal = np.full(graph.n_tasks, NONE, np.int64)
    ordinal[ids] = np.arange(len(ids)) - np.searchsorted(group, group)
    return ordinal


def _rank_accounts(
    graph: TaskGraph, pieces: _Pieces, weight: int, step_ns: int
) -> Iterator[RankAccount]:
    part = pieces.keys[:, _COLUMNS.index("part")]
    whole = _exact_sums(
        pieces.rank * len(PARTS) + part, len(graph.ranks) * len(PARTS), pieces.units
    )
    for position, info in enumerate(graph.ranks):
        mine = whole[position * len(PARTS) : (position + 1) * len(PARTS)]
        parts_ns = whole_numbers(mine, walks.UNITS * weight * len(graph.steps), step_ns)
        yield RankAccount(rank=info.rank, parts_ns=dict(zip(PARTS, parts_ns, strict=True)))


def _exact_sums(group: Int64, n_groups: int, units: Int64) -> list[int]:
    """Sums of units, which together may pass 64 bits."""
    high, low = np.zeros(n_groups, np.int64), np.zeros(n_groups, np.int64)
    np.add.at(high, group, units // walks.UNITS)
    np.add.at(low, group, units % walks.UNITS)
    return [
        above * walks.UNITS + below
        for above, below in zip(high.tolist(), low.tolist(), strict=True)
    ]


def whole_numbers(parts: list[int], divisor: int, total: int) -> list[int]:
    """`parts / divisor` in whole numbers that add up to `total`: largest remainders first.

    `total` is the exact sum, rounded.
    """
    whole = [part // divisor for part in parts]
    left = total - sum(whole)
    order = sorted(range(len(parts)), key=lambda place: (-(parts[place] % divisor), place))
    for place in order[:left]:
        whole[place] += 1
    return whole


def _key(graph: TaskGraph, names: tuple[str, ...], row: list[int]) -> Key:
    column = dict(zip(_COLUMNS, row, strict=True))
    name, op, module = (_text(names, column[each]) for each in ("name", "op", "module"))
    return Key(
        part=PARTS[column["part"]],
        cause=_cause(_Way(column["way"]), column["cause"], name),
        name=name,
        op="" if op == name else op,
        module=module,
        phase="" if column["phase"] == Phase.UNKNOWN else Phase(column["phase"]).name.lower(),
        shape=column["shape"],
        size_bytes=column["size"],
        group=_group(graph, column["group"]),
    )


def _cause(way: _Way, code: int, name: str) -> str:
    if way is _Way.CPU:
        return CPU
    if way is _Way.IDLE:
        return IDLE[code]
    if way is _Way.COLLECTIVE:
        return CollectiveKind(code).name.lower() if code else "collective of unknown kind"
    if way is _Way.COPY:
        return name.partition("(")[0].strip() or "copy"
    return KernelClass(code).name.lower()


def _text(names: tuple[str, ...], number: int) -> str:
    """Annotations that only number the step are no name of anything."""
    return "" if number < 0 or _STEP.fullmatch(names[number]) else names[number]


def _group(graph: TaskGraph, number: int) -> str:
    if number < 0:
        return ""
    group = graph.groups[number]
    ranks = f"{group.size} ranks" if group.size else ""
    return ", ".join(filter(None, [group.description, ranks]))
