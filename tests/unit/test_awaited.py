"""Whom each member of a collective waits for."""

from typing import Any

import pytest

from ingest.normalise.align import Matched, match
from ingest.normalise.awaited import ABSENT
from ingest.normalise.collectives import MemberSource, describe
from ingest.normalise.groups import file_facts
from ingest.normalise.messages import HostRow

GROUP = {"Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3]"}
NOBODY: list[int] = []
WORDS = {
    "broadcast": "Broadcast",
    "reduce": "Reduce_Sum_f32",
    "allreduce": "AllReduce_Sum_f32",
    "send": "SendRecv",
    "recv": "SendRecv",
}


def member(rank: int, operation: str, *, at_us: int = 0, **more: object) -> MemberSource:
    """A member of the communicator of all ranks that lasts 10 us."""
    args: dict[str, Any] = {
        "Collective name": operation,
        **GROUP,
        "In msg nelems": 1,
        "dtype": "Float",
        **{key.replace("_", " "): value for key, value in more.items()},
    }
    name = f"ncclDevKernel_{WORDS[operation]}_RING_LL"
    ts_ns = 1000 * at_us
    return MemberSource(
        file=rank, slice_id=rank, name=name, ts_ns=ts_ns, dur_ns=10_000, stream=20, args=args
    )


def batch(rank: int, sends: list[int], receives: list[int]) -> MemberSource:
    """One kernel with several partners, all in the host records before its launch."""
    rows = [
        HostRow("record_param_comms", {"Collective name": word, key: peer, **GROUP})
        for word, key, peers in (("send", "Dst Rank", sends), ("recv", "Src Rank", receives))
        for peer in peers
    ]
    return MemberSource(
        file=rank, slice_id=rank, name="ncclDevKernel_SendRecv", ts_ns=0, dur_ns=10_000, stream=20,
        host=tuple(rows),
    )  # fmt: skip


def run(sources: list[MemberSource], files: int = 4) -> Matched:
    facts = [file_facts(None, rank=rank, world_size=4, host="") for rank in range(files)]
    described = describe(sources, facts)
    return match(described.members, described.legs, described.groups, facts)


@pytest.mark.parametrize("root", [0, 2])
def test_receivers_of_a_broadcast_wait_for_the_root(root: int) -> None:
    matched = run([member(rank, "broadcast", Rank=root) for rank in range(4)])
    assert matched.awaited.lists() == [NOBODY if rank == root else [root] for rank in range(4)]


def test_only_the_root_of_a_reduce_waits() -> None:
    matched = run([member(rank, "reduce", Rank=1) for rank in range(4)])
    assert matched.awaited.lists() == [NOBODY, None, NOBODY, NOBODY]


@pytest.mark.parametrize("operation", ["broadcast", "allreduce"])
def test_without_a_known_root_all_wait_for_all(operation: str) -> None:
    matched = run([member(rank, operation) for rank in range(4)])
    assert matched.awaited.lists() == [None] * 4


def test_a_root_that_each_rank_takes_itself_for_is_none() -> None:
    matched = run([member(rank, "broadcast", Rank=rank) for rank in range(4)])
    assert matched.awaited.lists() == [None] * 4


def test_a_root_without_a_file_is_waited_for_outside() -> None:
    matched = run([member(rank, "broadcast", Rank=3) for rank in range(3)], files=3)
    assert matched.awaited.lists() == [[ABSENT]] * 3
    assert matched.split.needs_model.all()


def test_nobody_waits_outside_where_only_a_receiver_is_missing() -> None:
    matched = run([member(rank, "broadcast", Rank=0) for rank in range(3)], files=3)
    assert matched.operations.members_expected.tolist() == [4]
    assert not matched.split.needs_model.any()


def test_members_of_an_exchange_wait_for_their_partners() -> None:
    """A chain 0 - 1 - 2 - 3 in which every pair sends both ways."""
    matched = run([batch(0, [1], [1]), batch(1, [0, 2], [0, 2]), batch(2, [1, 3], [1, 3]),
                   batch(3, [2], [2])])  # fmt: skip
    assert matched.awaited.lists() == [[1], [0, 2], [1, 3], [2]]


def test_a_missing_partner_is_one_among_others() -> None:
    matched = run([batch(0, [1], [1]), batch(1, [0, 2, 3], [0, 2, 3])], files=2)
    assert matched.awaited.lists() == [[1], [ABSENT, 0]]
    assert matched.split.needs_model.tolist() == [False, True]


def test_one_batch_meets_several_kernels_of_a_rank_each_on_its_own() -> None:
    """Rank 0 sends and receives at once; rank 1 in two kernels, one after the other."""
    late = member(1, "send", at_us=100, Dst_Rank=0)
    matched = run([batch(0, [1], [1]), member(1, "recv", Src_Rank=0), late])
    assert matched.awaited.lists() == [[1, 2], [0], [0]]


def test_a_rank_that_sends_to_itself_waits_for_nobody_by_that() -> None:
    matched = run([batch(0, [0, 1], [0, 1]), batch(1, [0], [0])])
    assert matched.awaited.lists() == [[1], [0]]
