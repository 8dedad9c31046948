"""What the calls of a trace measured themselves: time by size, per kind, group and level."""

from dataclasses import dataclass, replace

from whatif.models.collectives.calls import Float64, Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Size to time of the calls of a trace; its rows are those of the calls it was made of."""

    curve: Int64
    """Per row: the number of its curve, -1 without one."""
    first: Int64
    """Per curve: its first knot; one more entry at the end."""
    size_bytes: Float64
    """Of the knots, rising within a curve."""
    time_ns: Float64
    """Of the knots, never falling within a curve."""

    def rows(self, numbers: Int64) -> "Curves":
        """Some rows, in the order given."""
        return replace(self, curve=self.curve[numbers])


def curves_of(
    kind: Int64, group: Int64, level: Int64, size_bytes: Int64, transfer_ns: Int64
) -> Curves:
    """Curves through the calls of a trace; the columns have one row per call.

    Args:
        kind: CollectiveKind.
        group: number of the communicator.
        level: any number that tells calls apart which cross other links.
        size_bytes: as in `Calls`; rows of unknown size (-1) belong to no curve.
        transfer_ns: measured time without waiting for late members.
    """
    raise NotImplementedError
