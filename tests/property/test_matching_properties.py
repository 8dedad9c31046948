"""Matching by order finds what really belongs together, whatever the files lack."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ingest.normalise.align import Matched, match
from ingest.normalise.collectives import MemberSource, describe
from ingest.normalise.groups import FileFacts

NAMES = ("ncclDevKernel_AllReduce_Sum_f32", "ncclDevKernel_AllGather", "ncclDevKernel_SendRecv")


@st.composite
def jobs(draw: st.DrawFn) -> tuple[list[MemberSource], NDArray[np.int64], int]:
    """Members of one job, the operation that each one truly is, and the number of files."""
    files = draw(st.integers(2, 5))
    n = draw(st.integers(24, 60))
    seed = np.random.default_rng(draw(st.integers(0, 2**32)))
    names = seed.integers(0, draw(st.integers(1, 2)), n)
    transfer = seed.integers(20_000, 200_000, n)
    go = np.cumsum(seed.exponential(1e6, n) + 150_000 + np.append(0, transfer[:-1])).astype(int)
    sources, truth = [], []
    for file in range(files):
        offset = int(seed.integers(-100_000_000, 100_000_000))
        first, last = int(seed.integers(0, 4)), n - int(seed.integers(0, 4))
        lacking = set(seed.choice(n, int(seed.integers(0, 2)), replace=False).tolist())
        for call in sorted(set(range(first, last)) - lacking):
            start = int(go[call] - seed.integers(0, 100_000)) + offset
            end = int(go[call] + transfer[call] + seed.integers(-500, 500)) + offset
            sources.append(
                MemberSource(
                    file=file,
                    slice_id=call,
                    name=NAMES[names[call]],
                    ts_ns=start,
                    dur_ns=end - start,
                    stream=20,
                    launch_ns=start - 5_000,
                )
            )
            truth.append(call)
    return sources, np.array(truth), files


def matched(job: tuple[list[MemberSource], NDArray[np.int64], int]) -> Matched:
    sources, _, n = job
    facts = [FileFacts(rank=rank, world_size=n) for rank in range(n)]
    described = describe(sources, facts)
    return match(described.members, described.legs, described.groups, facts)


@settings(max_examples=60, deadline=None)
@given(jobs())
def test_members_of_one_operation_and_no_others_are_joined(
    job: tuple[list[MemberSource], NDArray[np.int64], int],
) -> None:
    result, truth = matched(job), job[1]
    for operation in range(len(result.method)):
        assert len(set(truth[result.collective == operation].tolist())) == 1
    assert len(result.method) <= len(set(truth.tolist())) + 4


MOST_DRIFT = 1e-4
"""Clocks of hosts drift by less than 100 ppm; durations are brought to the common clock too."""


@settings(max_examples=40, deadline=None)
@given(jobs())
def test_wait_and_transfer_add_up_and_stay_within_the_measured_time(
    job: tuple[list[MemberSource], NDArray[np.int64], int],
) -> None:
    result = matched(job)
    split = result.split
    duration = split.wait_ns + split.transfer_ns
    recorded = np.array([source.dur_ns for source in job[0]])
    assert (np.abs(duration - recorded) <= recorded * MOST_DRIFT + 1).all()
    assert (split.wait_ns >= 0).all()
    assert (split.transfer_low_ns <= split.transfer_ns).all()
    assert (split.transfer_ns <= split.transfer_high_ns).all()
    assert (split.transfer_high_ns <= duration).all()


@settings(max_examples=30, deadline=None)
@given(jobs(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(
    job: tuple[list[MemberSource], NDArray[np.int64], int], random: object
) -> None:
    sources, truth, n = job
    order = np.random.default_rng(random.getrandbits(32)).permutation(len(sources))  # type: ignore[attr-defined]
    shuffled = matched(([sources[i] for i in order], truth[order], n))
    straight = matched(job)
    same = straight.collective[order]
    pairs = set(zip(same.tolist(), shuffled.collective.tolist(), strict=True))
    assert len(pairs) == len(straight.method) == len(shuffled.method)
