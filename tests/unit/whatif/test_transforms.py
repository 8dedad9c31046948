"""Each what-if changes what it says and nothing else."""

from dataclasses import fields

import pytest

from ingest.errors import UsageError
from ingest.vocab import TaskKind
from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from replay.results.metrics import step_times
from tests.builders import GraphBuilder, data_parallel
from whatif.transforms.base import Applied, Context
from whatif.transforms.network import NetworkScale
from whatif.transforms.registry import Transform
from whatif.transforms.remove import Remove
from whatif.transforms.scale import Scale
from whatif.transforms.stragglers import NoStragglers

MIB = 1 << 20


def apply(graph: TaskGraph, change: Transform) -> Applied:
    return change.apply(graph, Context())


def of_kind(graph: TaskGraph, kind: TaskKind) -> list[int]:
    return graph.tasks.dur_ns[graph.tasks.kind == kind].tolist()


def step_ns(graph: TaskGraph) -> int:
    return int(step_times(graph, replay(graph)).mean_ns)


def changed_columns(before: TaskGraph, after: TaskGraph) -> set[str]:
    return {
        field.name
        for field in fields(before.tasks)
        if getattr(before.tasks, field.name) is not getattr(after.tasks, field.name)
    }


class TestScale:
    def test_the_selected_tasks_take_the_factor_of_their_time(self) -> None:
        graph = data_parallel()
        after = apply(graph, Scale(where="class:gemm", factor=0.5)).graph
        assert of_kind(after, TaskKind.KERNEL) == [500_000, 500_000]
        assert of_kind(after, TaskKind.TRANSFER) == of_kind(graph, TaskKind.TRANSFER)
        assert changed_columns(graph, after) == {"dur_ns"}
        assert after.edges is graph.edges

    def test_of_a_collective_only_the_transfer_scales(self) -> None:
        build = GraphBuilder()
        build.collective(
            400, callers={0: build.call(0, "c", 10)}, expected=2, group=(0, 1), outside_ns=300
        )
        after = apply(build.build(), Scale(where="class:collective", factor=0.0)).graph
        assert of_kind(after, TaskKind.ARRIVE) == [300]
        assert of_kind(after, TaskKind.TRANSFER) == [0]

    def test_fixed_tasks_stay(self) -> None:
        build = GraphBuilder()
        build.kernel(0, "gemm", 100, fixed=True)
        build.kernel(0, "gemm", 100)
        after = apply(build.build(), Scale(where="name:gemm", factor=2)).graph
        assert of_kind(after, TaskKind.KERNEL) == [100, 200]

    def test_a_factor_of_one_has_no_effect(self) -> None:
        applied = apply(data_parallel(), Scale(where="class:gemm", factor=1))
        assert applied.no_effect == "the factor is 1"

    @pytest.mark.parametrize("factor", [-1.0, float("nan"), float("inf")])
    def test_an_impossible_factor_is_refused(self, factor: float) -> None:
        with pytest.raises(UsageError):
            Scale(where="class:gemm", factor=factor)


class TestNetworkScale:
    def test_every_transfer_takes_its_share(self) -> None:
        after = apply(data_parallel(slow_rank=1), NetworkScale(factor=4)).graph
        assert of_kind(after, TaskKind.TRANSFER) == [100_000, 100_000]
        assert of_kind(after, TaskKind.KERNEL) == [1_000_000, 2_000_000]

    def test_collectives_on_the_host_scale_too(self) -> None:
        build = GraphBuilder(gpu=None)
        build.collective(400, callers={0: build.host(0, "h", 10)}, on_host=True)
        assert of_kind(apply(build.build(), NetworkScale(factor=2)).graph, TaskKind.TRANSFER) == [
            200
        ]

    def test_waiting_for_a_slow_rank_stays(self) -> None:
        graph = data_parallel(slow_rank=1)
        after = apply(graph, NetworkScale(factor=4)).graph
        assert step_ns(graph) - step_ns(after) == 300_000

    def test_without_a_collective_it_says_so(self) -> None:
        build = GraphBuilder()
        build.kernel(0, "gemm", 100)
        applied = apply(build.build(), NetworkScale(factor=2))
        assert applied.no_effect == "no collective in this trace"

    @pytest.mark.parametrize("factor", [0.0, -2.0, float("nan"), float("inf"), 1e-300])
    def test_an_impossible_factor_is_refused(self, factor: float) -> None:
        with pytest.raises(UsageError):
            NetworkScale(factor=factor)


class TestRemove:
    def test_a_removed_kernel_and_its_own_call_take_no_time(self) -> None:
        graph = data_parallel()
        after = apply(graph, Remove(where="name:gemm_a")).graph
        assert of_kind(after, TaskKind.KERNEL) == [0, 0]
        assert of_kind(after, TaskKind.HOST_CALL) == [0, 10_000, 0, 10_000]

    def test_a_call_that_launched_more_stays(self) -> None:
        build = GraphBuilder()
        call = build.call(0, "cudaGraphLaunch", 50)
        build.kernel(0, "a", 100, caller=call)
        build.kernel(0, "b", 100, caller=call)
        assert of_kind(apply(build.build(), Remove(where="name:a")).graph, TaskKind.HOST_CALL) == [
            50
        ]

    def test_host_work_before_a_collective_of_the_host_stays(self) -> None:
        build = GraphBuilder(gpu=None)
        build.collective(400, callers={0: build.host(0, "h", 70)}, on_host=True)
        after = apply(build.build(), Remove(where="class:collective")).graph
        assert of_kind(after, TaskKind.HOST_WORK) == [70]

    def test_the_delay_that_nothing_explains_goes_with_the_task(self) -> None:
        build = GraphBuilder()
        build.kernel(0, "a", 100)
        build.kernel(0, "b", 100, residual_ns=40)
        build.kernel(0, "c", 100, residual_ns=7)
        graph = build.build()
        assert step_ns(graph) == 347
        assert step_ns(apply(graph, Remove(where="name:b")).graph) == 207

    def test_order_passes_through_a_removed_task_with_one_lag(self) -> None:
        build = GraphBuilder(ranks=(0,))
        a = build.kernel(0, "a", 100, stream=7)
        b = build.kernel(0, "b", 100, stream=8)
        c = build.kernel(0, "c", 100, stream=9)
        build.edge(a, b, 5)
        build.edge(b, c, 5)
        assert step_ns(apply(build.build(), Remove(where="name:b")).graph) == 205

    def test_a_removed_collective_frees_its_members(self) -> None:
        build = GraphBuilder(ranks=(0, 1))
        callers = {rank: build.call(rank, "c", 10) for rank in (0, 1)}
        gemms = {0: build.kernel(0, "fast", 100), 1: build.kernel(1, "slow", 900)}
        build.collective(50, callers=callers, after=gemms)
        after_it = [build.kernel(rank, "next", 10, stream=20) for rank in (0, 1)]
        graph = build.build()
        assert replay(graph).start_ns[after_it].tolist() == [950, 950]
        freed = apply(graph, Remove(where="class:collective")).graph
        assert replay(freed).start_ns[after_it].tolist() == [100, 900]

    def test_a_lone_ranks_outside_wait_goes_with_its_collective(self) -> None:
        build = GraphBuilder()
        build.collective(
            400, callers={0: build.call(0, "c", 10)}, expected=2, group=(0, 1), outside_ns=300
        )
        assert step_ns(apply(build.build(), Remove(where="class:collective")).graph) == 0

    def test_a_collective_is_removed_on_all_ranks_or_none(self) -> None:
        applied = apply(data_parallel(), Remove(where="class:collective,rank:1"))
        assert of_kind(applied.graph, TaskKind.TRANSFER) == [0, 0]
        assert any("1 collectives are removed on all ranks" in text for text in applied.assumptions)

    def test_a_fixed_collective_stays(self) -> None:
        build = GraphBuilder(ranks=(0, 1))
        callers = {rank: build.call(rank, "c", 10, fixed=True) for rank in (0, 1)}
        build.collective(400, callers=callers, fixed=True)
        graph = build.build()
        applied = apply(graph, Remove(where="class:collective"))
        assert applied.graph is graph
        assert applied.no_effect == "all selected tasks were launched before the first step"

    def test_removal_never_delays_a_task(self) -> None:
        build = GraphBuilder()
        build.kernel(0, "a", 100)
        build.kernel(0, "b", 1, residual_ns=-30)
        build.kernel(0, "c", 100)
        graph = build.build()
        assert step_ns(apply(graph, Remove(where="name:b")).graph) <= step_ns(graph)


class TestNoStragglers:
    def test_every_rank_takes_the_lower_median(self) -> None:
        build = GraphBuilder(ranks=(0, 1, 2, 3))
        for rank, dur_ns in enumerate((100, 400, 200, 300)):
            build.kernel(rank, "gemm", dur_ns)
        assert of_kind(apply(build.build(), NoStragglers()).graph, TaskKind.KERNEL) == [200] * 4

    def test_twins_are_paired_by_their_place_among_equals(self) -> None:
        build = GraphBuilder(ranks=(0, 1))
        for rank, durations in enumerate(((10, 80), (30, 50))):
            for dur_ns in durations:
                build.kernel(rank, "gemm", dur_ns)
        after = apply(build.build(), NoStragglers()).graph
        assert of_kind(after, TaskKind.KERNEL) == [10, 50, 10, 50]

    def test_other_steps_streams_and_names_are_no_twins(self) -> None:
        build = GraphBuilder(ranks=(0, 1))
        build.kernel(0, "gemm", 100, step=0)
        build.kernel(1, "gemm", 300, step=1)
        build.kernel(0, "add", 100, stream=8)
        build.kernel(1, "add", 300, stream=9)
        build.kernel(0, "one", 100)
        build.kernel(1, "two", 300)
        graph = build.build()
        applied = apply(graph, NoStragglers())
        assert applied.graph is graph
        assert applied.no_effect == "no task differs from its twins on the other ranks"

    def test_transfers_stay(self) -> None:
        graph = data_parallel(slow_rank=1)
        after = apply(graph, NoStragglers()).graph
        assert of_kind(after, TaskKind.TRANSFER) == [400_000, 400_000]
        assert step_ns(graph) - step_ns(after) == 1_000_000

    def test_one_rank_alone_has_no_peers(self) -> None:
        applied = apply(data_parallel(ranks=(0,)), NoStragglers())
        assert applied.no_effect == "one rank alone has no peers to compare with"
