"""Collectives over all ranks."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest.normalise.align import Matched, MemberState, match
from ingest.normalise.collectives import MemberSource, describe
from ingest.normalise.groups import FileFacts, file_facts
from ingest.normalise.matching import MatchMethod
from ingest.normalise.messages import HostRow
from ingest.vocab import CollectiveKind as Kind

CASES = Path(__file__).parents[2].parent / "shared" / "cases"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"
SEND_RECV = "ncclDevKernel_SendRecv(ncclDevComm*)"


def member(file: int, start_us: float, end_us: float, **more: object) -> MemberSource:
    """A member of 4 bytes of a group of two, unless told otherwise."""
    start = round(start_us * 1000)
    fields: dict[str, Any] = {"slice_id": 0, "name": ALL_REDUCE, "stream": 20, **more}
    return MemberSource(file=file, ts_ns=start, dur_ns=round(end_us * 1000) - start, **fields)


def recorded(kind: str = "allreduce", elements: int = 1, **more: object) -> dict[str, Any]:
    return {
        "Collective name": kind,
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "dtype": "Float",
        "Process Group Name": "0",
        "Process Group Ranks": "[0, 1]",
        "Group size": 2,
        **more,
    }


def run(sources: list[MemberSource], files: int = 2, world: int | None = None) -> Matched:
    facts = [FileFacts(rank=r, world_size=files if world is None else world) for r in range(files)]
    described = describe(sources, facts)
    return match(described.members, described.legs, described.groups, facts)


def read_case(name: str) -> Matched:
    if not CASES.exists():
        pytest.skip("the shared cases are not here")
    facts, sources = [], []
    for path in sorted((CASES / name).glob("rank*.json")):
        trace = json.loads(path.read_text())
        info = trace["distributedInfo"]
        facts.append(file_facts(info, rank=info["rank"], world_size=info["world_size"]))
        sources += [
            member(
                len(facts) - 1,
                row["ts"],
                row["ts"] + row["dur"],
                name=row["name"],
                args=row["args"],
            )
            for row in trace["traceEvents"]
            if row.get("cat") == "kernel" and "nccl" in row["name"]
        ]
    described = describe(sources, facts)
    return match(described.members, described.legs, described.groups, facts)


def test_two_hosts_five_milliseconds_apart_are_aligned() -> None:
    matched = read_case("B36-two-hosts-clock-skew")
    assert matched.clocks.offset_ns.tolist() == [0, 5_000_000]
    waits = matched.split.wait_ns.reshape(2, 3) // 1000
    assert waits.tolist() == [[50, 0, 0], [0, 20, 10]]
    assert (matched.operations.transfer_ns // 1000).tolist() == [50, 50, 60]


def test_a_long_all_reduce_that_mostly_waits_is_split() -> None:
    matched = read_case("B121-waiting-is-not-transfer")
    assert matched.clocks.offset_ns.tolist() == [0, 0]
    assert matched.split.wait_ns.tolist() == [1_000_000, 0]
    assert matched.operations.transfer_ns.tolist() == [10_000]
    assert matched.operations.size_bytes.tolist() == [4_000_000]


def test_sequence_numbers_match_across_different_windows() -> None:
    sources = [member(0, 100 * s, 100 * s + 10, args=recorded(Seq=s)) for s in range(1, 7)]
    sources += [member(1, 100 * s, 100 * s + 10, args=recorded(Seq=s)) for s in range(4, 9)]
    matched = run(sources)
    assert matched.state[:3].tolist() == [MemberState.UNCOVERED] * 3
    assert matched.state[3:9].tolist() == [MemberState.MATCHED] * 6
    assert set(matched.method) == {MatchMethod.SEQ, MatchMethod.NONE}


def test_sequence_numbers_may_start_over() -> None:
    numbers = [98, 99, 100, 0, 1, 2]
    sources = [
        member(0, 100 * i, 100 * i + 10, args=recorded(Seq=s)) for i, s in enumerate(numbers)
    ]
    sources += [
        member(1, 100 * i + 300, 100 * i + 310, args=recorded(Seq=s))
        for i, s in enumerate(numbers[3:])
    ]
    matched = run(sources)
    assert matched.collective[3:6].tolist() == matched.collective[6:].tolist()
    assert (matched.state[:3] == MemberState.UNCOVERED).all()


def test_different_operations_under_one_number_are_listed_not_joined() -> None:
    sizes = ([1, 2, 3, 4, 5], [1, 2, 9, 4, 5])
    sources = [
        member(file, 100 * s, 100 * s + 10, args=recorded(elements=size, Seq=s))
        for file, line in enumerate(sizes)
        for s, size in enumerate(line)
    ]
    matched = run(sources)
    assert matched.state[[2, 7]].tolist() == [MemberState.DESYNC] * 2
    assert {(row.rank, row.state, row.members) for row in matched.unmatched} == {
        (0, MemberState.DESYNC, 1),
        (1, MemberState.DESYNC, 1),
    }


def test_numbers_that_no_two_ranks_share_fall_back_to_order() -> None:
    sources = [
        member(0, 100 * s, 100 * s + 10, args=recorded(elements=s, Seq=s)) for s in range(1, 7)
    ]
    sources += [
        member(1, 100 * s, 100 * s + 10, args=recorded(elements=s, Seq=s + 2)) for s in range(1, 7)
    ]
    matched = run(sources)
    assert matched.collective[:6].tolist() == matched.collective[6:].tolist()
    assert set(matched.method) == {MatchMethod.ORDER}


def test_operation_ids_match_whatever_the_order() -> None:
    sources = [
        member(0, 100 * i, 100 * i + 10, args=recorded(**{"Comms Id": f"{i}"})) for i in range(3)
    ]
    sources += [
        member(1, 100 * i, 100 * i + 10, args=recorded(**{"Comms Id": f"{i}"})) for i in (1, 2)
    ]
    matched = run(sources)
    assert matched.collective[1:3].tolist() == matched.collective[3:].tolist()
    assert matched.method.count(MatchMethod.COMMS_ID) == 2


def test_last_goes_with_last_when_one_rank_has_a_longer_head() -> None:
    gaps = np.cumsum([70, 90, 40, 130, 60, 200, 55, 80, 75, 300])
    sources = [member(0, t, t + 10) for t in gaps.tolist()]
    sources += [member(1, t + 2, t + 10) for t in gaps[3:].tolist()]
    matched = run(sources)
    assert matched.collective[3:10].tolist() == matched.collective[10:].tolist()
    assert matched.operations.members_seen.tolist().count(1) == 3
    assert matched.groups[0].ranks == (0, 1)


def test_a_call_that_one_rank_lacks_does_not_shift_the_rest() -> None:
    ends = np.cumsum(np.random.default_rng(5).integers(80, 900, 60))
    kept = np.delete(ends, [20, 41])
    sources = [member(0, t - 30, t) for t in ends.tolist()]
    sources += [member(1, t - 10, t) for t in kept.tolist()]
    matched = run(sources)
    assert (
        matched.collective[np.delete(np.arange(60), [20, 41])].tolist()
        == matched.collective[60:].tolist()
    )


def test_ranks_that_only_run_in_step_are_two_communicators() -> None:
    rng = np.random.default_rng(2)
    sources = []
    for pair in ((0, 2), (1, 3)):
        ends = np.cumsum(rng.integers(900, 1_100, 40)) + 1_000
        sources += [member(f, t - 50 - 7 * f, t) for f in pair for t in ends.tolist()]
    matched = run(sources, files=4)
    assert {group.ranks for group in matched.groups} == {(0, 2), (1, 3)}
    assert (matched.operations.members_seen == 2).all()
    assert (matched.operations.members_expected == 2).all()


def test_exchanges_with_unknown_partners_on_all_ranks_are_an_all_to_all() -> None:
    sources = [member(f, 100 * i, 100 * i + 20, name=SEND_RECV) for f in range(3) for i in range(4)]
    matched = run(sources, files=3)
    assert matched.operations.kind.tolist() == [Kind.ALL_TO_ALL] * 4
    uneven = run(sources[:-1], files=3)
    assert (uneven.state == MemberState.UNCOVERED).sum() == 2


def one_way(file: int, start: float, end: float, kind: str, peer: int) -> MemberSource:
    key = "Dst Rank" if kind == "send" else "Src Rank"
    ranks: dict[str, Any] = {"Process Group Ranks": "[0, 1, 2]", "Group size": 3}
    return member(file, start, end, name=SEND_RECV, args=recorded(kind, **ranks, **{key: peer}))


def test_a_send_meets_its_receive_even_when_it_ended_long_before() -> None:
    sources = [one_way(0, 0, 5, "send", 1), one_way(0, 100, 110, "send", 2)]
    sources += [one_way(1, 70, 80, "recv", 0), one_way(2, 90, 110, "recv", 0)]
    matched = run(sources, files=3)
    assert matched.collective[:2].tolist() == matched.collective[2:].tolist()
    assert matched.operations.kind.tolist() == [Kind.SEND_RECV] * 2
    assert matched.operations.members_expected.tolist() == [2, 2]
    assert matched.split.early.tolist() == [True, False, False, False]


def test_a_kernel_with_several_partners_waits_for_all_of_them() -> None:
    def record(kind: str, peer: int) -> HostRow:
        key = "Dst Rank" if kind == "send" else "Src Rank"
        return HostRow("record_param_comms", {"Collective name": kind, key: peer})

    sources = [
        member(
            r,
            10 * r,
            100,
            name=SEND_RECV,
            host=(record("send", (r + 1) % 3), record("recv", (r - 1) % 3)),
        )
        for r in range(3)
    ]
    matched = run(sources, files=3)
    assert matched.collective.tolist() == [0, 0, 0]
    assert matched.operations.members_expected.tolist() == [3]
    assert matched.split.wait_ns.tolist() == [20_000, 10_000, 0]


def test_missing_ranks_are_said_and_bound_the_transfer() -> None:
    args = recorded(**{"Process Group Ranks": "[0, 1, 2, 3]", "Group size": 4})
    sources = [
        member(f, 1_000 * i, 1_000 * i + 50 * (i + 1), args=args)
        for f in range(2)
        for i in range(3)
    ]
    matched = run(sources, world=4)
    operations = matched.operations
    assert operations.members_seen.tolist() == [2, 2, 2]
    assert operations.members_expected.tolist() == [4, 4, 4]
    assert operations.transfer_ns.tolist() == [50_000] * 3
    assert operations.transfer_high_ns.tolist() == [50_000, 100_000, 150_000]


def test_a_partner_without_a_file_is_absent() -> None:
    matched = run([one_way(0, 0, 5, "send", 2)], files=2, world=3)
    assert matched.state.tolist() == [MemberState.ABSENT]
    assert matched.operations.members_expected.tolist() == [2]


def test_gloo_members_match_by_order_and_share_the_host_clock() -> None:
    sources = [
        member(
            f,
            1_000 * i + 200 * f,
            1_000 * i + 700 + 30 * f,
            name="gloo:all_reduce",
            on_host=True,
            args={"Input Dims": [[250]], "Input type": ["float"]},
        )
        for f in range(2)
        for i in range(5)
    ]
    matched = run(sources)
    assert matched.operations.on_host.all()
    assert matched.operations.size_bytes.tolist() == [1000] * 5
    assert matched.clocks.offset_ns.tolist() == [0, 0]
    assert matched.split.wait_ns.reshape(2, 5)[0].tolist() == [200_000] * 5


def test_a_run_without_collectives_is_empty() -> None:
    matched = run([])
    assert len(matched.method) == len(matched.collective) == 0
    assert matched.unmatched == ()
