"""Host work beside transfers on the host is slower by what the recording shows."""

from dataclasses import replace

import numpy as np

from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from tests.builders import GraphBuilder, baseline_of
from whatif.answers import Answers
from whatif.couplings.host_overlap import host_overlap
from whatif.scenario import Scenario
from whatif.study import study
from whatif.transforms.network import NetworkScale

MS = 1_000_000


def training(*, transfer_ms: int = 100, work_ms: int = 150, slowdown: float = 2.0) -> TaskGraph:
    """A transfer begins with the second piece of host work (task 1), which nothing waits for."""
    build = GraphBuilder(ranks=(0,), gpu=None)
    first = build.host(0, "forward", 10 * MS)
    build.host(0, "backward", work_ms * MS)
    build.collective(transfer_ms * MS, callers={0: first}, on_host=True, name="gloo:all_reduce")
    graph = build.build()
    ranks = tuple(replace(info, host_slowdown=slowdown) for info in graph.ranks)
    return replace(graph, ranks=ranks)


def work_ms(graph: TaskGraph, factor: float) -> float:
    change = Scenario(transforms=(NetworkScale(factor=factor),))
    return float(study(graph, baseline_of(graph), change).graph.tasks.dur_ns[1]) / MS


def test_work_is_faster_where_the_transfer_is_gone() -> None:
    # 100 of the 150 ms were at half speed: 100 ms of work.
    assert work_ms(training(), 1e9) == 100


def test_work_is_slower_beside_a_longer_transfer() -> None:
    assert work_ms(training(), 0.5) == 200
    assert work_ms(training(), 2) == 125


def test_work_that_was_all_beside_stays_where_it_is_still() -> None:
    assert work_ms(training(transfer_ms=200), 0.5) == 150


def test_the_unchanged_run_stays_to_the_nanosecond() -> None:
    graph = training(transfer_ms=77, work_ms=91, slowdown=1.37)
    settled, schedule = Answers.of(graph, replay(graph)).settled(graph)
    assert np.array_equal(settled.tasks.dur_ns, graph.tasks.dur_ns)
    assert np.array_equal(schedule.end_ns, replay(graph).end_ns)


def test_ranks_that_show_no_slowing_are_not_coupled() -> None:
    graph = training(slowdown=1.0)
    assert host_overlap(graph, replay(graph)) is None
    assert work_ms(graph, 0.5) == 150
