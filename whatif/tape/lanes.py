"""Lanes of the new ranks, and the order of instances along them."""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from ingest.vocab import EdgeKind, Evidence, KernelClass, LaneKind
from replay.graph.arrays import NONE, Bool, Int32, Int64, Lane, TaskGraph
from replay.graph.csr import EdgeList
from whatif.tape.instances import Instances
from whatif.tape.reel import Reel, lane_words

_ENGINES = (KernelClass.MEMCPY, KernelClass.MEMSET, KernelClass.COLLECTIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLanes:
    """Lanes of all new ranks, program after program."""

    lanes: tuple[Lane, ...]
    of: Int64
    """New lane by program and recorded lane, shape (programs, lanes); -1 where it has none."""
    streams: Int64
    """Per program a stream for each direction of messages between stages; shape (programs, 2)."""


def new_lanes(reel: Reel, made: Instances) -> NewLanes:
    """Lanes of the rank that each new one is like, and those that its other segments need.

    Lanes of two recorded ranks are one where they have the same role (the second `autograd` of one
    with the second of the other).
    """
    recorded = reel.tape.graph.lanes
    of_rank: dict[int, list[int]] = defaultdict(list)
    for number, lane in enumerate(recorded):
        of_rank[lane.rank].append(number)
    words = lane_words(recorded)
    lanes: list[Lane] = []
    of = np.full((len(made.programs), len(recorded)), NONE, np.int64)
    streams = np.full((len(made.programs), 2), NONE, np.int64)
    ranks = _ranks_of_programs(reel, made)
    for number, program in enumerate(made.programs):
        known: dict[tuple[str, int, int], int] = {}
        device = _device(recorded, of_rank[program.like])
        for rank in (program.like, *sorted(ranks[number] - {program.like})):
            for old in of_rank[rank]:
                if words[old] not in known:
                    known[words[old]] = len(lanes)
                    on_device = NONE if rank == program.like else device
                    lanes.append(_moved(recorded[old], program.rank, on_device))
                of[number, old] = known[words[old]]
        if program.p2p is not None and (program.p2p.kind > 0).any():
            for way, role in enumerate(("p2p", "p2p receive")):
                streams[number, way] = len(lanes)
                lanes.append(_stream(program.rank, device, role))
    return NewLanes(lanes=tuple(lanes), of=of, streams=streams)


def _ranks_of_programs(reel: Reel, made: Instances) -> list[set[int]]:
    """Recorded ranks whose segments each program runs."""
    row, segment = made.by_segment
    pairs = np.unique(np.stack([made.program[row], reel.rank[segment]], axis=1), axis=0)
    found: list[set[int]] = [set() for _ in made.programs]
    for program, rank in pairs.tolist():
        found[program].add(rank)
    return found


def _device(lanes: tuple[Lane, ...], of_rank: list[int]) -> int:
    """Device of a rank's streams; -1 for none."""
    streams = [lanes[number] for number in of_rank if lanes[number].kind == LaneKind.STREAM]
    return streams[0].device if streams else NONE


def _moved(lane: Lane, rank: int, device: int) -> Lane:
    """The lane on another rank; a stream on another device, but for -1."""
    keeps = lane.kind != LaneKind.STREAM or device == NONE
    return replace(lane, rank=rank, device=lane.device if keeps else device)


def _stream(rank: int, device: int, role: str) -> Lane:
    """For messages; a link where the rank has no device."""
    kind = LaneKind.LINK if device == NONE else LaneKind.STREAM
    return Lane(kind=kind, rank=rank, device=device, stream=NONE, role=role, steps=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretches:
    """Which instances have tasks on which new lanes; rows by instance, then by recorded lane."""

    instance: Int64
    lane: Int64
    """New."""
    first: Int64
    """New id of the first task there."""
    last: Int64
    before: Int64
    """Row that has the lane before; -1."""
    as_recorded: Bool
    """The neighbour before is the recorded one."""
    occupied: Int64
    """Row of the recorded lanes (`Reel.lanes`)."""


def stretches_of(reel: Reel, made: Instances, lanes: NewLanes) -> Stretches:
    """Follow every new lane from instance to instance."""
    occupied = reel.lanes
    instance, segment = made.by_segment
    at, row = occupied.of_segment.gathered(segment)
    where = instance[at]
    lane = lanes.of[made.program[where], occupied.lane[row]]
    first, last = (
        made.base[where] + reel.local[task[row]] for task in (occupied.first, occupied.last)
    )
    order = np.lexsort((where, lane))
    before = np.full(len(where), NONE, np.int64)
    same = lane[order[1:]] == lane[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    previous = np.where(before >= 0, made.segment[where[before]], NONE)
    return Stretches(
        instance=where,
        lane=lane,
        first=first,
        last=last,
        before=before,
        as_recorded=previous == occupied.previous[row],
        occupied=row,
    )


def order_edges(reel: Reel, made: Instances, found: Stretches) -> EdgeList:
    """Order along lanes where neighbours are not as recorded, with the lags typical of the run."""
    graph = reel.tape.graph
    row = np.flatnonzero(~found.as_recorded & (found.before >= 0))
    src, dst = found.last[found.before[row]], found.first[row]
    kinds = np.array([lane.kind for lane in graph.lanes], np.int64)
    before, after = made.task[src], made.task[dst]
    on_thread = kinds[graph.tasks.lane[after]] == LaneKind.THREAD
    return EdgeList(
        src=src.astype(np.int32),
        dst=dst.astype(np.int32),
        lag_ns=np.where(on_thread, 0, _typical_lags(graph, before, after)),
        kind=np.where(on_thread, EdgeKind.PROGRAM_ORDER, EdgeKind.STREAM_ORDER).astype(np.int8),
        evidence=np.full(len(row), Evidence.INFERRED, np.int8),
        from_start=np.zeros(len(row), bool),
    )


def _typical_lags(graph: TaskGraph, before: Int64, after: Int64) -> Int64:
    """Median lag of the run's neighbours on a stream, by what carries out the two, ns."""
    edges = graph.edges
    row = np.flatnonzero((edges.kind == EdgeKind.STREAM_ORDER) & (edges.lag_ns >= 0))
    if not len(row) or not len(before):
        return np.zeros(len(before), np.int64)
    dst = np.searchsorted(edges.start, row, side="right") - 1
    lag_ns = edges.lag_ns[row]
    pair, asked = _pair(graph, edges.src[row], dst), _pair(graph, before, after)
    found = np.full(len(before), int(np.median(lag_ns)), np.int64)
    for number in np.unique(asked).tolist():
        mine = pair == number
        if mine.any():
            found[asked == number] = int(np.median(lag_ns[mine]))
    return found


def _pair(graph: TaskGraph, before: Int64 | Int32, after: Int64) -> Int64:
    engine = np.zeros(max(KernelClass) + 1, np.int64)
    for number, one in enumerate(_ENGINES, start=1):
        engine[one] = number
    kernel_class = graph.tasks.kernel_class
    pair: Int64 = engine[kernel_class[before]] * (len(_ENGINES) + 1) + engine[kernel_class[after]]
    return pair
