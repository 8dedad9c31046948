"""Batched exchanges of a pipeline: each stage waits for its neighbours, and for nobody else.

Every stage computes, then one kernel sends to and receives from the stages beside it; the pairs of
one round hang together as one operation. A stage moves data, for 10 us, as soon as its neighbours
have come. The schedules are known from that rule alone (`schedule`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from ingest.pipeline import IngestOptions, open_run
from ingest.vocab import EdgeKind, TaskKind
from replay.engine.run import replay
from replay.engine.schedule import Schedule
from replay.graph.outside import outside_waiters
from replay.results.stragglers import stragglers
from tests.kineto import NETWORK
from tests.ranks import Group, Ranks
from tests.replayed import Replayed, read
from whatif.transforms.absent import arriving_as_recorded, with_transfers
from whatif.transforms.base import Context
from whatif.transforms.remove import Remove

STAGES = 4
ROUNDS = 4
TRANSFER_US = 10.0
BEGIN_US = 300.0
"""All launches are before: the host holds nothing back."""
SEND_RECV = "ncclDevKernel_SendRecv"
USUAL = [[100.0] * ROUNDS for _ in range(STAGES)]
LATE_LAST_STAGE = [*USUAL[:3], [140.0] * ROUNDS]


class Round(NamedTuple):
    """One exchange of one stage, us."""

    came: float
    goes: float
    ends: float


def schedule(
    compute_us: Sequence[Sequence[float]], transfer_us: Mapping[int, float] | None = None
) -> list[list[Round]]:
    """Per stage and round; `compute_us` by stage and round, transfers of 10 us unless given."""
    free = [BEGIN_US] * STAGES
    found: list[list[Round]] = [[] for _ in range(STAGES)]
    for number in range(ROUNDS):
        came = [free[stage] + compute_us[stage][number] for stage in range(STAGES)]
        for stage in range(STAGES):
            goes = max(came[peer] for peer in (stage, *neighbours(stage)))
            free[stage] = goes + (transfer_us or {}).get(stage, TRANSFER_US)
            found[stage].append(Round(came[stage], goes, free[stage]))
    return found


def neighbours(stage: int) -> list[int]:
    return [peer for peer in (stage - 1, stage + 1) if 0 <= peer < STAGES]


def pipeline(compute_us: Sequence[Sequence[float]]) -> Ranks:
    """Files of all stages; everything of a stage runs on one stream, without gaps."""
    run = Ranks(world=STAGES)
    args = Group(ranks=tuple(range(STAGES))).args()
    for stage, rounds in enumerate(schedule(compute_us)):
        file = run.files[stage]
        file.step(1, (0, BEGIN_US - 20))
        free = BEGIN_US
        for number, (came, _, ends) in enumerate(rounds):
            at = 60.0 * number
            file.launched(_work(number), (at, at + 2), (free, came))
            for place, peer in enumerate(neighbours(stage)):
                for word, key, begin in (
                    ("send", "Dst Rank", at + 5),
                    ("recv", "Src Rank", at + 8),
                ):
                    file.op(
                        "record_param_comms", (begin + 10 * place, begin + 10 * place + 2),
                        **args, **{"Collective name": word, key: peer, "In msg nelems": 5,
                                   "Out msg nelems": 5, "dtype": "Float"},
                    )  # fmt: skip
            file.launched(SEND_RECV, (at + 40, at + 42), (came, ends))
            free = ends
        file.launched("update", (at + 45, at + 47), (free, free + 5))
    return run


def _work(number: int) -> str:
    return f"forward of micro-batch {number}"


def rounds_of(run: Replayed, stage: int, after: Schedule | None = None) -> list[Round]:
    """The exchanges of a stage as recorded, or on a schedule."""
    transfers = run.all_of(SEND_RECV, TaskKind.TRANSFER, stage)
    return [Round(run.span(task - 1, after)[0], *run.span(task, after)) for task in transfers]


def all_rounds(run: Replayed, after: Schedule | None = None) -> list[list[Round]]:
    return [rounds_of(run, stage, after) for stage in range(STAGES)]


@pytest.fixture(name="late")
def _late(tmp_path: Path) -> Replayed:
    return read(pipeline(LATE_LAST_STAGE).write(tmp_path))


def test_a_delay_moves_one_stage_further_per_round(late: Replayed) -> None:
    assert [[one.goes - BEGIN_US for one in rounds_of(late, stage)] for stage in range(STAGES)] == [
        [100, 210, 360, 510],
        [100, 250, 400, 550],
        [140, 290, 440, 590],
        [140, 290, 440, 590],
    ]
    assert len(late.graph.collectives.kind) == ROUNDS
    assert late.is_exact()
    assert not late.facts.contradicted


def test_each_stage_has_edges_from_its_neighbours_only(late: Replayed) -> None:
    for stage in range(STAGES):
        for task in late.all_of(SEND_RECV, TaskKind.TRANSFER, stage):
            found = late.edges(task)
            assert {edge.kind for edge in found} == {EdgeKind.P2P}
            ranks = sorted(int(late.graph.tasks.rank[edge.src]) for edge in found)
            assert ranks == sorted([stage, *neighbours(stage)])
            kinds = {int(late.graph.tasks.kind[edge.src]) for edge in found}
            assert kinds == {TaskKind.ARRIVE}


def test_a_faster_last_stage_moves_those_that_waited_for_it_when_they_did(late: Replayed) -> None:
    works = {_work(number): 100 / 140 for number in range(ROUNDS)}
    faster = late.scaled(works, rank=3)
    assert all_rounds(late, faster) == schedule(USUAL)
    before, after = rounds_of(late, 0), rounds_of(late, 0, faster)
    assert [round(old.ends - new.ends) for old, new in zip(before, after, strict=True)] == [
        0, 0, 40, 80
    ]  # fmt: skip


@pytest.mark.parametrize("stage", range(STAGES))
def test_a_slow_micro_batch_holds_up_neighbours_alone(late: Replayed, stage: int) -> None:
    slower = late.scaled({_work(0): 2.0}, rank=stage)
    compute_us = [list(row) for row in LATE_LAST_STAGE]
    compute_us[stage][0] *= 2
    assert all_rounds(late, slower) == schedule(compute_us)
    far = [peer for peer in range(STAGES) if abs(peer - stage) > 1]
    for peer in far:
        assert rounds_of(late, peer, slower)[0] == rounds_of(late, peer)[0]


def test_a_faster_link_of_one_stage_reaches_the_others_through_its_neighbour(
    late: Replayed,
) -> None:
    faster = late.scaled({SEND_RECV: 0.5}, rank=3)
    assert all_rounds(late, faster) == schedule(LATE_LAST_STAGE, {3: TRANSFER_US / 2})
    assert rounds_of(late, 0, faster) == [*rounds_of(late, 0)[:3], Round(770.0, 805.0, 815.0)]


def test_who_waited_blames_its_own_neighbour(late: Replayed, tmp_path: Path) -> None:
    found = stragglers(late.graph, late.base.schedule, late.facts).meetings
    blamed = sorted(
        zip(found.collective.tolist(), found.last_rank.tolist(), found.caused_wait_ns, strict=True)
    )
    # In each round the stages that were let go by another one, by the round's arrivals.
    expected = [
        (0, 3, 40_000),
        (1, 2, 40_000), (1, 3, 40_000),
        (2, 1, 40_000), (2, 2, 40_000), (2, 3, 40_000),
        (3, 1, 40_000), (3, 2, 40_000), (3, 3, 40_000),
    ]  # fmt: skip
    assert blamed == expected
    with open_run(sorted(tmp_path.glob("*.json")), options=IngestOptions(cache=False)) as run:
        rows = run.store.rows(
            "SELECT coll_id, rank, wait_dur FROM collective_late ORDER BY coll_id, rank"
        )
    assert rows == expected


@pytest.fixture(name="three", params=["no file", "not chosen"])
def _three(request: pytest.FixtureRequest, tmp_path: Path) -> Replayed:
    """The late last stage is not there."""
    run = pipeline(LATE_LAST_STAGE)
    if request.param == "no file":
        return read(run.write(tmp_path, (0, 1, 2)))
    return read(run.write(tmp_path), ranks=(0, 1, 2))


def test_a_stage_without_a_file_is_waited_for_by_its_neighbour_alone(three: Replayed) -> None:
    tasks = three.graph.tasks
    for stage, outside_us in enumerate((0, 0, 40)):
        arrivals = three.all_of(SEND_RECV, TaskKind.ARRIVE, stage)
        assert (tasks.dur_ns[arrivals] == 1000 * outside_us).all()
    assert [rounds_of(three, stage) for stage in range(3)] == schedule(LATE_LAST_STAGE)[:3]
    assert three.is_exact()
    waiters = outside_waiters(three.graph)
    assert not waiters.for_all.any()
    assert np.flatnonzero(waiters.alone).tolist() == three.all_of(SEND_RECV, TaskKind.TRANSFER, 2)


def test_another_split_for_the_missing_stage_leaves_pairs_that_are_here(three: Replayed) -> None:
    calls = three.graph.collectives
    split = with_transfers(three.graph, calls.transfer_ns // 2)
    after = replay(split)
    before = three.base.schedule
    transfers = [
        task for stage in range(3) for task in three.all_of(SEND_RECV, TaskKind.TRANSFER, stage)
    ]
    assert (after.end_ns[transfers] == before.end_ns[transfers]).all()
    shorter = split.tasks.dur_ns[transfers] != three.graph.tasks.dur_ns[transfers]
    assert set(split.tasks.rank[transfers][shorter].tolist()) == {2}


def test_a_missing_stage_that_comes_as_recorded_holds_its_neighbour(three: Replayed) -> None:
    pinned = arriving_as_recorded(three.graph)
    assert pinned is not None
    works = [three.graph.names.index(_work(number)) for number in range(ROUNDS)]
    dur_ns = np.where(np.isin(pinned.tasks.name, works), 0, pinned.tasks.dur_ns)
    at_once = replace(three, graph=pinned)
    after = replay(replace(pinned, tasks=replace(pinned.tasks, dur_ns=dur_ns)))
    goes = [one.goes for one in rounds_of(at_once, 2, after)]
    assert goes == [one.goes for one in rounds_of(three, 2)]
    assert rounds_of(at_once, 0, after)[0] == Round(BEGIN_US, BEGIN_US, BEGIN_US + TRANSFER_US)


def brick(*, first_step_us: float) -> Ranks:
    """Rank 0 sends each micro-batch with the answer to the one before still to come.

    So kernel k of rank 0 has two partners, kernels k - 1 and k of rank 1, and all of both ranks
    hang together. Each moves data for 10 us.
    """
    run = Ranks(world=2)
    args = Group(ranks=(0, 1)).args()
    for rank, file in run.files.items():
        file.step(1, (first_step_us, BEGIN_US - 20))
        for number in range(ROUNDS):
            at, came = 60.0 * number, BEGIN_US + 100 * number + 60 * rank
            file.launched("work", (at, at + 2), (came - 20, came))
            answers = number > 0 if rank == 0 else number < ROUNDS - 1
            for word, key in (("send", "Dst Rank"), ("recv", "Src Rank")):
                if answers or (word == "send") == (rank == 0):
                    begin = at + (5 if word == "send" else 8)
                    file.op(
                        "record_param_comms", (begin, begin + 2), **args,
                        **{"Collective name": word, key: 1 - rank, "In msg nelems": 5,
                           "Out msg nelems": 5, "dtype": "Float"},
                    )  # fmt: skip
            goes = came + 60 - 20 * rank if answers or rank == 0 else came
            file.launched(SEND_RECV, (at + 40, at + 42), (came, goes + TRANSFER_US))
    return run


def test_exchanges_that_overlap_in_turn_wait_for_their_own_partners(tmp_path: Path) -> None:
    run = read(brick(first_step_us=0).write(tmp_path))
    assert len(run.graph.collectives.kind) == 1
    assert run.is_exact()
    transfers = [run.all_of(SEND_RECV, TaskKind.TRANSFER, rank) for rank in (0, 1)]
    partners = [
        [sorted(edge.src + 1 for edge in run.edges(task, EdgeKind.P2P)) for task in transfers[rank]]
        for rank in (0, 1)
    ]
    here, there = transfers
    assert partners[0] == [
        sorted([here[k], there[k], *there[max(k - 1, 0) : k]]) for k in range(ROUNDS)
    ]
    assert partners[1] == [sorted([there[k], *here[k : k + 2]]) for k in range(ROUNDS)]


def test_an_exchange_is_fixed_with_its_partners_and_not_with_theirs(tmp_path: Path) -> None:
    """The first micro-batch was launched before the step; the second waits for its answer."""
    run = read(brick(first_step_us=50).write(tmp_path))
    fixed = [
        run.graph.tasks.fixed[run.all_of(SEND_RECV, TaskKind.TRANSFER, rank)].tolist()
        for rank in (0, 1)
    ]
    assert fixed == [[True, True, False, False], [True, False, False, False]]
    removed = Remove(where="class:collective").apply(run.graph, Context()).graph.tasks
    taken = [
        (removed.dur_ns[run.all_of(SEND_RECV, TaskKind.TRANSFER, rank)] == 0).tolist()
        for rank in (0, 1)
    ]
    assert taken == [[not one for one in of_rank] for of_rank in fixed]


ROOTED = Group(ranks=(0, 1, 2))


def rooted(folder: Path, operation: str, spans: Mapping[int, tuple[float, float]]) -> Replayed:
    """One rooted operation, root 0, after a kernel that ends when the member comes."""
    run = Ranks(world=3)
    for rank, (start, end) in spans.items():
        file = run.files[rank]
        file.step(1, (0, 90))
        file.launched("work", (10, 12), (100, start), stream=NETWORK)
        file.launched(f"ncclDevKernel_{operation}", (20, 22), (start, end), stream=NETWORK)
        args = file.rows[-1]["args"]
        assert isinstance(args, dict)
        args |= {**ROOTED.args(), "Collective name": operation.lower(), "Rank": 0,
                 "In msg nelems": 10, "Out msg nelems": 10, "dtype": "Float"}  # fmt: skip
    return read(run.write(folder))


def ends_after(run: Replayed, operation: str, rank: int) -> list[float]:
    """Ends of the members when the work of this rank takes 100 us more."""
    tasks = run.graph.tasks
    slower = (tasks.name == run.graph.names.index("work")) & (tasks.rank == rank)
    dur_ns = np.where(
        slower & (tasks.kind == TaskKind.KERNEL), tasks.dur_ns + 100_000, tasks.dur_ns
    )
    after = replay(replace(run.graph, tasks=replace(tasks, dur_ns=dur_ns)))
    name = f"ncclDevKernel_{operation}"
    return [run.span(run.task(name, TaskKind.TRANSFER, member), after)[1] for member in range(3)]


def test_receivers_of_a_broadcast_wait_for_the_root_and_not_for_each_other(tmp_path: Path) -> None:
    run = rooted(tmp_path, "Broadcast", {0: (250, 270), 1: (200, 270), 2: (260, 280)})
    assert run.is_exact()
    assert not run.facts.contradicted
    assert ends_after(run, "Broadcast", 0) == [370, 370, 370]
    assert ends_after(run, "Broadcast", 1) == [270, 320, 280]
    assert ends_after(run, "Broadcast", 2) == [270, 270, 380]


def test_only_the_root_of_a_reduce_waits_for_all(tmp_path: Path) -> None:
    run = rooted(tmp_path, "Reduce", {0: (200, 280), 1: (210, 230), 2: (260, 280)})
    assert run.is_exact()
    assert ends_after(run, "Reduce", 0) == [320, 230, 280]
    assert ends_after(run, "Reduce", 1) == [330, 330, 280]
    assert ends_after(run, "Reduce", 2) == [380, 230, 380]
