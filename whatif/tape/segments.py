"""Segments of a run, and programs made of them."""

from dataclasses import dataclass

from replay.graph.arrays import Int8, Int32, Int64, TaskGraph
from whatif.description.labels import Labels

OUTSIDE = -1
"""Segment of tasks that no program moves: before the first step, after the last, or fixed."""
SEND, RECEIVE, BOTH = 1, 2, 3
"""What an end of a message does; both at once where two ranks exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Columns with one row per segment, by rank, step and the order in which the host runs them."""

    rank: Int32
    """Rank in the files that recorded it."""
    step: Int32
    """Ordinal of the step."""
    part: Int8
    direction: Int8
    """Pass."""
    layer: Int32
    micro_batch: Int32

    def __len__(self) -> int:
        return len(self.rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tape:
    """A graph and the segments that it is made of."""

    graph: TaskGraph
    labels: Labels
    segments: Segments
    segment: Int32
    """Per task: its segment; OUTSIDE. A host thread's tasks of one segment are consecutive on their
    lane, and a device task belongs to the segment of the call that launched it. MEET tasks have the
    segment of the first of their members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What one new rank runs. Rows are instances of segments in the order of its host."""

    rank: int
    """New number of the rank."""
    like: int
    """Recorded rank whose lanes, clock and device it has."""
    stage: int
    """Pipeline stage."""
    segment: Int32
    """Into `Tape.segments`; OUTSIDE for a p2p instance."""
    step: Int32
    layer: Int32
    """In the new model."""
    micro_batch: Int32
    """In the new step."""
    p2p: "Peers | None" = None
    direction: Int8 | None = None
    """Pass of each instance, where it becomes another than that of its segment: a forward that is
    run again, halves of a backward. The segments and labels of what is assembled have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """Sends and receives between stages: one row per instance of the program."""

    kind: Int8
    """SEND, RECEIVE or BOTH; 0 for an instance of a segment."""
    peer: Int32
    """New rank at the other end of the (first) message; -1."""
    key: Int64
    """Equal on both ends: which message it is; -1."""
    size_bytes: Int64
    transfer_ns: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A graph that was put together."""

    tape: Tape
    """Of the new graph: it can be cut and put together again."""
    dropped_edges: int
    """Edges between segments that have no counterpart in the new order."""
