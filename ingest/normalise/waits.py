"""How long each member of a collective waited, and how long it moved data."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ingest.normalise.awaited import ABSENT, Awaited

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

MIN_EQUAL_CALLS = 3
_UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedCalls:
    """Columns with one row per member; times on one clock."""

    collective: Int64
    """Dense from 0."""
    start_ns: Int64
    end_ns: Int64
    awaited: Awaited
    call_type: Int64
    """The same number for equal calls (kind, size, dtype, communicator, name); -1 without size."""
    missing: Bool
    """Some member that it waits for is not in the files."""
    uncertainty_ns: Int64
    """How far the clocks of the member files may be apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Columns with one row per member: wait + transfer = duration."""

    go_ns: Int64
    """Per collective: the latest start of the members seen."""
    wait_ns: Int64
    transfer_ns: Int64
    transfer_low_ns: Int64
    transfer_high_ns: Int64
    outside_wait_ns: Int64
    """The part of the wait that is for ranks that are not in the files."""
    needs_model: Bool
    """Members are missing and too few equal calls bound the transfer from below: a cost model
    has to; until then the whole measured time counts as transfer."""
    early: Bool
    """Ended before the last member started, by more than the clocks may be apart: it did not
    wait for that one, and all its duration is transfer."""


def split_waits(calls: TimedCalls) -> Split:
    """Split each member's duration at `go`, the moment at which those it waits for have started.

    Where ranks that it waits for are missing, its transfer is that of the fastest of three or more
    equal calls, capped by what was measured.
    """
    n = int(calls.collective.max()) + 1 if len(calls.collective) else 0
    go = np.full(n, np.iinfo(np.int64).min)
    np.maximum.at(go, calls.collective, calls.start_ns)
    moment = _moment(calls, go)
    duration = calls.end_ns - calls.start_ns
    moved = calls.end_ns - moment
    early = moved < -calls.uncertainty_ns
    moved = np.where(early, duration, moved)
    unresolved = moved <= 0
    if unresolved.any():
        moved[unresolved] = _typical(calls, moved, ~early & ~unresolved)[unresolved]
    measured = np.minimum(moved, duration)
    fastest, enough = _fastest_equal_call(calls, measured)
    low = np.where(calls.missing & enough, np.minimum(fastest, measured), measured)
    needs_model = calls.missing & ~enough
    return Split(
        go_ns=go,
        wait_ns=duration - low,
        transfer_ns=low,
        transfer_low_ns=np.where(needs_model, 0, low),
        transfer_high_ns=measured,
        outside_wait_ns=measured - low,
        needs_model=needs_model,
        early=early,
    )


def _typical(calls: TimedCalls, moved_ns: Int64, resolved: Bool) -> Int64:
    """Per member: the shortest resolved transfer of its collective, its own duration if none."""
    n = int(calls.collective.max()) + 1
    shortest = np.full(n, np.iinfo(np.int64).max)
    np.minimum.at(shortest, calls.collective[resolved], moved_ns[resolved])
    typical: Int64 = np.minimum(shortest[calls.collective], calls.end_ns - calls.start_ns)
    return typical


def _moment(calls: TimedCalls, go: Int64) -> Int64:
    """Per member: the start of the last member it waits for (its own start when of none)."""
    awaited = calls.awaited
    moment = np.where(awaited.everyone, go[calls.collective], calls.start_ns)
    here = awaited.other != ABSENT
    np.maximum.at(moment, awaited.member[here], calls.start_ns[awaited.other[here]])
    return moment


def _fastest_equal_call(calls: TimedCalls, measured_ns: Int64) -> tuple[Int64, Bool]:
    """Per member: the shortest measured transfer of equal calls, and whether there are enough."""
    typed = calls.call_type != _UNKNOWN
    n = int(calls.call_type.max()) + 1 if typed.any() else 0
    fastest = np.full(n + 1, np.iinfo(np.int64).max)
    np.minimum.at(fastest, calls.call_type[typed], measured_ns[typed])
    seen = np.unique(np.stack((calls.call_type[typed], calls.collective[typed])), axis=1)[0].astype(
        np.int64
    )
    enough = np.bincount(seen, minlength=n + 1) >= MIN_EQUAL_CALLS
    enough[n] = False
    return fastest[calls.call_type], enough[calls.call_type]
