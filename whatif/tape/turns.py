"""Threads of a rank that take turns: main and autograd, where passes follow in another order."""

import numpy as np

from ingest.vocab import EdgeKind, Evidence, LaneKind
from replay.graph.arrays import Bool, Int64
from replay.graph.csr import EdgeList
from whatif.tape.instances import Instances
from whatif.tape.lanes import Stretches
from whatif.tape.reel import Reel


def turn_edges(reel: Reel, made: Instances, found: Stretches) -> EdgeList:
    """Hand-overs between instances on different threads that did not follow in the recording.

    Forward runs on one thread and backward on another; each waits for the other's end. Where the
    two instances are neighbours as recorded their own edges say so.
    """
    lead = _leads(reel, found)
    at = found.instance[lead]
    same_program = made.program[at[1:]] == made.program[at[:-1]]
    other_thread = found.lane[lead[1:]] != found.lane[lead[:-1]]
    src, dst = lead[:-1], lead[1:]
    new = same_program & other_thread & ~_follow_as_recorded(reel, made, at)
    n_edges = int(new.sum())
    return EdgeList(
        src=found.last[src[new]].astype(np.int32),
        dst=found.first[dst[new]].astype(np.int32),
        lag_ns=np.zeros(n_edges, np.int64),
        kind=np.full(n_edges, EdgeKind.HAND_OVER, np.int8),
        evidence=np.full(n_edges, Evidence.INFERRED, np.int8),
        from_start=np.zeros(n_edges, bool),
    )


def _leads(reel: Reel, found: Stretches) -> Int64:
    """Per instance with work of threads the stretch on the thread that works longest in it."""
    occupied, graph = reel.lanes, reel.tape.graph
    counted = occupied.row >= 0
    spent_ns = np.bincount(
        occupied.row[counted], graph.tasks.dur_ns[counted], minlength=len(occupied.lane)
    )
    row = np.flatnonzero(_on_threads(reel)[found.occupied])
    order = row[np.lexsort((spent_ns[found.occupied[row]], found.instance[row]))]
    last = np.ones(len(order), bool)
    last[:-1] = found.instance[order[1:]] != found.instance[order[:-1]]
    return order[last]


def _on_threads(reel: Reel) -> Bool:
    """Per row of the recorded lanes."""
    is_thread = np.array([lane.kind == LaneKind.THREAD for lane in reel.tape.graph.lanes], bool)
    found: Bool = is_thread[reel.lanes.lane]
    return found


def _follow_as_recorded(reel: Reel, made: Instances, at: Int64) -> Bool:
    """Per pair of instances one after another, whether their segments did so in the recording.

    Segments without work of threads do not count.
    """
    with_thread = np.zeros(reel.n_segments, bool)
    with_thread[reel.lanes.segment[_on_threads(reel)]] = True
    order = np.lexsort((reel.place, reel.rank))
    number = np.empty(reel.n_segments, np.int64)
    number[order] = np.cumsum(with_thread[order])
    before, after = made.segment[at[:-1]], made.segment[at[1:]]
    same_rank = reel.rank[before] == reel.rank[after]
    follow: Bool = same_rank & (number[after] == number[before] + 1)
    return follow
