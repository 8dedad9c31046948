"""The compiled searches for what ended a silence, against the sentences that define them."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.graph.scans import helpers, last_at_or_before, last_ended, nearest_ended

LATE_NS, EARLY_NS = 12, 7
TIMES = st.integers(0, 60)


@dataclass(frozen=True)
class Wait:
    thread: int
    trace: int
    lo_ns: int
    hi_ns: int


@dataclass(frozen=True)
class Span:
    """Work of a thread, or a device task; `since_ns` is when it was launched or issued."""

    lane: int
    trace: int
    lo_ns: int
    hi_ns: int
    since_ns: int = 0


N_THREADS = 5
TRACE_OF = (0, 0, 0, 1, 1)


@st.composite
def waits(draw: st.DrawFn) -> list[Wait]:
    found = []
    for _ in range(draw(st.integers(1, 6))):
        thread, lo_ns = draw(st.integers(0, N_THREADS - 1)), draw(TIMES)
        found.append(Wait(thread, TRACE_OF[thread], lo_ns, lo_ns + draw(st.integers(1, 30))))
    return found


@st.composite
def work(draw: st.DrawFn) -> list[Span]:
    """Rows by (thread, time) that do not overlap, with and without gaps."""
    rows = []
    for thread in range(N_THREADS):
        cuts = sorted(draw(st.sets(TIMES, max_size=10)))
        pairs = pairwise(cuts)
        rows += [Span(thread, TRACE_OF[thread], lo, hi) for lo, hi in pairs if draw(st.booleans())]
    return rows


def column(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


def trace_first(traces: np.ndarray) -> np.ndarray:
    return np.searchsorted(traces, np.arange(3))


def helper(wait: Wait, rows: list[Span], works: set[int]) -> tuple[int, int]:
    best = (-1, -1)
    for thread in sorted(works - {wait.thread}):
        own = [row for row in rows if row.lane == thread and row.trace == wait.trace]
        begun = [row for row in own if row.lo_ns < wait.hi_ns]
        if not begun:
            continue
        end_ns = begun[-1].hi_ns
        if not max(wait.lo_ns, wait.hi_ns - LATE_NS) < end_ns <= wait.hi_ns:
            continue
        began_ns = max(wait.lo_ns, next(row.lo_ns for row in own if row.hi_ns > wait.lo_ns))
        if 2 * (end_ns - began_ns) >= wait.hi_ns - wait.lo_ns and end_ns > best[1]:
            best = (thread, end_ns)
    return best


@given(waits(), work(), st.sets(st.integers(0, N_THREADS - 1)))
@settings(max_examples=300, deadline=None)
def test_helper_is_the_thread_that_worked_and_fell_silent_last(
    silences: list[Wait], rows: list[Span], works: set[int]
) -> None:
    thread = column([row.lane for row in rows])
    trace = column([row.trace for row in rows])
    hi_ns = column([row.hi_ns for row in rows])
    may = np.flatnonzero(np.isin(thread, sorted(works)))
    by_end = may[np.lexsort((-thread[may], hi_ns[may], trace[may]))]
    found = helpers(
        column([wait.thread for wait in silences]),
        column([wait.trace for wait in silences]),
        column([wait.lo_ns for wait in silences]),
        column([wait.hi_ns for wait in silences]),
        trace_first(trace[by_end]),
        by_end,
        thread,
        column([row.lo_ns for row in rows]),
        hi_ns,
        np.searchsorted(thread, np.arange(N_THREADS + 1)),
        LATE_NS,
    )
    pairs = list(zip(*(column.tolist() for column in found), strict=True))
    assert pairs == [helper(wait, rows, works) for wait in silences]


@st.composite
def ended(draw: st.DrawFn) -> list[Span]:
    """Rows by (trace, end)."""
    rows = []
    for trace in (0, 1):
        ends = sorted(draw(st.lists(TIMES, max_size=8)))
        rows += [Span(0, trace, 0, end, draw(TIMES)) for end in ends]
    return rows


@given(waits(), ended())
@settings(max_examples=300, deadline=None)
def test_causes_on_devices_and_in_collectives_are_those_that_ended_with_the_wait(
    silences: list[Wait], rows: list[Span]
) -> None:
    columns = (
        column([wait.trace for wait in silences]),
        column([wait.lo_ns for wait in silences]),
        column([wait.hi_ns for wait in silences]),
        trace_first(column([row.trace for row in rows])),
        column([row.hi_ns for row in rows]),
        column([row.since_ns for row in rows]),
    )
    last = last_ended(*columns, LATE_NS).tolist()
    off_ns = [np.full(len(silences), allowed) for allowed in (LATE_NS, EARLY_NS)]
    nearest = nearest_ended(*columns, *off_ns).tolist()
    for wait, by_device, by_member in zip(silences, last, nearest, strict=True):
        of_trace = [place for place, row in enumerate(rows) if row.trace == wait.trace]
        on_device = [
            place
            for place in of_trace
            if wait.hi_ns - LATE_NS <= rows[place].hi_ns <= wait.hi_ns
            and rows[place].since_ns < wait.lo_ns
        ]
        members = [
            place
            for place in of_trace
            if max(wait.hi_ns - LATE_NS, wait.lo_ns + 1) <= rows[place].hi_ns
            and rows[place].hi_ns < wait.hi_ns + EARLY_NS
            and rows[place].since_ns <= wait.lo_ns
        ]
        assert by_device == max(on_device, default=-1)
        distance = {place: abs(rows[place].hi_ns - wait.hi_ns) for place in members}
        assert by_member == min(members, key=distance.__getitem__, default=-1)


@given(st.lists(st.tuples(st.integers(0, 3), TIMES)), st.lists(st.tuples(st.integers(0, 3), TIMES)))
@settings(deadline=None)
def test_one_walk_finds_the_last_start_before_each_moment(
    starts: list[tuple[int, int]], moments: list[tuple[int, int]]
) -> None:
    starts, moments = sorted(starts), sorted(moments)
    columns = [column([pair[at] for pair in pairs]) for pairs in (starts, moments) for at in (0, 1)]
    expected = [max(sum(start <= moment for start in starts) - 1, 0) for moment in moments]
    assert last_at_or_before(*columns).tolist() == expected
