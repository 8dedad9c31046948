"""What a recording cost, in words and as an option to type."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from .stopwatch import APART_FRAC

_WORTH_TELLING_FRAC = 0.02
"""Two measurements of a step differ by so much without any cause."""
_MOST_TIMES = 5
"""A step that the profiler makes so many times as long is met by no replay."""
_THREE_DIGITS = 100


def costs(heads: Sequence[Mapping[str, Any]]) -> str:
    """Step times before, while and after the recording, the median over ranks."""
    told = {
        name: median(times)
        for name in ("before", "while", "after")
        if (times := [head["step_ns"][name] for head in heads if name in head.get("step_ns", {})])
    }
    clean_ns = unprofiled_step_ns(heads)
    text = ", ".join(f"{_ms(value_ns)} {name}" for name, value_ns in told.items())
    if not told:
        return "no step was measured"
    if not clean_ns or "while" not in told:
        return f"a step took {text} recording; to compare there is nothing"
    more = told["while"] / clean_ns - 1
    return f"a step took {text}: {more:+.0%} with the profiler{_drift(told)}"


def _drift(told: Mapping[str, float]) -> str:
    """What a step before and one after differ by is not the profiler's."""
    if not {"before", "after"} <= set(told):
        return ""
    faster, slower = sorted((told["before"], told["after"]))
    alike = slower <= faster * (1 + APART_FRAC)
    return "" if alike else "; before and after are not alike, so the faster counts"


def unprofiled_step_ns(heads: Sequence[Mapping[str, Any]]) -> float:
    """Mean step without the profiler, the median over ranks; 0 where none was measured."""
    times = [head["unprofiled_step_ns"] for head in heads if "unprofiled_step_ns" in head]
    return median(times) if times else 0


def unprofiled_option(heads: Sequence[Mapping[str, Any]]) -> str:
    """` --unprofiled-step 412.3ms` where the profiler slowed the steps down, else nothing."""
    clean_ns = unprofiled_step_ns(heads)
    slow = [head["step_ns"]["while"] for head in heads if "while" in head.get("step_ns", {})]
    if not clean_ns or not slow:
        return ""
    if not 1 + _WORTH_TELLING_FRAC <= median(slow) / clean_ns <= _MOST_TIMES:
        return ""
    return f" --unprofiled-step {_ms(clean_ns).replace(' ', '')}"


def _ms(value_ns: float) -> str:
    """Three digits, never as a power of ten."""
    value_ms = value_ns / 1e6
    return f"{value_ms:.0f} ms" if value_ms >= _THREE_DIGITS else f"{value_ms:.3g} ms"
