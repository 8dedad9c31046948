"""Step boundaries of the new ranks."""

import numpy as np

from ingest.vocab import LaneKind
from replay.graph.arrays import NONE, Bool, Boundaries, Int64
from whatif.tape.instances import TASKS_OF_MESSAGE, Instances
from whatif.tape.lanes import NewLanes, Stretches
from whatif.tape.messages import Messages
from whatif.tape.reel import Reel
from whatif.tape.spans import Grouped, latest, spread


def boundaries_of(
    reel: Reel, made: Instances, lanes: NewLanes, stretches: Stretches, messages: Messages
) -> Boundaries:
    """Copies of what closed the steps of the rank that each new one is like.

    A step whose segments are not the recorded ones in their order closes with the last task of each
    stream, and of the threads that carry the steps, beside those.
    """
    bounds = reel.tape.graph.boundaries
    width = bounds.n_steps + 1
    position = {rank: at for at, rank in enumerate(bounds.ranks)}
    like = np.array([position[program.like] for program in made.programs], np.int64)
    slots = (like[:, None] * width + np.arange(width)).ravel()
    count = np.diff(bounds.start)[slots]
    slot = np.repeat(np.arange(len(slots)), count)
    task = bounds.task[spread(bounds.start[slots], count)].astype(np.int64)
    copy = _copies(reel, made, slot // width, task)
    others, other_slots = _last_tasks(reel, made, lanes, stretches, messages)
    slot = np.concatenate([slot[copy >= 0], other_slots])
    copy = np.concatenate([copy[copy >= 0], others])
    grouped = Grouped.of(slot, len(slots))
    return Boundaries(
        n_steps=bounds.n_steps,
        ranks=tuple(program.rank for program in made.programs),
        start=grouped.first.astype(np.int64),
        task=copy[grouped.row].astype(np.int32),
        floor_ns=bounds.floor_ns[slots],
    )


def _copies(reel: Reel, made: Instances, program: Int64, task: Int64) -> Int64:
    """The last copy of each task in its step of a program; -1."""
    row, segment = made.by_segment
    wanted = reel.segment[task]
    place = latest(
        [made.program[row], segment, made.step[row]],
        [program, wanted, reel.step[wanted]],
        np.full(len(task), len(row)),
    )
    return np.where(place >= 0, made.base[row[place]] + reel.local[task], NONE)


def _last_tasks(
    reel: Reel, made: Instances, lanes: NewLanes, stretches: Stretches, messages: Messages
) -> tuple[Int64, Int64]:
    """Last task of each closing lane in each step that is another than recorded, and its slot."""
    width = reel.tape.graph.boundaries.n_steps + 1
    message = messages.instance
    instance = np.concatenate([stretches.instance, message])
    task = np.concatenate([stretches.last, made.base[message] + TASKS_OF_MESSAGE - 1])
    streams = lanes.streams[made.program[message], messages.way]
    lane = np.concatenate([stretches.lane, streams])
    slot = made.program[instance] * width + made.step[instance] + 1
    closes = np.array(_closing(lanes), bool)
    kept = np.flatnonzero(
        closes[lane] & (made.step[instance] >= 0) & ~_step_as_recorded(reel, made)[instance]
    )
    kept = kept[np.lexsort((task[kept], slot[kept], lane[kept]))]
    ends = np.ones(len(kept), bool)
    ends[:-1] = (np.diff(lane[kept]) != 0) | (np.diff(slot[kept]) != 0)
    return task[kept[ends]], slot[kept[ends]]


def _closing(lanes: NewLanes) -> list[bool]:
    carrying = {lane.rank for lane in lanes.lanes if lane.steps}
    return [
        lane.kind != LaneKind.THREAD or lane.steps or lane.rank not in carrying
        for lane in lanes.lanes
    ]


def _step_as_recorded(reel: Reel, made: Instances) -> Bool:
    """Per instance, whether its program runs that step as the rank that it is like did."""
    segments = reel.tape.segments
    same = np.zeros(len(made), bool)
    own = {program.like: np.flatnonzero(segments.rank == program.like) for program in made.programs}
    by_step = {
        rank: [mine[segments.step[mine] == step] for step in range(len(reel.tape.graph.steps))]
        for rank, mine in own.items()
    }
    ends = np.searchsorted(made.program, np.arange(len(made.programs) + 1)).tolist()
    for program, first, behind in zip(made.programs, ends[:-1], ends[1:], strict=True):
        mine = np.arange(first, behind)
        steps = made.step[mine]
        for step, recorded in enumerate(by_step[program.like]):
            now = mine[steps == step]
            same[now] = np.array_equal(made.segment[now], recorded)
    return same
