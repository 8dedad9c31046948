"""Facts about step time and breakdown, on schedules made by hand; times in us."""

import numpy as np
import pytest

from ingest.vocab import KernelClass, TaskKind
from replay.graph.arrays import TaskGraph
from replay.results.metrics import Breakdown, breakdown, covered_ns, rank_breakdowns, step_times
from tests.builders import GraphBuilder, baseline_of

US = 1_000
ROUND = (0, 1_000)


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], 0),
        ([(10, 20)], 10),
        ([(10, 20), (20, 30)], 20),
        ([(10, 30), (20, 40)], 30),
        ([(10, 90), (20, 40), (30, 50)], 80),
        ([(50, 60), (10, 20)], 20),
        ([(10, 10)], 0),
        ([(-50, 20), (990, 2_000)], 30),
        ([(-50, 5_000)], 1_000),
        ([(2_000, 3_000)], 0),
    ],
)
def test_covered_time_is_the_union_inside_the_window(
    spans: list[tuple[int, int]], expected: int
) -> None:
    lo = np.array([start for start, _ in spans], np.int64)
    hi = np.array([end for _, end in spans], np.int64)
    assert covered_ns(lo, hi, ROUND) == expected


def _parts(graph: TaskGraph) -> Breakdown:
    return breakdown(graph, baseline_of(graph).schedule)


def test_instant_belongs_to_compute_then_communication_then_copies_then_idle() -> None:
    made = GraphBuilder()
    call = made.call(0, "launch", 10 * US)
    made.kernel(0, "gemm", 50 * US, caller=call)
    made.kernel(0, "copy", 100 * US, caller=call, stream=8, kind=TaskKind.MEMCPY)
    made.collective(70 * US, callers={0: call})
    late = made.call(0, "more host work", 190 * US)
    made.kernel(0, "gemm", 20 * US, caller=late)
    found = _parts(made.build())
    assert found == Breakdown(
        compute_ns=70 * US,
        exposed_comm_ns=20 * US,
        exposed_memcpy_ns=30 * US,
        idle_ns=100 * US,
        exposed_wait_ns=0,
    )
    assert found.total_ns == 220 * US


def test_waiting_inside_a_collective_is_communication_and_said() -> None:
    made = GraphBuilder(ranks=(0, 1))
    callers = {0: made.call(0, "launch", 10 * US), 1: made.call(1, "launch", 90 * US)}
    made.collective(30 * US, callers=callers)
    graph = made.build()
    first, second = rank_breakdowns(graph, baseline_of(graph).schedule)
    assert (first.exposed_comm_ns, first.exposed_wait_ns, first.idle_ns) == (
        110 * US,
        80 * US,
        10 * US,
    )
    assert (second.exposed_comm_ns, second.exposed_wait_ns) == (30 * US, 0)
    both = _parts(graph)
    assert (both.exposed_comm_ns, both.exposed_wait_ns, both.total_ns) == (
        70 * US,
        40 * US,
        120 * US,
    )


def test_wait_that_compute_hides_is_not_exposed() -> None:
    made = GraphBuilder(ranks=(0, 1))
    callers = {0: made.call(0, "launch", 10 * US), 1: made.call(1, "launch", 90 * US)}
    made.kernel(0, "gemm", 80 * US, caller=callers[0])
    made.collective(30 * US, callers=callers)
    graph = made.build()
    first = rank_breakdowns(graph, baseline_of(graph).schedule)[0]
    assert (first.compute_ns, first.exposed_comm_ns, first.exposed_wait_ns) == (
        80 * US,
        30 * US,
        0,
    )


def test_breakdown_is_per_step() -> None:
    made = GraphBuilder()
    for step in range(2):
        call = made.call(0, "launch", 10 * US, step=step)
        made.kernel(0, "gemm", 40 * US, caller=call, step=step)
        made.host(0, "pause", 60 * US, step=step)
    graph = made.build()
    assert step_times(graph, baseline_of(graph).schedule).boundary_ns.tolist() == [
        0,
        70 * US,
        140 * US,
    ]
    assert _parts(graph).compute_ns == 40 * US
    assert _parts(graph).total_ns == 70 * US


def test_step_of_odd_length_is_rounded_and_its_parts_still_add_up() -> None:
    made = GraphBuilder()
    for step in range(3):
        call = made.call(0, "launch", 11, step=step)
        made.kernel(0, "gemm", 34, caller=call, step=step)
        made.host(0, "pause", 41 + step, step=step)
    graph = made.build()
    times = step_times(graph, baseline_of(graph).schedule)
    assert times.mean_ns == round(159 / 3)
    assert _parts(graph).total_ns == times.mean_ns


def test_boundary_of_the_run_is_that_of_its_latest_rank() -> None:
    made = GraphBuilder(ranks=(0, 1))
    made.host(0, "work", 50)
    made.host(1, "work", 80)
    graph = made.build()
    times = step_times(graph, baseline_of(graph).schedule)
    assert times.boundary_ns.tolist() == [0, 80]
    assert times.rank_boundary_ns.tolist() == [[0, 50], [0, 80]]
    assert [times.rank_mean_ns(0), times.rank_mean_ns(1)] == [50, 80]


def test_run_without_device_computes_on_its_threads_and_waits_for_collectives() -> None:
    made = GraphBuilder(ranks=(0, 1), gpu=None)
    callers = {0: made.host(0, "forward", 20 * US), 1: made.host(1, "forward", 70 * US)}
    done = made.collective(30 * US, callers=callers, on_host=True, name="gloo:all_reduce")
    for rank, transfer in zip((0, 1), done, strict=True):
        made.edge(transfer, made.host(rank, "optimizer", 10 * US))
    graph = made.build()
    first, second = rank_breakdowns(graph, baseline_of(graph).schedule)
    assert first == Breakdown(
        compute_ns=30 * US,
        exposed_comm_ns=80 * US,
        exposed_memcpy_ns=0,
        idle_ns=0,
        exposed_wait_ns=50 * US,
    )
    assert (second.compute_ns, second.exposed_comm_ns) == (80 * US, 30 * US)


def test_custom_all_reduce_kernel_without_members_is_compute_of_its_class() -> None:
    made = GraphBuilder()
    call = made.call(0, "launch", 10 * US)
    made.kernel(0, "gemm", 30 * US, caller=call, kernel_class=KernelClass.GEMM)
    assert _parts(made.build()).compute_ns == 30 * US
