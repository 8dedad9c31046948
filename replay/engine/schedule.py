"""The outcome of a replay: when every task started and what held it back."""

from dataclasses import dataclass

from replay.graph.arrays import Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Columns with one row per task of the replayed graph, read-only, nanoseconds."""

    start_ns: Int64
    end_ns: Int64
    blocked_by: Int64
    """Index of the incoming edge that bound the start; -1 where the release did."""

    def __post_init__(self) -> None:
        for array in (self.start_ns, self.end_ns, self.blocked_by):
            array.flags.writeable = False
