"""The split of a member's duration into wait and transfer."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ingest.normalise.waits import ANYONE, TimedCalls, split_waits
from ingest.vocab import CollectiveKind as Kind


def ints(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def one(kind: Kind, start: list[int], end: list[int], *, root: int = -1) -> TimedCalls:
    n = len(start)
    return TimedCalls(
        collective=np.zeros(n, np.int64),
        kind=np.full(n, kind, np.int64),
        rank=np.arange(n),
        root=np.full(n, root, np.int64),
        start_ns=ints(*start),
        partners_ns=np.full(n, ANYONE),
        end_ns=ints(*end),
        call_type=np.zeros(n, np.int64),
        missing=np.zeros(n, dtype=bool),
        uncertainty_ns=np.zeros(n, np.int64),
    )


def test_waiting_is_not_transfer() -> None:
    split = split_waits(one(Kind.ALL_REDUCE, [110, 1_110], [1_120, 1_120]))
    assert split.wait_ns.tolist() == [1_000, 0]
    assert split.transfer_ns.tolist() == [10, 10]
    assert split.go_ns.tolist() == [1_110]


def test_receivers_of_a_broadcast_wait_for_the_root_only() -> None:
    split = split_waits(one(Kind.BROADCAST, [50, 0, 90], [70, 60, 110], root=0))
    assert split.wait_ns.tolist() == [0, 50, 0]
    assert split.transfer_ns.tolist() == [20, 10, 20]


def test_only_the_root_of_a_reduce_waits_for_all() -> None:
    split = split_waits(one(Kind.REDUCE, [0, 10, 100], [130, 30, 120], root=0))
    assert split.wait_ns.tolist() == [100, 0, 0]
    assert split.transfer_ns.tolist() == [30, 20, 20]


def test_a_member_that_ended_before_the_last_one_came_did_not_wait_for_it() -> None:
    split = split_waits(one(Kind.SEND_RECV, [0, 100], [40, 130]))
    assert split.early.tolist() == [True, False]
    assert (split.wait_ns[0], split.transfer_ns[0]) == (0, 40)


def test_an_end_before_go_within_clock_uncertainty_takes_the_transfer_of_the_others() -> None:
    calls = replace(
        one(Kind.ALL_TO_ALL, [44, 56, 0], [52, 68, 66]), uncertainty_ns=ints(18, 18, 18)
    )
    split = split_waits(calls)
    assert not split.early.any()
    assert split.transfer_ns.tolist() == [8, 12, 10]


def test_a_member_of_an_exchange_waits_for_its_partners_only() -> None:
    """0 with 1, 1 with 0 and 2, 2 with 1: rank 0 was done before rank 2 came."""
    chain = one(Kind.SEND_RECV, [100, 120, 300], [150, 330, 330])
    split = split_waits(replace(chain, partners_ns=ints(120, 300, 120)))
    assert split.wait_ns.tolist() == [20, 180, 0]
    assert split.transfer_ns.tolist() == [30, 30, 30]
    assert not split.early.any()


def alone(durations: list[int]) -> TimedCalls:
    n = len(durations)
    start = np.arange(n) * 10_000
    return TimedCalls(
        collective=np.arange(n),
        kind=np.full(n, Kind.ALL_REDUCE, np.int64),
        rank=np.zeros(n, np.int64),
        root=np.full(n, -1, np.int64),
        start_ns=start,
        partners_ns=np.full(n, ANYONE),
        end_ns=start + durations,
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
    split = split_waits(one(Kind.ALL_REDUCE, [0, 5], [20, 21]))
    assert split.transfer_low_ns.tolist() == split.transfer_high_ns.tolist() == [15, 16]
    assert split.outside_wait_ns.tolist() == [0, 0]
