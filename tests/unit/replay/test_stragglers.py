"""Facts about who comes last to a collective, what it costs and why."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.vocab import TaskKind
from replay.graph.arrays import TaskGraph
from replay.graph.facts import GraphFacts
from replay.results import scans
from replay.results.causes import Cause, Fetching
from replay.results.cover import cover
from replay.results.stragglers import NOT_RESOLVED, RankLateness, Stragglers, stragglers
from tests.builders import GraphBuilder, baseline_of, data_parallel, facts_of
from tests.kineto import KinetoFile
from tests.replayed import written
from tests.unit.report.findings import file_of

US = 1_000
CALL = "cudaLaunchKernel"


def _late(graph: TaskGraph, facts: GraphFacts | None = None, **more: Fetching) -> Stragglers:
    return stragglers(graph, baseline_of(graph).schedule, facts or facts_of(graph), **more)


def _of(found: Stragglers, rank: int) -> RankLateness:
    return next(late for late in found.ranks if late.rank == rank)


def _host_late(host_us: dict[int, int], name: str = "aten::mm") -> TaskGraph:
    """Each rank works so long on the host, launches a 100 us kernel and an all-reduce after it."""
    made = GraphBuilder(ranks=tuple(host_us))
    callers, kernels = {}, {}
    for rank, work_us in host_us.items():
        made.host(rank, name, work_us * US)
        launch = made.call(rank, CALL, 5 * US)
        kernels[rank] = made.kernel(rank, "k", 100 * US, caller=launch)
        callers[rank] = made.call(rank, CALL, 5 * US)
    made.collective(50 * US, callers=callers, after=kernels)
    return made.build()


def test_codes_of_the_compiled_walk_are_those_of_the_enums() -> None:
    assert (scans.HOST, scans.INPUT, scans.WAIT, scans.UNKNOWN) == (
        Cause.HOST,
        Cause.INPUT,
        Cause.WAIT,
        Cause.UNKNOWN,
    )
    assert len(Cause) == scans.N_CAUSES
    assert TaskKind.TRANSFER == scans.TRANSFER


def test_a_rank_with_longer_kernels_is_late_by_compute() -> None:
    found = _late(data_parallel(slow_rank=1))
    slow, fast = _of(found, 1), _of(found, 0)
    assert found.worst == slow
    assert (slow.meetings, slow.times_last, slow.times_resolved) == (1, 1, 1)
    assert (slow.late_ns, slow.caused_wait_ns, slow.own_wait_ns) == (1_000_000, 1_000_000, 0)
    assert slow.cost_ns == 1_000_000
    assert slow.causes == {Cause.COMPUTE: 1_000_000}
    assert slow.task_name == "gemm_a"
    assert (fast.times_last, fast.caused_wait_ns, fast.own_wait_ns) == (0, 0, 1_000_000)
    assert (fast.cost_ns, fast.causes) == (0, {})


def test_a_rank_whose_host_launches_late_is_late_by_the_host() -> None:
    slow = _of(_late(_host_late({0: 20, 1: 320, 2: 20})), 1)
    assert slow.causes == {Cause.HOST: 2 * 300 * US}
    assert slow.cost_ns == 300 * US, "each of the two others waits so long"


def test_host_work_inside_the_data_loader_is_input() -> None:
    graph = _host_late({0: 20, 1: 320})
    fetching = Fetching({1: cover(np.array([0]), np.array([310 * US]))})
    slow = _of(_late(graph, fetching=fetching), 1)
    assert slow.causes == {Cause.INPUT: 300 * US}


def test_equal_ranks_make_nobody_wait() -> None:
    found = _late(data_parallel())
    assert found.worst is None
    assert all(late.caused_wait_ns == 0 for late in found.ranks)


@pytest.mark.parametrize(("uncertain_us", "resolved"), [(299, True), (300, False)])
def test_what_the_clocks_cannot_tell_is_nobodys_fault(uncertain_us: int, resolved: bool) -> None:  # noqa: FBT001
    graph = _host_late({0: 20, 1: 320})
    clock = replace(file_of(1), clock_uncertainty_ns=uncertain_us * US)
    facts = replace(facts_of(graph), files=(file_of(0), clock))
    found = _late(graph, facts)
    slow = _of(found, 1)
    assert slow.times_last == 1
    assert slow.times_resolved == int(resolved)
    assert (found.meetings.cause[0] == NOT_RESOLVED) == (not resolved)
    assert slow.cost_ns == (300 * US if resolved else 0)


def test_a_rank_that_waited_in_another_group_is_late_by_that() -> None:
    """Rank 2 is slow; rank 1 waits for it in their own group and so comes late to rank 0's."""
    made = GraphBuilder(ranks=(0, 1, 2))
    launch = {rank: made.call(rank, CALL, 5 * US) for rank in made.ranks}
    first = {
        rank: made.kernel(rank, "k", 500 * US if rank == 2 else 100 * US, caller=launch[rank])
        for rank in (1, 2)
    }
    inner = {rank: made.call(rank, CALL, 5 * US) for rank in (1, 2)}
    joined = made.collective(50 * US, callers=inner, after=first)
    outer = {rank: made.call(rank, CALL, 5 * US) for rank in (0, 1)}
    alone = made.kernel(0, "k", 100 * US, caller=launch[0])
    made.collective(50 * US, callers=outer, after={0: alone, 1: joined[0]}, stream=21)
    found = _late(made.build())
    assert _of(found, 2).causes == {Cause.COMPUTE: 400 * US}
    assert (_of(found, 2).others, _of(found, 2).cost_ns) == (1, 400 * US)
    assert _of(found, 1).others == 2
    assert _of(found, 1).causes.keys() == {Cause.WAIT}


def test_lateness_counts_from_where_the_group_had_last_met() -> None:
    """Rank 1 is slow on the host before the first all-reduce, on the device before the second."""
    made = GraphBuilder(ranks=(0, 1))
    for host_us, kernel_us in (({0: 20, 1: 320}, {0: 100, 1: 100}), ({0: 5, 1: 5}, {0: 9, 1: 99})):
        callers, kernels = {}, {}
        for rank in made.ranks:
            made.host(rank, "op", host_us[rank] * US)
            launch = made.call(rank, CALL, 5 * US)
            kernels[rank] = made.kernel(rank, "k", kernel_us[rank] * US, caller=launch, stream=20)
            callers[rank] = made.call(rank, CALL, 5 * US)
        made.collective(50 * US, callers=callers, after=kernels, stream=20)
    graph = made.build()
    graph = replace(graph, collectives=replace(graph.collectives, group=np.zeros(2, np.int32)))
    found = _late(graph)
    assert found.meetings.cause.tolist() == [Cause.HOST, Cause.COMPUTE]
    assert found.meetings.late_ns.tolist() == [300 * US, 90 * US]


def test_waiting_that_compute_hides_costs_nothing() -> None:
    graph = data_parallel(slow_rank=1)
    made = GraphBuilder(ranks=(0, 1))
    data_parallel(slow_rank=1, builder=made)
    made.kernel(0, "beside", 3_000_000, caller=0, stream=9)
    hidden = _late(made.build())
    assert _of(_late(graph), 1).cost_ns == 1_000_000
    assert _of(hidden, 1).cost_ns == 0
    assert _of(hidden, 1).caused_wait_ns == 1_000_000


def test_one_rank_alone_waits_outside(tmp_path: Path) -> None:
    """Three equal calls: the fastest is the transfer, 10 us; the others wait 390 us each."""
    file = KinetoFile(rank=0, ranks=(0, 1))
    file.step(1, (0, 4000))
    for number in range(3):
        at = 1000 * number
        length_us = 10 if number == 0 else 400
        file.launched("compute", (at, at + 5), (at + 10, at + 108))
        file.all_reduce(number + 1, (at + 10, at + 15), (at + 110, at + 110 + length_us), stream=7)
    run = written(tmp_path, file)
    found = stragglers(run.graph, run.base.schedule, run.facts)
    assert len(found.meetings.collective) == 0
    assert found.worst is None
    assert found.outside_wait_ns == 2 * 390 * US
    assert found.outside_wait_high_ns >= found.outside_wait_ns


def test_a_graph_without_collectives_has_nobody_late() -> None:
    made = GraphBuilder()
    made.host(0, "op", 1_000)
    found = _late(made.build())
    assert found.worst is None
    assert found.outside_wait_ns == 0
