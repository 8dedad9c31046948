"""What idle time waited for: gaps walked back over the edges that bound each start."""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import HOST_KINDS, EdgeKind, Phase, TaskKind
from replay.engine.schedule import Schedule
from replay.graph import thresholds
from replay.graph.arrays import NONE, Int64, TaskGraph
from replay.results.unexplained import is_unrecorded_work
from whatif.compare import walks
from whatif.compare.leaves import IDLE, PARTS, Idle, Part
from whatif.compare.pieces import COLUMNS, Intervals, Pieces, Way, all_names, step_at
from whatif.compare.side import Side


def idle_pieces(
    side: Side, position: int, rows: Intervals, gap_lo: Int64, gap_hi: Int64, weight: int
) -> Pieces:
    """The gaps of one device, by what its next task waited for.

    Args:
        side: the run.
        position: of the rank, in `graph.ranks`.
        rows: what ran on the device.
        gap_lo: begin of each gap, ns.
        gap_hi: its end.
        weight: of the device among those of its rank.
    """
    graph = side.graph
    found = _segments(side, position, rows, gap_lo, gap_hi)
    step = step_at(side.baseline.replayed.boundary_ns, found.lo_ns)
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
        each[:, COLUMNS.index("cause")] = code
        keys.append(each)
        spent.append(part_ns)
    spent_ns = np.concatenate(spent)
    some = np.flatnonzero(spent_ns)
    return Pieces(
        keys=np.concatenate(keys)[some],
        task=np.full(len(some), NONE, np.int64),
        rank=np.full(len(some), position, np.int64),
        step=np.tile(step, 3)[some],
        units=spent_ns[some] * walks.UNITS * weight,
        count=np.full(len(some), weight, np.int64),
        raw_ns=spent_ns[some] * weight,
    )


@dataclass(frozen=True, slots=True)
class _Segments:
    """Idle time by what it waited for: task, and code of `walks`."""

    lo_ns: Int64
    hi_ns: Int64
    task: Int64
    what: Int64


def _segments(
    side: Side, position: int, rows: Intervals, gap_lo: Int64, gap_hi: Int64
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
    """_Segments in which a device task lay in wait while its call still worked go to that call.

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


def _following(graph: TaskGraph, rows: Intervals, gap_hi: Int64) -> Int64:
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
    first, last = step_at(boundary_ns, lo_ns), step_at(boundary_ns, hi_ns - 1)
    count = last - first + 1
    row = np.repeat(np.arange(len(lo_ns)), count)
    step = first[row] + np.arange(len(row)) - (np.cumsum(count) - count)[row]
    lo_ns = np.maximum(lo_ns[row], boundary_ns[step])
    hi_ns = np.minimum(hi_ns[row], boundary_ns[step + 1])
    return lo_ns, hi_ns, task[row], what[row]


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
            np.full(len(cause), Way.IDLE),
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
    """Per task its name, or that of the Python frame around it: a place in `all_names`."""
    name = side.graph.tasks.name.astype(np.int64)
    place = {frame: at for at, frame in enumerate(all_names(side)) if at >= len(side.graph.names)}
    for task, frame in side.frames.items():
        name[task] = place[frame]
    return name
