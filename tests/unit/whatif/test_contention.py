"""Transfers that overlap share their link: schedules known by hand."""

from dataclasses import replace

import numpy as np
import pytest

from ingest.vocab import CollectiveKind, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from tests.builders import GraphBuilder, baseline_of
from whatif.answers import Answers
from whatif.couplings.contention import contention
from whatif.scenario import Scenario
from whatif.study import study
from whatif.transforms.base import with_durations
from whatif.transforms.network import NetworkScale

US = 1_000


def two_transfers(*, apart_us: int = 0, streams: tuple[int, int] = (20, 21)) -> TaskGraph:
    """Two ranks; two all-reduces of 400 us as recorded, the second `apart_us` behind the first."""
    build = GraphBuilder(ranks=(0, 1))
    for stream, name in zip(streams, ("first", "second"), strict=True):
        callers = {rank: build.call(rank, "launch", 0) for rank in (0, 1)}
        build.collective(400 * US, callers=callers, stream=stream, name=name)
        if apart_us and name == "first":
            for rank in (0, 1):
                build.host(rank, "work", apart_us * US)
    return build.build()


def settled_us(graph: TaskGraph, plain: TaskGraph) -> list[int]:
    """Durations of rank 0's transfers, us."""
    settled, _ = Answers.of(graph, replay(graph)).settled(plain)
    tasks = settled.tasks
    mine = (tasks.kind == TaskKind.TRANSFER) & (tasks.rank == 0)
    return (tasks.dur_ns[mine] // US).tolist()


def scaled(graph: TaskGraph, *factors: float) -> TaskGraph:
    """Transfers of the first collective, and of the second, times a factor each."""
    tasks = graph.tasks
    per_call = np.array([*factors, 1.0])[tasks.collective]
    transfer = tasks.kind == TaskKind.TRANSFER
    dur_ns = np.where(transfer, tasks.dur_ns * per_call, tasks.dur_ns).astype(np.int64)
    return with_durations(graph, dur_ns)


def test_what_overlapped_in_the_recording_takes_half_alone() -> None:
    graph = two_transfers()
    assert settled_us(graph, scaled(graph, 1, 0)) == [200, 0]


def test_equal_slowing_keeps_the_shares() -> None:
    graph = two_transfers()
    assert settled_us(graph, scaled(graph, 3, 3)) == [1200, 1200]


def test_transfers_that_come_to_overlap_share_from_then_on() -> None:
    # Alone until 500 us; then 300 of the first and 800 of the second remain.
    graph = two_transfers(apart_us=500)
    assert settled_us(graph, scaled(graph, 2, 2)) == [1100, 1100]


def test_without_overlap_the_answer_is_the_plain_replay() -> None:
    graph = two_transfers(apart_us=900)
    plain = scaled(graph, 2, 2)
    settled, schedule = Answers.of(graph, replay(graph)).settled(plain)
    assert np.array_equal(settled.tasks.dur_ns, plain.tasks.dur_ns)
    assert np.array_equal(schedule.end_ns, replay(plain).end_ns)


@pytest.mark.parametrize("apart_us", [0, 1, 250, 900])
def test_the_unchanged_run_stays_to_the_nanosecond(apart_us: int) -> None:
    graph = two_transfers(apart_us=apart_us)
    answer = study(graph, baseline_of(graph), Scenario(transforms=(NetworkScale(factor=1),)))
    assert np.array_equal(answer.graph.tasks.dur_ns, graph.tasks.dur_ns)
    assert answer.step_ns == answer.replayed_ns


def test_one_stream_shares_with_nobody() -> None:
    graph = two_transfers(streams=(20, 20))
    assert contention(graph, replay(graph)) is None


def test_a_transfer_from_before_the_steps_keeps_its_time() -> None:
    graph = two_transfers()
    first = graph.tasks.collective == 0
    fixed = replace(graph, tasks=replace(graph.tasks, fixed=first))
    assert settled_us(fixed, scaled(fixed, 1, 0)) == [400, 0]


def test_latency_is_not_shared() -> None:
    graph = two_transfers()
    calls = replace(graph.collectives, latency_ns=np.full(2, 400 * US))
    latent = replace(graph, collectives=calls)
    assert settled_us(latent, scaled(latent, 1, 0)) == [400, 0]


def test_a_faster_network_gains_what_no_longer_overlaps() -> None:
    # Each takes 350 us alone (they share from 300 to 400 us), and at twice the rate 175, apart.
    graph = two_transfers(apart_us=300)
    answer = study(graph, baseline_of(graph), Scenario(transforms=(NetworkScale(factor=2),)))
    assert settled_us(graph, scaled(graph, 0.5, 0.5)) == [175, 175]
    assert answer.replayed_ns - answer.step_ns == 225 * US


def test_messages_in_both_directions_share_the_link_between_two_ranks() -> None:
    build = GraphBuilder(ranks=(0, 1), gpu=None)
    for sender in (0, 1):
        callers = {rank: build.call(rank, "c10d", 0) for rank in (0, 1)}
        moved = build.collective(
            400 * US,
            callers=callers,
            on_host=True,
            kind=CollectiveKind.SEND_RECV,
            name="gloo:recv",
            size_bytes=1 << 20,
        )
        build.rows[moved[sender]] = replace(build.rows[moved[sender]], name="gloo:send")
        build.last_of_lane.pop(build.link(0))
        build.last_of_lane.pop(build.link(1))
    graph = build.build()
    coupling = contention(graph, replay(graph))
    assert coupling is not None
    assert [graph.names[name] for name in graph.tasks.name[coupling.task]] == ["gloo:recv"] * 2
    assert (coupling.alone_ns // US).tolist() == [200, 200]
