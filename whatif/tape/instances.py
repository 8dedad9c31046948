"""Programs side by side: which segment runs where, and which new task is a copy of which."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from replay.graph.arrays import NONE, Bool, Int64
from whatif.description.labels import Pass
from whatif.tape.reel import Reel
from whatif.tape.segments import Program
from whatif.tape.spans import Grouped, spread

TASKS_OF_MESSAGE = 2
"""Arrival and transfer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """Columns with one row per instance of a segment, program after program.

    Each program begins with what its rank did before the steps and ends with what it did after.
    """

    programs: tuple[Program, ...]
    program: Int64
    """Index into the programs."""
    row: Int64
    """Row of the program; -1 for what lies outside."""
    segment: Int64
    """Of the reel; -1 for messages between stages."""
    step: Int64
    layer: Int64
    micro_batch: Int64
    direction: Int64
    """Pass, which may be another than that of the segment."""
    base: Int64
    """New id of its first task."""
    count: Int64
    """Tasks."""
    as_recorded: Bool
    """The program up to here is the recorded one of its rank."""
    task: Int64
    """Per new task: the recorded one; -1 for those of messages."""
    of_task: Int64
    """Per new task: its instance."""

    def __len__(self) -> int:
        return len(self.segment)

    @property
    def n_tasks(self) -> int:
        """New tasks, meetings not among them."""
        return len(self.task)

    def shift(self, reel: Reel, name: str, instance: Int64) -> Int64:
        """How much higher a number (`step`, `layer`, `micro_batch`) is than in the recording.

        0 where the segment recorded has none.
        """
        recorded: Int64 = getattr(reel, name)
        segment = self.segment[instance]
        has_one = (segment >= 0) & (recorded[segment] >= 0)
        now: Int64 = getattr(self, name)
        return np.where(has_one, now[instance] - recorded[segment], 0)

    @property
    def by_segment(self) -> tuple[Int64, Int64]:
        """Instances of segments, and the segment of each."""
        row = np.flatnonzero(self.segment >= 0)
        return row, self.segment[row]


def instances_of(reel: Reel, programs: Sequence[Program]) -> Instances:
    """Number the new tasks: by program, by instance, then as recorded."""
    columns: dict[str, list[Int64]] = {
        name: []
        for name in ("program", "row", "segment", "step", "layer", "micro_batch", "direction")
    }
    outside = np.full(1, NONE, np.int64)
    for number, program in enumerate(programs):
        edges = (reel.before[program.like], reel.after[program.like])
        first, last = (np.full(1, segment, np.int64) for segment in edges)
        n_rows = len(program.segment)
        columns["program"].append(np.full(n_rows + 2, number, np.int64))
        columns["row"].append(np.concatenate([outside, np.arange(n_rows), outside]))
        columns["segment"].append(np.concatenate([first, program.segment, last]))
        for name in ("step", "layer", "micro_batch"):
            columns[name].append(np.concatenate([outside, getattr(program, name), outside]))
        columns["direction"].append(np.concatenate([outside, _directions(reel, program), outside]))
    whole = {name: np.concatenate([outside[:0], *each]) for name, each in columns.items()}
    segment = whole["segment"]
    count = np.where(segment >= 0, reel.tasks.count[segment], TASKS_OF_MESSAGE)
    base = np.cumsum(count) - count
    first = np.where(segment >= 0, reel.tasks.first[segment], NONE)
    n_recorded = len(reel.tasks.row)
    at = spread(np.where(segment >= 0, first, n_recorded), count)
    rows = np.concatenate([reel.tasks.row, np.full(TASKS_OF_MESSAGE, NONE, np.int64)])
    return Instances(
        programs=tuple(programs),
        base=base,
        count=count,
        as_recorded=_as_recorded(reel, programs),
        task=rows[at],
        of_task=np.repeat(np.arange(len(segment)), count),
        **whole,
    )


def _directions(reel: Reel, program: Program) -> Int64:
    if program.direction is not None:
        return program.direction.astype(np.int64)
    return np.where(program.segment >= 0, reel.direction[program.segment], Pass.NONE)


def _as_recorded(reel: Reel, programs: Sequence[Program]) -> Bool:
    """Per instance, whether its program is the recorded one up to it."""
    own = Grouped.of(reel.tape.segments.rank.astype(np.int64), int(reel.rank.max(initial=0)) + 1)
    found: list[Bool] = [np.zeros(0, bool)]
    for program in programs:
        recorded = own.row[own.first[program.like] : own.first[program.like + 1]]
        upto = np.zeros(len(program.segment), bool)
        n_both = min(len(recorded), len(upto))
        upto[:n_both] = program.segment[:n_both] == recorded[:n_both]
        upto = np.logical_and.accumulate(upto)
        whole_run = len(recorded) == len(upto) and bool(upto.all())
        found.append(np.concatenate([[True], upto, [whole_run]]))
    return np.concatenate(found)
