"""What stands in a new run for the task that an edge of the recording came from."""

import numpy as np

from ingest.vocab import EdgeKind
from replay.graph.arrays import NONE, Bool, Int64
from whatif.tape.instances import Instances
from whatif.tape.lanes import NewLanes, Stretches
from whatif.tape.reel import ORDER, Reel


def class_of(reel: Reel) -> Int64:
    """Number of part and direction of each segment; of its own for what lies outside."""
    kind = reel.part * (int(reel.direction.max(initial=0)) + 1) + reel.direction
    outside = np.arange(reel.n_segments) >= reel.n_own
    return np.where(outside, -2 - np.arange(reel.n_segments), kind)


def counterparts(reel: Reel, made: Instances, instance: Int64, task: Int64) -> Int64:
    """New task in an instance that stands for a recorded one; -1.

    In another segment than the task's own it is the one at the same turn on the lane of the same
    role, counted from the nearer end.
    """
    segment = np.where(instance >= 0, made.segment[instance], NONE)
    same = segment == reel.segment[task]
    found = np.where(same & (instance >= 0), made.base[instance] + reel.local[task], NONE)
    other = np.flatnonzero((instance >= 0) & ~same)
    if not len(other):
        return found
    occupied, role = reel.lanes, reel.role
    n_roles = int(role.max(initial=0)) + 1
    key = occupied.segment * n_roles + role[occupied.lane]
    order = np.argsort(key, kind="stable")
    asked = task[other]
    wanted = segment[other] * n_roles + role[occupied.lane[occupied.row[asked]]]
    place = np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)
    row = order[place]
    there = key[row] == wanted
    was, turn = occupied.row[asked], occupied.turn[asked]
    from_end = occupied.count[was] - 1 - turn
    near_end = from_end < turn
    now = np.where(near_end, occupied.count[row] - 1 - from_end, turn)
    now = np.clip(now, 0, occupied.count[row] - 1)
    new = made.base[instance[other]] + reel.local[occupied.tasks[occupied.at[row] + now]]
    found[other] = np.where(there, new, NONE)
    return found


_FOLLOWING = (
    *ORDER,
    EdgeKind.HAND_OVER,
    EdgeKind.HOST_SYNC,
    EdgeKind.EVENT_WAIT,
)
"""Edges that may come from the end of all that a lane had been given."""


def followed(
    reel: Reel,
    made: Instances,
    lanes: NewLanes,
    stretches: Stretches,
    instance: Int64,
    row: Int64,
) -> Int64:
    """Per carried edge that waited for all that a lane had before its segment: what has it now.

    Threads that hand over, streams that are synchronised and events do not ask whose work that was.
    An event is recorded at a certain place, though: only where that is of the same part of the
    model does it wait for the end of the lane (`alike`).

    Returns:
        The last new task on the lane before the instance; -1 for other edges.
    """
    occupied, edges = reel.lanes, reel.edges
    task = edges.src[row].astype(np.int64)
    width = reel.n_own + 2
    key = occupied.lane * width + reel.place[occupied.segment] + 1
    lane = occupied.lane[occupied.row[task]]
    place = reel.place[reel.segment[edges.dst[row]]] + 1
    last = np.searchsorted(key, lane * width + place) - 1
    ends = (last >= 0) & (occupied.last[last] == task) & np.isin(edges.kind[row], _FOLLOWING)
    found = np.full(len(row), NONE, np.int64)
    chosen = np.flatnonzero(ends)
    new_lane = lanes.of[made.program[instance[chosen]], lane[chosen]]
    n_both = len(made) + 1
    order = np.lexsort((stretches.instance, stretches.lane))
    known = stretches.lane[order] * n_both + stretches.instance[order]
    before = np.searchsorted(known, new_lane * n_both + instance[chosen]) - 1
    at = order[before]
    there = (before >= 0) & (new_lane >= 0) & (stretches.lane[at] == new_lane)
    found[chosen] = np.where(there, stretches.last[at], NONE)
    return found


def alike(reel: Reel, made: Instances, new: Int64, task: Int64) -> Bool:
    """Whether new tasks are copies of tasks of the same part and direction as others."""
    kind = class_of(reel)
    source = np.where(new >= 0, made.task[new], NONE)
    same: Bool = (source >= 0) & (kind[reel.segment[source]] == kind[reel.segment[task]])
    return same
