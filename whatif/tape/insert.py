"""Collectives put into, and taken out of, the segments of a tape."""

from collections.abc import Sequence
from dataclasses import dataclass

from ingest.vocab import CollectiveKind
from replay.graph.arrays import Bool, Group, Int32, Int64
from whatif.tape.segments import Tape


@dataclass(frozen=True, slots=True, kw_only=True)
class Insertions:
    """Collectives to be put in: columns with one row per collective and recorded rank."""

    key: Int64
    """Equal for members of one collective on several recorded ranks that meet; unique else."""
    after: Int32
    """Task on whose lane, behind which, it runs (a kernel; of CPU runs a host task)."""
    kind: CollectiveKind
    group: Group
    """Of the new layout; appended to the graph's groups. Its ranks are empty where each recorded
    rank stands for one group of its own."""
    size_bytes: Int64
    """As nccl-tests counts it."""
    transfer_ns: Int64
    beside: bool
    """On a stream of its own: what follows on the lane goes on, and only `waits` waits."""
    waits: Int32
    """Task that waits for it where it runs beside; -1: the end of the segment."""
    host_ns: int
    """What its launch costs the thread."""


def inserted(tape: Tape, additions: Sequence[Insertions]) -> Tape:
    """The tape with more collectives."""
    raise NotImplementedError


def without(tape: Tape, collectives: Bool) -> Tape:
    """The tape whose chosen collectives take no time and join nobody."""
    raise NotImplementedError
