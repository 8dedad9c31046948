"""Runs whose transfers share links in any way: what stays, and what scales."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.vocab import TaskKind
from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from tests.builders import GraphBuilder
from whatif.answers import Answers

TIMES_NS = st.integers(0, 1_000_000)


@st.composite
def runs(draw: st.DrawFn) -> TaskGraph:
    """Two ranks whose host launches transfers on up to three streams between pieces of work."""
    build = GraphBuilder(ranks=(0, 1))
    for _ in range(draw(st.integers(1, 6))):
        for rank in (0, 1):
            build.host(rank, "work", draw(TIMES_NS))
        callers = {rank: build.call(rank, "launch", 0) for rank in (0, 1)}
        build.collective(draw(TIMES_NS), callers=callers, stream=draw(st.integers(20, 22)))
    graph = build.build()
    latency_ns = np.array([draw(TIMES_NS) for _ in graph.collectives.kind], np.int64)
    return replace(graph, collectives=replace(graph.collectives, latency_ns=latency_ns))


@given(runs())
@settings(deadline=None)
def test_the_unchanged_run_is_its_own_answer_to_the_nanosecond(graph: TaskGraph) -> None:
    settled, schedule = Answers.of(graph, replay(graph)).settled(graph)
    assert np.array_equal(settled.tasks.dur_ns, graph.tasks.dur_ns)
    assert np.array_equal(schedule.end_ns, replay(graph).end_ns)


@given(runs(), st.integers(2, 5))
@settings(deadline=None)
def test_a_run_slower_throughout_keeps_its_shares(graph: TaskGraph, factor: int) -> None:
    calls = replace(graph.collectives, latency_ns=graph.collectives.latency_ns * factor)
    tasks = replace(graph.tasks, dur_ns=graph.tasks.dur_ns * factor)
    slower = replace(graph, tasks=tasks, collectives=calls)
    _, schedule = Answers.of(graph, replay(graph)).settled(slower)
    expected_ns = replay(graph).end_ns * factor
    assert np.abs(schedule.end_ns - expected_ns).max() <= 1e-5 * expected_ns.max() + 100


@given(runs(), st.integers(0, 4))
@settings(deadline=None)
def test_no_transfer_is_shorter_than_its_bytes_alone(graph: TaskGraph, quarters: int) -> None:
    moving = graph.tasks.kind == TaskKind.TRANSFER
    asked_ns = np.where(moving, graph.tasks.dur_ns * quarters // 4, graph.tasks.dur_ns)
    plain = replace(graph, tasks=replace(graph.tasks, dur_ns=asked_ns))
    answers = Answers.of(graph, replay(graph))
    settled, _ = answers.settled(plain)
    assert (settled.tasks.dur_ns >= 0).all()
    assert np.array_equal(settled.tasks.dur_ns[~moving], asked_ns[~moving])
    for coupling in answers.couplings:
        alone_ns = coupling.alone_ns * asked_ns[coupling.task]
        alone_ns /= np.maximum(graph.tasks.dur_ns[coupling.task], 1)
        assert (settled.tasks.dur_ns[coupling.task] >= np.floor(alone_ns) - 2).all()
