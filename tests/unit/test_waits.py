"""The split of a member's duration into wait and transfer."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ingest.normalise.awaited import Awaited, all_for_all
from ingest.normalise.waits import TimedCalls, split_waits


def ints(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def one(start: list[int], end: list[int], awaited: Awaited | None = None) -> TimedCalls:
    n = len(start)
    return TimedCalls(
        collective=np.zeros(n, np.int64),
        start_ns=ints(*start),
        end_ns=ints(*end),
        awaited=awaited or all_for_all(n),
        call_type=np.zeros(n, np.int64),
        missing=np.zeros(n, dtype=bool),
        uncertainty_ns=np.zeros(n, np.int64),
    )


def waiting(rows: list[list[int] | None]) -> Awaited:
    """Per member whom it waits for; None for all."""
    pairs = [(here, there) for here, others in enumerate(rows) for there in others or ()]
    return Awaited(
        everyone=np.array([others is None for others in rows]),
        member=ints(*(here for here, _ in pairs)),
        other=ints(*(there for _, there in pairs)),
    )


def test_waiting_is_not_transfer() -> None:
    split = split_waits(one([110, 1_110], [1_120, 1_120]))
    assert split.wait_ns.tolist() == [1_000, 0]
    assert split.transfer_ns.tolist() == [10, 10]
    assert split.go_ns.tolist() == [1_110]


def test_receivers_of_a_broadcast_wait_for_the_root_only() -> None:
    split = split_waits(one([50, 0, 90], [70, 60, 110], waiting([[], [0], [0]])))
    assert split.wait_ns.tolist() == [0, 50, 0]
    assert split.transfer_ns.tolist() == [20, 10, 20]


def test_only_the_root_of_a_reduce_waits_for_all() -> None:
    split = split_waits(one([0, 10, 100], [130, 30, 120], waiting([None, [], []])))
    assert split.wait_ns.tolist() == [100, 0, 0]
    assert split.transfer_ns.tolist() == [30, 20, 20]


def test_a_member_that_ended_before_the_last_one_came_did_not_wait_for_it() -> None:
    split = split_waits(one([0, 100], [40, 130]))
    assert split.early.tolist() == [True, False]
    assert (split.wait_ns[0], split.transfer_ns[0]) == (0, 40)


def test_an_end_before_go_within_clock_uncertainty_takes_the_transfer_of_the_others() -> None:
    calls = replace(one([44, 56, 0], [52, 68, 66]), uncertainty_ns=ints(18, 18, 18))
    split = split_waits(calls)
    assert not split.early.any()
    assert split.transfer_ns.tolist() == [8, 12, 10]


def test_a_member_of_an_exchange_waits_for_its_partners_only() -> None:
    """0 with 1, 1 with 0 and 2, 2 with 1: rank 0 was done before rank 2 came."""
    split = split_waits(one([100, 120, 300], [150, 330, 330], waiting([[1], [0, 2], [1]])))
    assert split.wait_ns.tolist() == [20, 180, 0]
    assert split.transfer_ns.tolist() == [30, 30, 30]
    assert not split.early.any()


def alone(durations: list[int]) -> TimedCalls:
    n = len(durations)
    start = np.arange(n) * 10_000
    return TimedCalls(
        collective=np.arange(n),
        start_ns=start,
        end_ns=start + durations,
        awaited=all_for_all(n),
        call_type=np.zeros(n, np.int64),
        missing=np.ones(n, dtype=bool),
        uncertainty_ns=np.zeros(n, np.int64),
    )


def test_one_rank_alone_moves_data_as_fast_as_its_fastest_equal_call() -> None:
    split = split_waits(alone([500, 120, 900]))
    assert split.transfer_ns.tolist() == [120, 120, 120]
    assert split.outside_wait_ns.tolist() == [380, 0, 780]
    assert split.transfer_high_ns.tolist() == [500, 120, 900]
    assert not split.needs_model.any()


def test_two_equal_calls_are_too_few_and_a_model_has_to_bound_them() -> None:
    split = split_waits(alone([500, 120]))
    assert split.transfer_ns.tolist() == [500, 120]
    assert split.transfer_low_ns.tolist() == [0, 0]
    assert split.needs_model.all()


def test_calls_of_unknown_size_are_never_equal() -> None:
    calls = replace(alone([500, 120, 900]), call_type=ints(-1, -1, -1))
    assert split_waits(calls).needs_model.all()


def test_ranks_that_are_all_here_need_no_bounds() -> None:
    split = split_waits(one([0, 5], [20, 21]))
    assert split.transfer_low_ns.tolist() == split.transfer_high_ns.tolist() == [15, 16]
    assert split.outside_wait_ns.tolist() == [0, 0]


def test_a_partner_without_a_file_is_no_moment_to_wait_for() -> None:
    """Its own partner was 20 ns late; who waits for more is bounded by equal calls alone."""
    calls = one([0, 20], [100, 100], waiting([[1], [-1, 0]]))
    split = split_waits(replace(calls, missing=np.array([False, True])))
    assert split.wait_ns.tolist() == [20, 0]
    assert split.needs_model.tolist() == [False, True]
