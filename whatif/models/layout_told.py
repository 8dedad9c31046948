"""Degrees and ranks before and after a what-if: what an answer says of it."""

from dataclasses import dataclass

from whatif.models.shape import Degrees

_SHOWN = ("dp", "tp", "cp", "pp")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTold:
    """Of the layout asked for, and how many ranks it has."""

    degrees: str
    """`dp 8 x tp 2`; empty where it was not understood."""
    ranks_before: int
    ranks_after: int
    throughput_per_rank: float | None
    """Times that of the recorded layout; None where nothing is left of the step."""

    def told(self, noun: str) -> str:
        """For people; the noun is what a rank is."""
        count = f"{self.ranks_after:,} {noun}{'' if self.ranks_after == 1 else 's'}"
        text = f"{self.degrees}: {count}" if self.degrees else count
        if self.ranks_after == self.ranks_before:
            return f"{text}, as before"
        text += f" ({self.ranks_before:,} before)"
        if self.throughput_per_rank is None:
            return text
        return f"{text}, throughput of each {self.throughput_per_rank:.3g} times as high"


def in_words(degrees: Degrees) -> str:
    """`dp 8 x tp 2`, with what else divides a replica's state and experts."""
    axes = [f"{name} {getattr(degrees, name)}" for name in _SHOWN if getattr(degrees, name) > 1]
    beside = [
        *([f"{degrees.virtual_stages} chunks a stage"] if degrees.virtual_stages > 1 else []),
        *(["sp"] if degrees.sp and degrees.tp > 1 else []),
        *([f"ep {degrees.ep}"] if degrees.ep > 1 else []),
        *([f"zero {degrees.zero}"] if degrees.zero else []),
    ]
    return ", ".join([" x ".join(axes) or "dp 1", *beside])
