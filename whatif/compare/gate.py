"""The gate of a comparison: how much slower the second run may be."""

import re
from dataclasses import dataclass

from ingest.errors import UsageError
from ingest.units import format_ms, parse_time
from whatif.compare.contract import Gate
from whatif.compare.words import signed_ms

_SHARE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*%", re.ASCII)
MOST_PERCENT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """So much is allowed: a share of a step, or a time."""

    text: str
    frac: float | None = None
    time_ns: int | None = None

    def of(self, step_ns: int) -> int:
        """In ns, of a step."""
        if self.time_ns is not None:
            return self.time_ns
        assert self.frac is not None, "one of the two is given"
        return round(self.frac * step_ns)


def parse_limit(text: str, option: str) -> Limit:
    """`5%` or `12ms`.

    Raises:
        UsageError: neither.
    """
    stripped = text.strip()
    if found := _SHARE.fullmatch(stripped):
        percent = float(found[1])
        if percent <= MOST_PERCENT:
            return Limit(text=stripped, frac=percent / 100)
    elif stripped.lower() in ("0", "0ms"):
        return Limit(text=stripped, time_ns=0)
    else:
        try:
            return Limit(text=stripped, time_ns=int(parse_time(stripped)))
        except UsageError:
            pass
    raise UsageError(
        f"`{option} {text}` is neither a share nor a time",
        hint=f"for example {option} 5% or {option} 12ms",
    )


def judge(limit: Limit, change_ns: int, step_ns: int, noise_ns: int | None) -> Gate:
    """Whether a change of the mean step passes.

    It fails where the second run is slower by more than the limit and by more than the steps of
    both runs vary by chance: a gate that fails by chance is soon switched off. Where noise is not
    known (one step each) the limit alone decides.
    """
    allowed_ns = limit.of(step_ns)
    is_over = change_ns > allowed_ns
    is_noise = noise_ns is not None and change_ns <= noise_ns
    if not is_over:
        reason = f"{signed_ms(change_ns)} is within {limit.text} ({format_ms(allowed_ns)})"
    elif is_noise:
        reason = (
            f"{signed_ms(change_ns)} is more than {limit.text} ({format_ms(allowed_ns)}), but "
            f"steps vary by {format_ms(noise_ns)} by chance: record more steps to tell"
        )
    else:
        reason = f"{signed_ms(change_ns)} is more than {limit.text} ({format_ms(allowed_ns)})"
    return Gate(
        limit=limit.text,
        limit_ns=allowed_ns,
        is_passed=not is_over or is_noise,
        reason=reason,
    )
