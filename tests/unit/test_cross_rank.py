"""Operations of several ranks, from files to the store; the right answers are in the making."""

from pathlib import Path

import pytest

from ingest.pipeline import IngestOptions, open_run
from ingest.vocab import EdgeKind, TaskKind
from tests.kineto import KinetoFile
from tests.ranks import Group, Met, Ranks
from tests.replayed import read

ALL = Group(ranks=(0, 1, 2, 3))


def all_reduce(waits_us: dict[int, float], **more: object) -> Met:
    known: dict[str, object] = {"kind": "all_reduce", "seen": 4, "expected": 4, "method": "seq"}
    return Met(**{**known, "transfer_us": 10.0, **more}, waits_us=waits_us)  # type: ignore[arg-type]


def test_a_communicator_is_its_ranks_whatever_each_rank_calls_it(tmp_path: Path) -> None:
    run = Ranks(world=4)
    left = {0: Group(ranks=(0, 1), name="7"), 1: Group(ranks=(0, 1), name="9")}
    right = {2: Group(ranks=(2, 3), name="9"), 3: Group(ranks=(2, 3), name="7")}
    for number in range(3):
        at = 1000.0 * number
        run.meet("allreduce", {0: at + 10, 1: at + 40}, 10, left, seq=number)
        run.meet("allreduce", {2: at + 300, 3: at + 350}, 10, right, seq=number)
    found = run.met(tmp_path)
    pair = {"seen": 2, "expected": 2}
    assert (
        found
        == [
            all_reduce({0: 30.0, 1: 0.0}, **pair),
            all_reduce({2: 50.0, 3: 0.0}, **pair),
        ]
        * 3
    )


@pytest.mark.parametrize("numbered", [True, False])
def test_ranks_whose_windows_differ_leave_heads_and_tails_uncovered(
    tmp_path: Path, *, numbered: bool
) -> None:
    run = Ranks(world=2)
    group = Group(ranks=(0, 1))
    for number in range(12):
        at = 1000.0 * number + 37.0 * number * number
        starts = {0: at + 10, 1: at + 30}
        if number < 3:
            del starts[1]
        if number > 9:
            del starts[0]
        seq = {"seq": number} if numbered else {}
        run.meet("allreduce", starts, 10, group, **seq)
    found = run.met(tmp_path)
    alone = [one for one in found if one.seen == 1]
    assert [list(one.waits_us) for one in alone] == [[0], [0], [0], [1], [1]]
    met = [one for one in found if one.seen == 2]
    assert [one.waits_us for one in met] == [{0: 20.0, 1: 0.0}] * 7
    assert {one.method for one in met} == {"seq" if numbered else "order"}


def test_several_communicators_in_flight_are_kept_apart(tmp_path: Path) -> None:
    """Rows, columns and the world of a 2 x 2 mesh at once, on streams of their own."""
    run = Ranks(world=4)
    groups = [Group(ranks=(0, 1), name="1"), Group(ranks=(2, 3), name="2"),
              Group(ranks=(0, 2), name="3"), Group(ranks=(1, 3), name="4")]  # fmt: skip
    for number in range(4):
        at = 1000.0 * number
        run.meet("allreduce", {0: at, 1: at + 5, 2: at + 9, 3: at + 1}, 300, ALL, stream=20)
        for lane, group in enumerate(groups):
            starts = {rank: at + 20 + 10 * rank for rank in group.ranks}
            run.meet("_allgather_base", starts, 50, group, stream=21 + lane // 2)
    found = run.met(tmp_path)
    assert [one for one in found if one.kind == "all_reduce"] == [
        all_reduce({0: 9.0, 1: 4.0, 2: 0.0, 3: 8.0}, transfer_us=300.0, method="order")
    ] * 4
    waits = [one.waits_us for one in found if one.kind == "all_gather"]
    assert sorted(map(str, waits[:4])) == sorted(
        str({a: 10.0 * (b - a), b: 0.0}) for a, b in ((0, 1), (2, 3), (0, 2), (1, 3))
    )
    assert {(one.seen, one.expected) for one in found if one.kind == "all_gather"} == {(2, 2)}


def test_an_uneven_all_to_all_is_one_operation(tmp_path: Path) -> None:
    run = Ranks(world=2)
    splits = {0: "[900, 100]", 1: "[50, 7000]"}
    for number in range(3):
        at = 1000.0 * number
        run.meet(
            "all_to_allv", {0: at + 10, 1: at + 60}, 100, Group(ranks=(0, 1)), seq=number,
            sent={0: 1000, 1: 7050}, received={0: 950, 1: 7100}, splits_in=splits,
        )  # fmt: skip
    found = run.met(tmp_path)
    assert found == [Met("all_to_all", 2, 2, "seq", {0: 50.0, 1: 0.0}, 100.0)] * 3


@pytest.mark.parametrize("written", ["global", "place in the group", "both"])
def test_partners_are_found_whether_written_as_global_ranks_or_as_places(
    tmp_path: Path, written: str
) -> None:
    """A pipeline of the odd ranks: 1 -> 3 -> 5, as places 0 -> 1 -> 2 of the group."""
    run = Ranks(world=6)
    group = Group(ranks=(1, 3, 5))

    def peer(key: str, rank: int) -> dict[str, int]:
        place = group.ranks.index(rank)
        if written == "both":
            return {key: rank, "place": place}
        return {key: rank if written == "global" else place}

    for number in range(3):
        at = 1000.0 * number
        run.member(1, "send", (at + 10, at + 60), group, **peer("to", 3))
        run.member(3, "recv", (at + 40, at + 60), group, **peer("of", 1))
        run.member(3, "send", (at + 100, at + 240), group, **peer("to", 5))
        run.member(5, "recv", (at + 220, at + 240), group, **peer("of", 3))
    found = run.met(tmp_path)
    assert (
        found
        == [
            Met("send_recv", 2, 2, "order", {1: 30.0, 3: 0.0}, 20.0),
            Met("send_recv", 2, 2, "order", {3: 120.0, 5: 0.0}, 20.0),
        ]
        * 3
    )


def test_a_batched_exchange_waits_for_every_partner(tmp_path: Path) -> None:
    """One kernel per rank sends to one neighbour of the ring and receives from the other."""
    run = Ranks(world=3)
    for rank, file in run.files.items():
        start = 100.0 + 20 * rank
        for operation, peer in (("send", (rank + 1) % 3), ("recv", (rank - 1) % 3)):
            _record(file, operation, peer, start)
        run.kernel(rank, "ncclDevKernel_SendRecv", (start, 190.0))
    (found,) = run.met(tmp_path)
    assert found == Met("send_recv", 3, 3, "order", {0: 40.0, 1: 20.0, 2: 0.0}, 50.0)


def test_partners_of_partners_are_not_waited_for(tmp_path: Path) -> None:
    """A chain of batched exchanges: 0 with 1, 1 with 0 and 2, 2 with 1, which comes late."""
    run = Ranks(world=3)
    spans = {0: (100.0, 150.0), 1: (120.0, 330.0), 2: (300.0, 330.0)}
    for rank, span in spans.items():
        for number, peer in enumerate({0: [1], 1: [0, 2], 2: [1]}[rank]):
            _record(run.files[rank], "send", peer, span[0] - 10 * number)
            _record(run.files[rank], "recv", peer, span[0] - 10 * number)
        run.kernel(rank, "ncclDevKernel_SendRecv", span)
    (found,) = run.met(tmp_path)
    assert found == Met("send_recv", 3, 3, "order", {0: 20.0, 1: 180.0, 2: 0.0}, 30.0)
    replayed = read(run.write(tmp_path))
    first, second, third = (
        replayed.task("ncclDevKernel_SendRecv", TaskKind.TRANSFER, rank) for rank in range(3)
    )
    assert replayed.is_exact()
    assert {edge.kind for edge in replayed.edges(first)} >= {EdgeKind.P2P}
    arrivals = [edge.src for edge in replayed.edges(first, EdgeKind.P2P)]
    assert arrivals == [first - 1, second - 1]
    assert third - 1 not in arrivals


def _record(file: KinetoFile, operation: str, peer: int, start: float) -> None:
    key = "Dst Rank" if operation == "send" else "Src Rank"
    at = start - 15 if operation == "send" else start - 10
    file.op(
        "record_param_comms", (at, at + 2), **Group(ranks=(0, 1, 2)).args(),
        **{"Collective name": operation, key: peer, "In msg nelems": 5, "Out msg nelems": 5,
           "dtype": "Float"},
    )  # fmt: skip


@pytest.mark.parametrize("left", [(0, 1, 2), (1, 3), (2,)])
def test_any_subset_of_the_files_keeps_waits_of_those_that_are_there(
    tmp_path: Path, left: tuple[int, ...]
) -> None:
    """Rank 3 is last by 70 us each time; without it, what is longer than the fastest is outside."""
    run = Ranks(world=4)
    for number in range(4):
        at = 1000.0 * number
        late = 70.0 if number else 0.0
        starts = {0: at, 1: at + 10, 2: at + 20, 3: at + 20 + late}
        run.meet("allreduce", starts, 30, ALL, seq=number)
    for one in run.met(tmp_path, left):
        assert (one.seen, one.expected) == (len(left), 4)
        assert one.transfer_us == 30.0
    late_us = {rank: {0: 90.0, 1: 80.0, 2: 70.0, 3: 0.0}[rank] for rank in left}
    assert [one.waits_us for one in run.met(tmp_path, left)][1:] == [late_us] * 3


@pytest.mark.parametrize("numbered", [True, False])
def test_ranks_out_of_step_are_named_and_never_joined(tmp_path: Path, *, numbered: bool) -> None:
    run = Ranks(world=4)
    for number in range(5):
        at = 1000.0 * number
        seq = {"seq": number} if numbered else {}
        starts = {rank: at + 10 + rank for rank in range(4)}
        if number == 2:
            run.member(1, "_allgather_base", (starts.pop(1), at + 25), ALL, **seq)
        run.meet("allreduce", starts, 10, ALL, **seq)
    found = run.met(tmp_path)
    assert sorted((one.kind, one.seen) for one in found) == [
        ("all_gather", 1), *[("all_reduce", seen) for seen in (3, 4, 4, 4, 4)]
    ]  # fmt: skip
    with open_run(run.write(tmp_path), options=IngestOptions(cache=False)) as opened:
        counted = opened.store.rows(
            "SELECT t.rank, i.value FROM import_stat AS i JOIN trace AS t USING (trace_id)"
            " WHERE i.name = 'collective_desync'"
        )
        logged = opened.store.rows(
            "SELECT event_excerpt FROM import_log WHERE name = 'collective_desync'"
        )
    place = "Seq 2" if numbered else "number 3"
    assert counted == [(1, 1)]
    assert logged == [
        (
            f"rank 1 has all_gather of 4,000 bytes as {place} of group 0 (ranks 0, 1, 2, 3), "
            "rank 0 has all_reduce of 4,000 bytes",
        )
    ]


def test_operations_lost_at_one_place_are_no_desync(tmp_path: Path) -> None:
    """Each rank lacks one of two operations that ran one after the other."""
    run = Ranks(world=2)
    group = Group(ranks=(0, 1))
    for number in range(5):
        at = 1000.0 * number
        run.meet("allreduce", {0: at, 1: at + 10}, 10, group)
        if number == 2:
            run.member(0, "_allgather_base", (at + 100, at + 150), group)
            run.member(1, "broadcast", (at + 300, at + 350), group)
    with open_run(run.write(tmp_path), options=IngestOptions(cache=False)) as opened:
        stats = opened.store.rows(
            "SELECT name, sum(value) FROM import_stat WHERE name LIKE 'coll%' GROUP BY name"
        )
    assert stats == [("collective_unmatched", 2)]


def test_a_lost_member_among_close_neighbours_leaves_the_others_in_place(tmp_path: Path) -> None:
    """Ends are 30 us apart, within what one operation's ends may differ by."""
    run = Ranks(world=2)
    group = Group(ranks=(0, 1))
    for number in range(40):
        at = 30.0 * number
        starts = {0: at + 10, 1: at + 12} if number != 20 else {0: at + 10}
        run.meet("allreduce", starts, 5, group)
    found = run.met(tmp_path)
    assert [one.seen for one in found] == [1 if number == 20 else 2 for number in range(40)]
    assert {str(one.waits_us) for one in found if one.seen == 2} == {"{0: 2.0, 1: 0.0}"}
