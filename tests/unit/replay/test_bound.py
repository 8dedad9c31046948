"""Facts about what binds a run, how far its CPU is ahead, and why its devices idle."""

import numpy as np
import pytest

from ingest.vocab import KernelClass, TaskKind
from replay.graph.arrays import TaskGraph
from replay.results.bound import BoundBy, RunBound, run_bound
from replay.results.causes import NOT_FETCHING, Cause, Fetching
from replay.results.cover import cover
from replay.results.stragglers import stragglers
from tests.builders import GraphBuilder, baseline_of, data_parallel, facts_of

US = 1_000
CALL = "cudaLaunchKernel"


def _bound(graph: TaskGraph, fetching: Fetching = NOT_FETCHING) -> RunBound:
    base = baseline_of(graph)
    return run_bound(graph, base, stragglers(graph, base.schedule, facts_of(graph)), fetching)


def _fetching(stretches_us: list[tuple[int, int]]) -> Fetching:
    """Rank 0 is in its data loader during these."""
    lo_us, hi_us = np.array(stretches_us).T
    return Fetching({0: cover(lo_us * US, hi_us * US)})


def _one_after_the_other(host_us: int, kernel_us: int, *, n: int = 4) -> TaskGraph:
    """The host works, launches, and works on while the kernel runs."""
    made = GraphBuilder()
    for _ in range(n):
        made.host(0, "aten::mm", host_us * US)
        made.kernel(0, "k", kernel_us * US, caller=made.call(0, CALL, 10 * US))
    return made.build()


def test_a_device_that_never_idles_binds_and_its_cpu_is_ahead() -> None:
    bound = _bound(_one_after_the_other(0, 1_000))
    assert bound.by is BoundBy.DEVICE
    assert bound.path_frac[Cause.COMPUTE] == pytest.approx(4_000 / 4_010)
    assert bound.idle_frac == pytest.approx(10 / 4_010)
    assert bound.ahead_ns == {0: round((0 + 990 + 1_980 + 2_970) / 4 * US)}
    assert bound.ahead_steps == pytest.approx(1_485 / 4_010)


def test_a_device_that_waits_for_launches_is_bound_by_the_host() -> None:
    """The path ends with the last kernel: 4 x (100 + 10) us of host before 50 us of kernel."""
    bound = _bound(_one_after_the_other(100, 50))
    assert bound.by is BoundBy.HOST
    assert bound.path_frac[Cause.HOST] == pytest.approx(440 / 490)
    assert bound.idle_frac == pytest.approx((490 - 4 * 50) / 490)
    assert bound.idle_launch_frac == bound.idle_frac
    assert bound.idle_input_frac == 0
    assert bound.ahead_ns == {0: 0}


def test_idling_while_the_host_fetches_a_batch_is_bound_by_input() -> None:
    inside = [(110 * n, 110 * n + 95) for n in range(4)]
    bound = _bound(_one_after_the_other(100, 50), _fetching(inside))
    assert bound.by is BoundBy.INPUT
    assert bound.path_frac[Cause.INPUT] == pytest.approx(4 * 95 / 490)


def test_a_data_loader_beside_which_the_device_works_does_not_bind() -> None:
    """Kernels run while batches are fetched; the device idles for the rest of the host's work."""
    inside = [(110 * n, 110 * n + 50) for n in range(1, 4)]
    bound = _bound(_one_after_the_other(100, 50), _fetching(inside))
    assert bound.by is BoundBy.HOST
    assert bound.path_frac[Cause.INPUT] == pytest.approx(150 / 490)
    assert bound.idle_input_frac == 0


def test_a_data_loader_that_the_device_waits_for_least_does_not_bind() -> None:
    """It runs while the device idles, but for 20 of the 110 us before each kernel only."""
    inside = [(110 * n + 80, 110 * n + 100) for n in range(4)]
    bound = _bound(_one_after_the_other(100, 50), _fetching(inside))
    assert bound.by is BoundBy.HOST
    assert bound.idle_input_frac == pytest.approx(80 / 490)


def test_transfers_bind_where_they_are_most_of_the_path() -> None:
    made = GraphBuilder(ranks=(0, 1))
    callers = {rank: made.call(rank, CALL, 10 * US) for rank in made.ranks}
    made.collective(900 * US, callers=callers)
    bound = _bound(made.build())
    assert bound.by is BoundBy.COMMUNICATION
    assert bound.path_frac[Cause.TRANSFER] == pytest.approx(900 / 910)
    assert bound.idle_frac == pytest.approx(10 / 910)


def test_copies_bind_where_they_are_most_of_the_path() -> None:
    made = GraphBuilder()
    call = made.call(0, "cudaMemcpyAsync", 10 * US)
    made.kernel(
        0, "copy", 500 * US, caller=call, kind=TaskKind.MEMCPY, kernel_class=KernelClass.MEMCPY
    )
    assert _bound(made.build()).by is BoundBy.COPIES


def test_ranks_that_are_not_there_bind_where_most_of_the_path_waits_for_them() -> None:
    made = GraphBuilder(world_size=2)
    made.collective(
        10 * US, callers={0: made.call(0, CALL, 10 * US)}, expected=2, outside_ns=500 * US
    )
    assert _bound(made.build()).by is BoundBy.ABSENT


def test_a_path_of_gaps_is_bound_by_nothing_known() -> None:
    made = GraphBuilder()
    made.kernel(0, "k", 100 * US, release_ns=900 * US)
    bound = _bound(made.build())
    assert bound.by is BoundBy.UNKNOWN
    assert bound.ahead_steps is None, "nothing was launched"


def test_a_rank_that_lets_the_others_wait_most_of_the_step_binds_it() -> None:
    """3 ms against 100 us of compute: without the lateness the step would be a sixth."""
    made = GraphBuilder(ranks=(0, 1))
    callers, kernels = {}, {}
    for rank, dur_us in ((0, 100), (1, 3_000)):
        launch = made.call(rank, CALL, 10 * US)
        kernels[rank] = made.kernel(rank, "k", dur_us * US, caller=launch)
        callers[rank] = made.call(rank, CALL, 10 * US)
    made.collective(400 * US, callers=callers, after=kernels)
    bound = _bound(made.build())
    assert bound.by is BoundBy.STRAGGLER
    assert bound.rank == 1


def test_a_slow_rank_that_costs_less_than_that_does_not() -> None:
    bound = _bound(data_parallel(slow_rank=1))
    assert bound.by is BoundBy.DEVICE
    assert bound.rank == 1


@pytest.mark.parametrize("slow_rank", [None, 0, 1])
def test_shares_of_the_path_add_up_to_one(slow_rank: int | None) -> None:
    bound = _bound(data_parallel(slow_rank=slow_rank))
    assert sum(bound.path_frac.values()) == pytest.approx(1)


def test_without_a_device_nothing_idles_and_nothing_is_ahead() -> None:
    made = GraphBuilder(gpu=None)
    made.host(0, "aten::mm", 100 * US)
    bound = _bound(made.build())
    assert bound.by is BoundBy.HOST
    assert bound.idle_frac is None
    assert bound.ahead_steps is None


def test_a_member_that_waits_in_its_collective_is_not_idle() -> None:
    """Rank 0 waits 300 us inside the all-reduce; it idles only before its launch."""
    made = GraphBuilder(ranks=(0, 1))
    callers = {}
    for rank, work_us in ((0, 10), (1, 310)):
        made.host(rank, "op", work_us * US)
        callers[rank] = made.call(rank, CALL, 10 * US)
    made.collective(80 * US, callers=callers)
    bound = _bound(made.build())
    assert bound.idle_frac == pytest.approx((20 + 320) / 2 / 400)
