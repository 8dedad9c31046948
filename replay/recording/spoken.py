"""What a recording cost, in words and as an option to type."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from .stopwatch import APART_FRAC

_WORTH_TELLING_FRAC = 0.02
"""Two measurements of a step differ by so much without any cause."""
_MOST_TIMES = 2
"""A step that the profiler makes longer than so many times is hardly met by any replay: what has no
known cause stays as recorded, whatever the host does."""
_THREE_DIGITS = 100


def costs(heads: Sequence[Mapping[str, Any]]) -> str:
    """Step times before, while and after the recording, the median over ranks."""
    told = _medians(heads)
    clean_ns = unprofiled_step_ns(heads)
    text = ", ".join(f"{_ms(value_ns)} {name}" for name, value_ns in told.items())
    if not told:
        return "no step was measured"
    if not clean_ns or "while" not in told:
        return f"a step took {text} recording; to compare there is nothing"
    return f"a step took {text}: {_slowdown(told, clean_ns)}"


def _medians(heads: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Of the ranks that measured them, ns."""
    return {
        name: median(times)
        for name in ("before", "while", "after")
        if (times := [head["step_ns"][name] for head in heads if name in head.get("step_ns", {})])
    }


def _slowdown(told: Mapping[str, float], clean_ns: float) -> str:
    """What the profiler costs, or why the steps beside it do not tell."""
    if told["while"] < clean_ns * (1 - APART_FRAC):
        return (
            "with the profiler they were faster than without, so that those without are no "
            "measure of it (compilation, allocations, another user of the machine)"
        )
    more = f"{told['while'] / clean_ns - 1:+.0%} with the profiler"
    if told["while"] > clean_ns * _MOST_TIMES:
        return f"{more}, which is too much for --unprofiled-step to take out again"
    if _are_alike(told):
        return more
    return f"{more}; before and after are not alike, so the faster counts and is no option"


def _are_alike(told: Mapping[str, float]) -> bool:
    """A step before and one after tell the same; what they differ by is not the profiler's."""
    if not {"before", "after"} <= set(told):
        return True
    faster, slower = sorted((told["before"], told["after"]))
    return slower <= faster * (1 + APART_FRAC)


def unprofiled_step_ns(heads: Sequence[Mapping[str, Any]]) -> float:
    """Mean step without the profiler, the median over ranks; 0 where none was measured."""
    times = [head["unprofiled_step_ns"] for head in heads if "unprofiled_step_ns" in head]
    return median(times) if times else 0


def unprofiled_option(heads: Sequence[Mapping[str, Any]]) -> str:
    """` --unprofiled-step 412.3ms` where the profiler slowed the steps down, else nothing.

    Nothing either where a replay would refuse it: steps before and after that are not alike measure
    no step, and a host that is many times slower under the profiler is another one.
    """
    told, clean_ns = _medians(heads), unprofiled_step_ns(heads)
    if not clean_ns or "while" not in told or not _are_alike(told):
        return ""
    if not 1 + _WORTH_TELLING_FRAC <= told["while"] / clean_ns <= _MOST_TIMES:
        return ""
    return f" --unprofiled-step {_ms(clean_ns).replace(' ', '')}"


def _ms(value_ns: float) -> str:
    """Three digits, never as a power of ten."""
    value_ms = value_ns / 1e6
    return f"{value_ms:.0f} ms" if value_ms >= _THREE_DIGITS else f"{value_ms:.3g} ms"
