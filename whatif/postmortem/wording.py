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


def whole_percents(parts: Sequence[float]) -> list[int]:
    """Parts of a whole in whole percents that add up to 100: the largest remainders are rounded up.

    All are 0 where the parts are.
    """
    total = sum(parts)
    if total <= 0:
        return [0] * len(parts)
    exact = [100 * part / total for part in parts]
    whole = [int(one) for one in exact]
    missing = 100 - sum(whole)
    by_rest = sorted(range(len(parts)), key=lambda at: (whole[at] - exact[at], at))
    for at in by_rest[:missing]:
        whole[at] += 1
    return whole


def times(factor: float) -> str:
    """A speedup: `1.09x`."""
    return f"{factor:.2f}x"


def predicted(step_ns: int, savings_ns: tuple[int, int, int]) -> str:
    """Step and range under a what-if, and the speedup: `predicted 375.10 ms, 371.00 to ...`.

    Args:
        step_ns: what the saving counts from.
        savings_ns: low end, value and high end of the saving. Its range is that of each answer
            against the same answer without the what-if: steps that differ do not widen it.
    """
    slow_ns, told_ns, fast_ns = (step_ns - saving_ns for saving_ns in savings_ns)
    told = f"predicted {format_ms(told_ns)}"
    if format_ms(slow_ns) != format_ms(fast_ns):
        told += f", {format_ms(fast_ns)} to {format_ms(slow_ns)}"
    if fast_ns <= 0:
        return told
    slow, fast = times(step_ns / slow_ns), times(step_ns / fast_ns)
    return f"{told} ({slow})" if slow == fast else f"{told} ({slow} to {fast})"


def savings_of(moved: MovedFacts | Lever) -> tuple[int, int, int]:
    """Low end, value and high end of a saving, ns."""
    return moved.saving_low_ns, moved.saving_ns, moved.saving_high_ns


def range_ns(moved: MovedFacts | Lever, step_ns: int) -> tuple[int, int]:
    """Least and longest step that the range of a saving leaves of `step_ns`."""
    return step_ns - moved.saving_high_ns, step_ns - moved.saving_low_ns


def joined(words: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    if len(words) <= 1:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 rank`, `8 ranks`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
