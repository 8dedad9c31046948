"""Figures as sentences say them: milliseconds, whole percents that add up, ranges, small lists."""

from collections.abc import Sequence

from ingest.units import format_ms
from whatif.levers import Lever
from whatif.report.levers import MovedFacts

LEAST_TOLD = 0.005
"""A share below rounds to nothing."""


def percent(frac: float) -> str:
    """A share of 1 in whole percent, below 10 % with one decimal."""
    return f"{frac:.0%}" if abs(frac) >= 0.0995 or not frac else f"{frac:.1%}"  # noqa: PLR2004  (9.95 % shows as 10.0 %)


def percents(parts: Sequence[float]) -> list[str]:
    """Parts of a whole as legends say them, `69.6%`; empty where that is 0.0.

    Each is rounded by itself, so that no figure differs from the same one elsewhere.
    """
    total = sum(parts)
    told = [f"{part / total if total > 0 else 0.0:.1%}" for part in parts]
    return ["" if one == "0.0%" else one for one in told]


def times(factor: float) -> str:
    """A speedup: `1.09x`."""
    return f"{factor:.2f}x"


def predicted(step_ns: int, moved: MovedFacts | Lever, *, is_bound: bool = False) -> str:
    """Step under a what-if with its range, the speedup, and the saving with its range.

    `predicted 375.10 ms, 371.00 ms to 380.00 ms (1.09x), saves 30.00 ms to 35.00 ms`. The first
    range is that of the answer, as every other surface gives it. That of the saving takes each
    answer against the same answer without the what-if: steps that differ do not widen it.

    Args:
        step_ns: what the saving counts from.
        moved: the what-if.
        is_bound: no run reaches it, and so it is told as the most that there is.
    """
    told = f"predicted {'at least ' if is_bound else ''}{format_ms(moved.step_ns)}"
    if format_ms(moved.low_ns) != format_ms(moved.high_ns):
        told += f", {span(moved.low_ns, moved.high_ns)}"
    if moved.step_ns > 0:
        told += f" ({'at most ' if is_bound else ''}{times(step_ns / moved.step_ns)})"
    most = "at most " if is_bound else ""
    if is_bound or format_ms(moved.saving_low_ns) == format_ms(moved.saving_high_ns):
        return f"{told}, saves {most}{format_ms(moved.saving_ns)}"
    return f"{told}, saves {span(moved.saving_low_ns, moved.saving_high_ns)}"


def span(low_ns: int, high_ns: int) -> str:
    """`3.00 ms to 4.00 ms`."""
    return f"{format_ms(low_ns)} to {format_ms(high_ns)}"


def joined(words: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    if len(words) <= 1:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 rank`, `8 ranks`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
