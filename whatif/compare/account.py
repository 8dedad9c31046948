"""Where every nanosecond of a run's steps goes, down to kernels, collectives and host operators.

An instant of a device belongs to the compute kernels that run (in equal parts where several do),
else to the transfers of collectives, else to members that wait for others, else to copies: the
breakdown of DESIGN section 7. Else the device is idle, and the time goes to what its next task
waited for: the chain of edges that bound each start is walked back through the gap. Of a rank
without device work the threads that carry the steps stand for the device, as in that breakdown.
"""

from collections.abc import Iterator
from math import lcm

import numpy as np

from ingest.vocab import DEVICE_KINDS, HOST_KINDS, CollectiveKind, LaneKind, TaskKind
from replay.graph.arrays import NONE, Int64, TaskGraph
from whatif.compare import walks
from whatif.compare.leaves import Account
from whatif.compare.pieces import Intervals, Pieces, Way, joined, step_at
from whatif.compare.side import Side
from whatif.compare.sums import leaves_of, rank_accounts
from whatif.compare.waited import idle_pieces


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
        leaves=tuple(leaves_of(side, joined(pieces), weight, int(times.mean_ns))),
        ranks=tuple(rank_accounts(graph, joined(pieces), weight, int(times.mean_ns))),
        has_device=side.facts.has_device,
    )


def _of_rank(side: Side, rank: int) -> Iterator[Intervals]:
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


def _of_device(side: Side, ids: Int64) -> Intervals:
    kind = side.graph.tasks.kind[ids]
    copies = (kind == TaskKind.MEMCPY) | (kind == TaskKind.MEMSET)
    return _intervals(
        side, ids[kind == TaskKind.KERNEL], ids[kind == TaskKind.TRANSFER], ids[copies]
    )


def _of_threads(side: Side, ids: Int64) -> Intervals:
    graph = side.graph
    steps = np.array([lane.steps for lane in graph.lanes] + [False], bool)
    kind = graph.tasks.kind[ids]
    host = (kind == TaskKind.HOST_WORK) | (kind == TaskKind.HOST_CALL)
    carrying = steps[graph.tasks.lane[ids]]
    working = ids[host & carrying if carrying.any() else host]
    return _intervals(side, working, ids[kind == TaskKind.TRANSFER], ids[:0])


def _intervals(side: Side, compute: Int64, transfers: Int64, copies: Int64) -> Intervals:
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
    return Intervals(task[order], level[order], lo_ns[order], hi_ns[order])


def _shared_out(side: Side, position: int, rows: Intervals, weight: int) -> Iterator[Pieces]:
    """The pieces of one device: what ran, then what its idle time waited for."""
    boundary_ns = side.baseline.replayed.boundary_ns
    first_step = step_at(boundary_ns, rows.lo_ns)
    last_step = step_at(boundary_ns, rows.hi_ns - 1)
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
        step_at(boundary_ns, points_ns),
        first_piece,
        first_step,
        units,
    )
    row = np.repeat(np.arange(len(rows.task)), n_pieces)
    is_first = np.zeros(len(row), bool)
    is_first[first_piece] = True
    yield Pieces(
        keys=_running_keys(side.graph, rows.task[row], rows.level[row]),
        task=rows.task[row],
        rank=np.full(len(row), position, np.int64),
        step=np.arange(len(row)) - first_piece[row] + first_step[row],
        units=units * weight,
        count=is_first * weight,
        raw_ns=is_first * (rows.hi_ns - rows.lo_ns)[row] * weight,
    )
    yield idle_pieces(side, position, rows, gap_lo, gap_hi, weight)


def _running_keys(graph: TaskGraph, task: Int64, level: Int64) -> Int64:
    tasks, calls = graph.tasks, graph.collectives
    on_host = np.isin(tasks.kind[task], [int(kind) for kind in HOST_KINDS])
    member = (level == 1) | (level == 2)  # noqa: PLR2004  (transfers and waits: `_intervals`)
    number = np.where(member, tasks.collective[task], NONE)
    of_call = np.append(calls.kind.astype(np.int64), CollectiveKind.UNKNOWN)
    way = np.select(
        [on_host, member, level == 3],  # noqa: PLR2004
        [Way.CPU, Way.COLLECTIVE, Way.COPY],
        Way.KERNEL,
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
