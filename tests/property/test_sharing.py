"""Jobs on a shared link: laws of sharing."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.engine.sharing import alone_times, shared_ends


@dataclass(frozen=True)
class Job:
    start_ns: int
    alone_ns: int
    weight: float = 1.0


JOBS = st.lists(
    st.builds(Job, st.integers(0, 1_000), st.integers(1, 500), st.floats(0, 1)), max_size=8
)
EQUAL_JOBS = st.lists(st.builds(Job, st.integers(0, 1_000), st.integers(1, 500)), max_size=8)


def columns(jobs: list[Job]) -> tuple[np.ndarray, ...]:
    ordered = sorted(jobs, key=lambda job: job.start_ns)
    first = np.array([0, len(jobs)], np.int64)
    values = ((job.start_ns, job.alone_ns, job.weight) for job in ordered)
    start_ns, alone_ns, weight = np.array([*values], np.float64).reshape(-1, 3).T.copy()
    return first, start_ns, alone_ns, weight


def ends(jobs: list[Job]) -> list[float]:
    """In the order of the starts."""
    first, start_ns, alone_ns, weight = columns(jobs)
    end_ns = np.zeros(len(jobs))
    shared_ends(first, start_ns, alone_ns, weight, end_ns)
    return end_ns.tolist()


def test_two_that_start_together_take_twice_as_long() -> None:
    assert ends([Job(0, 100), Job(0, 100)]) == [200, 200]


def test_the_second_shares_what_is_left_of_the_first() -> None:
    # Alone until 60; then 40 left of the first and 100 of the second, at half speed each.
    assert ends([Job(0, 100), Job(60, 100)]) == [140, 200]


def test_three_share_in_three_parts() -> None:
    assert ends([Job(0, 30), Job(0, 60), Job(0, 90)]) == [90, 150, 180]


def test_latency_shares_nothing() -> None:
    assert ends([Job(0, 100, 0.0), Job(0, 100)]) == [100, 100]


def test_half_on_the_link_waits_for_half_of_the_other() -> None:
    assert ends([Job(0, 100, 0.5), Job(0, 100, 0.5)]) == [125, 125]


@given(JOBS)
@settings(deadline=None)
def test_times_alone_are_found_again_from_the_ends(jobs: list[Job]) -> None:
    first, start_ns, alone_ns, weight = columns(jobs)
    found_ns = np.zeros(len(jobs))
    alone_times(first, start_ns, np.array(ends(jobs)), weight, found_ns)
    assert found_ns == pytest.approx(alone_ns, abs=1e-6)


@given(EQUAL_JOBS)
@settings(deadline=None)
def test_a_link_works_off_all_bytes_without_a_pause(jobs: list[Job]) -> None:
    busy_until_ns = 0
    for job in sorted(jobs, key=lambda job: job.start_ns):
        busy_until_ns = max(busy_until_ns, job.start_ns) + job.alone_ns
    assert max(ends(jobs), default=0) == pytest.approx(busy_until_ns)


@given(JOBS)
@settings(deadline=None)
def test_nobody_is_faster_than_alone(jobs: list[Job]) -> None:
    _, start_ns, alone_ns, _ = columns(jobs)
    assert (np.array(ends(jobs)) >= start_ns + alone_ns - 1e-6).all()


@given(EQUAL_JOBS, st.floats(1, 8))
@settings(deadline=None)
def test_more_bytes_end_no_earlier(jobs: list[Job], factor: float) -> None:
    more = [Job(job.start_ns, round(job.alone_ns * factor)) for job in jobs]
    assert all(late >= early - 1e-6 for late, early in zip(ends(more), ends(jobs), strict=True))
