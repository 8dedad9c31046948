"""Whether what a run held in memory fits another accelerator, in words."""

from ingest.units import format_gib


def fits(peak_bytes: int, recorded_bytes: float | None, new_bytes: float | None, name: str) -> str:
    """The sentence that an answer prints.

    Args:
        peak_bytes: the most that the allocator held on one device; -1 where not recorded.
        recorded_bytes: memory of the recorded device; None where not known.
        new_bytes: memory of the new one; None where not known.
        name: of the new one.
    """
    if new_bytes is None:
        return f"memory: the catalog does not say how much {name} has"
    has = f"{name} has {format_gib(new_bytes)}"
    if peak_bytes < 0:
        compared = _at_least(recorded_bytes, has, new_bytes)
        return f"memory: what the run held is not recorded (profile_memory=True does it){compared}"
    holds = f"the run held at most {format_gib(peak_bytes)} in the recording, {has}"
    if peak_bytes > new_bytes:
        return f"warning: does not fit in memory: {holds}"
    return f"memory: fits: {holds}"


def _at_least(recorded_bytes: float | None, has: str, new_bytes: float) -> str:
    if recorded_bytes is None:
        return f"; {has}"
    was = f"than the recorded device ({format_gib(recorded_bytes)})"
    if new_bytes >= recorded_bytes:
        return f"; {has}, no less {was}: what ran fits"
    return f"; warning: {has}, less {was}: may not fit"
