"""What-ifs of the runtime, on schedules known by hand; times in us."""

from dataclasses import replace
from fnmatch import fnmatch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import ScenarioError, UsageError
from ingest.vocab import EdgeKind, KernelClass, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import NONE, TaskGraph
from tests.builders import GraphBuilder, data_parallel
from whatif.models.bound import Bound
from whatif.models.graph_launch import launch_cost
from whatif.transforms.base import Applied, Context
from whatif.transforms.cuda_graphs import CudaGraphs
from whatif.transforms.devices import computing, device_of_lane
from whatif.transforms.host_scale import HostScale
from whatif.transforms.no_overlap import NoOverlap
from whatif.transforms.perfect_overlap import PerfectOverlap
from whatif.transforms.registry import Transform
from whatif.transforms.remove import Remove
from whatif.transforms.stragglers import NoStragglers

US = 1_000


def apply(graph: TaskGraph, change: Transform, bound: Bound = Bound.NOMINAL) -> Applied:
    return change.apply(graph, Context(bound=bound))


def end_us(graph: TaskGraph) -> float:
    """When everything has ended."""
    return float(replay(graph).end_ns.max() / US)


def after(graph: TaskGraph, change: Transform, bound: Bound = Bound.NOMINAL) -> float:
    return end_us(apply(graph, change, bound).graph)


def overlapping(
    *, rounds: int = 1, gemm_us: int = 300, transfer_us: int = 400, stream: int = 20
) -> TaskGraph:
    """Two ranks whose transfers overlap.

    Each round: a GEMM of 100 us, a transfer of its result beside another GEMM, and a kernel of
    50 us that needs both.
    """
    build = GraphBuilder(ranks=(0, 1))
    for _ in range(rounds):
        first, callers, later = {}, {}, {}
        for rank in (0, 1):
            first[rank] = build.kernel(rank, "gemm", 100 * US, caller=build.call(rank, "c", US))
            callers[rank] = build.call(rank, "c", US)
            later[rank] = build.call(rank, "c", US)
        transfers = build.collective(transfer_us * US, callers=callers, after=first, stream=stream)
        for rank in (0, 1):
            build.kernel(rank, "gemm", gemm_us * US, caller=later[rank], stream=7)
            rest = build.kernel(rank, "rest", 50 * US)
            build.edge(transfers[rank], rest)
    return build.build()


class TestHostScale:
    def test_a_host_twice_as_fast_takes_half_its_time(self) -> None:
        build = GraphBuilder()
        build.host(0, "python", 100 * US)
        build.kernel(0, "gemm", 30 * US, caller=build.call(0, "launch", 10 * US))
        graph = build.build()
        assert end_us(graph) == 140
        assert after(graph, HostScale(factor=2)) == 85
        assert after(graph, HostScale(factor=0.5)) == 250

    def test_one_changes_nothing(self) -> None:
        assert apply(data_parallel(), HostScale(factor=1)).no_effect == "the factor is 1"

    def test_silence_scales_in_a_part_of_the_range_only(self) -> None:
        build = GraphBuilder()
        build.host(0, "python", 100 * US)
        graph = build.build()
        silent = np.full(1, 40 * US)
        graph = replace(graph, tasks=replace(graph.tasks, unexplained_ns=silent))
        assert after(graph, HostScale(factor=2)) == 50
        assert after(graph, HostScale(factor=2), Bound.HIGH) == 70
        assert after(graph, HostScale(factor=0.5), Bound.LOW) == 160

    @settings(deadline=None)
    @given(st.floats(0.01, 100), st.floats(1, 10))
    def test_faster_is_never_longer(self, factor: float, more: float) -> None:
        graph = overlapping()
        assert after(graph, HostScale(factor=factor * more / 10)) >= after(
            graph, HostScale(factor=factor * more)
        )

    @pytest.mark.parametrize("factor", [0, -1, float("nan"), float("inf"), 1e-9])
    def test_what_is_no_speed_is_refused(self, factor: float) -> None:
        with pytest.raises(UsageError):
            HostScale(factor=factor)


class TestNoOverlap:
    def test_they_take_turns_as_they_began(self) -> None:
        graph = overlapping()
        # gemm 1..101, transfer ..501 beside gemm ..401, rest ..551
        assert end_us(graph) == 551
        assert after(graph, NoOverlap()) == 1 + 100 + 400 + 300 + 50

    def test_the_order_is_that_of_the_transfers_not_of_arrivals(self) -> None:
        # Rank 1 is late: rank 0's member waits for it, and its second GEMM runs meanwhile.
        build = GraphBuilder(ranks=(0, 1))
        callers = {rank: build.call(rank, "c", US) for rank in (0, 1)}
        late = build.kernel(1, "gemm", 500 * US, caller=callers[1])
        build.kernel(0, "gemm", 100 * US, caller=callers[0])
        build.collective(200 * US, callers=callers, after={0: callers[0], 1: late})
        graph = build.build()
        assert after(graph, NoOverlap()) == end_us(graph) == 701

    def test_the_others_wait_for_a_rank_that_computes_first(self) -> None:
        # Rank 0's GEMM began before the transfer and now ends before it: rank 1 waits as well.
        build = GraphBuilder(ranks=(0, 1))
        callers = {rank: build.call(rank, "c", US) for rank in (0, 1)}
        build.kernel(0, "gemm", 900 * US, caller=callers[0])
        late = build.kernel(1, "gemm", 500 * US, caller=callers[1])
        transfers = build.collective(200 * US, callers=callers, after={0: callers[0], 1: late})
        changed = apply(build.build(), NoOverlap()).graph
        assert replay(changed).start_ns[list(transfers)].tolist() == [901 * US, 901 * US]

    def test_nothing_to_separate_is_said(self) -> None:
        build = GraphBuilder()
        build.kernel(0, "gemm", US, caller=build.call(0, "c", US))
        assert apply(build.build(), NoOverlap()).no_effect is not None

    @settings(deadline=None)
    @given(st.integers(1, 4), st.integers(1, 900), st.integers(1, 900), st.sampled_from([20, 21]))
    def test_nothing_runs_beside_a_transfer(
        self, rounds: int, gemm_us: int, transfer_us: int, stream: int
    ) -> None:
        graph = overlapping(rounds=rounds, gemm_us=gemm_us, transfer_us=transfer_us, stream=stream)
        changed = apply(graph, NoOverlap()).graph
        schedule = replay(changed)
        devices = device_of_lane(changed)
        transfers = np.flatnonzero(changed.tasks.kind == TaskKind.TRANSFER)
        kernels = computing(changed, devices)
        beside = (
            devices[changed.tasks.lane[transfers]][:, None] == devices[changed.tasks.lane[kernels]]
        )
        lo = np.maximum(schedule.start_ns[transfers][:, None], schedule.start_ns[kernels])
        hi = np.minimum(schedule.end_ns[transfers][:, None], schedule.end_ns[kernels])
        assert (hi <= lo)[beside].all()
        assert end_us(changed) >= end_us(graph)


class TestPerfectOverlap:
    def test_compute_does_not_wait(self) -> None:
        # gemm, gemm, rest: 1 + 450; the transfer ends at 501
        assert after(overlapping(), PerfectOverlap()) == 501
        assert after(overlapping(transfer_us=100), PerfectOverlap()) == 451

    def test_transfers_still_follow_each_other(self) -> None:
        graph = overlapping(rounds=3, gemm_us=1, transfer_us=1_000)
        assert after(graph, PerfectOverlap()) >= 3_000

    def test_a_stream_that_carries_both_is_taken_apart(self) -> None:
        graph = overlapping(rounds=2, stream=7)
        assert end_us(graph) > 1_600
        # The second round's first GEMM ends at 551, and its transfer 400 later.
        assert after(graph, PerfectOverlap()) == 951
        # Long transfers follow one another, the first from 101 on.
        assert after(overlapping(rounds=2, stream=7, transfer_us=2_000), PerfectOverlap()) == 4_101

    def test_hosts_wait_for_their_own_transfers_when_the_step_ends(self) -> None:
        # Two transfers of 300, each waited for at once; the thread works 100, 100 and 50 after it.
        build = GraphBuilder(ranks=(0, 1))
        for _ in range(2):
            callers = {rank: build.host(rank, "forward", 100 * US) for rank in (0, 1)}
            sent = build.collective(300 * US, callers=callers, on_host=True)
            for rank in (0, 1):
                wait = build.host(rank, "", 0, kind=TaskKind.HOST_WAIT)
                build.edge(sent[rank], wait, 1 * US, kind=EdgeKind.HOST_SYNC)
        for rank in (0, 1):
            build.host(rank, "optimizer", 50 * US)
        graph = build.build()
        assert end_us(graph) == 2 * 401 + 50
        # The second begins when the first has left the link.
        assert after(graph, PerfectOverlap()) == 100 + 2 * 300 + 1 + 50

    def test_a_run_without_transfers_says_so(self) -> None:
        build = GraphBuilder()
        build.kernel(0, "gemm", US, caller=build.call(0, "c", US))
        assert apply(build.build(), PerfectOverlap()).no_effect is not None

    @settings(deadline=None)
    @given(st.integers(1, 4), st.integers(1, 900), st.integers(1, 900))
    def test_never_below_either_chain(self, rounds: int, gemm_us: int, transfer_us: int) -> None:
        graph = overlapping(rounds=rounds, gemm_us=gemm_us, transfer_us=transfer_us)
        found = after(graph, PerfectOverlap())
        assert max(rounds * (150 + gemm_us), rounds * transfer_us) <= found <= end_us(graph)


def host_bound(*, between: str | None = None, pageable: bool = False) -> GraphBuilder:
    """Six rounds of 50 us of Python, a launch of 10 us and a kernel of 5 us.

    With `between`, a call of that name waits for the third kernel.
    """
    build = GraphBuilder()
    build.host(0, "load", 100 * US)
    for number in range(6):
        if number:
            build.host(0, "python", 50 * US)
        launch = build.call(0, "cudaLaunchKernel", 10 * US)
        kernel = build.kernel(0, "k", 5 * US, caller=launch)
        if number == 2 and between is not None:
            wait = build.host(0, "", 0, kind=TaskKind.HOST_WAIT)
            build.edge(kernel, wait, 5 * US, kind=EdgeKind.HOST_SYNC)
            call = build.call(0, between, 1 * US)
            if pageable:
                name = "Memcpy HtoD (Pageable -> Device)"
                build.kernel(0, name, 1 * US, caller=call, kind=TaskKind.MEMCPY)
    return build


class TestCudaGraphs:
    def test_one_launch_takes_the_place_of_all(self) -> None:
        graph = host_bound().build()
        assert end_us(graph) == 100 + 6 * 10 + 5 * 50 + 5
        applied = apply(graph, CudaGraphs())
        cost_us = 10 + 6 * 0.2
        assert end_us(applied.graph) == pytest.approx(100 + cost_us + 6 * 5)
        assert applied.assumptions[0] == (
            "1 graph launch per rank and step for 6 launches; the largest, of 6 nodes, takes "
            "11 us of its host thread, by NVIDIA's figures for repeated launches"
        )

    def test_the_work_before_the_first_launch_stays(self) -> None:
        changed = apply(host_bound().build(), CudaGraphs()).graph
        assert changed.tasks.dur_ns[0] == 100 * US

    def test_a_wait_cuts_the_graph_in_two_and_is_named(self) -> None:
        applied = apply(host_bound(between="cudaStreamSynchronize").build(), CudaGraphs())
        cost_us = 10 + 3 * 0.2
        # Three kernels, the wait's return and its own cost, Python, and the second graph.
        first = 100 + cost_us + 15 + 5 + 1 + 50
        assert end_us(applied.graph) == pytest.approx(first + cost_us + 15)
        assert any("cudaStreamSynchronize (1)" in text for text in applied.assumptions)

    @pytest.mark.parametrize("name", ["cudaMalloc", "cudaFree", "cudaMemcpy"])
    def test_what_a_graph_cannot_hold_stays(self, name: str) -> None:
        applied = apply(host_bound(between=name).build(), CudaGraphs())
        assert any(f"{name} (1)" in text for text in applied.assumptions)

    def test_a_copy_of_pageable_memory_stays(self) -> None:
        build = host_bound(between="cudaMemcpyAsync", pageable=True)
        applied = apply(build.build(), CudaGraphs())
        assert any("copies of pageable memory (1)" in text for text in applied.assumptions)

    def test_never_below_the_device_work(self) -> None:
        graph = overlapping(rounds=3)
        alone = apply(graph, HostScale(factor=1_000)).graph
        assert after(graph, CudaGraphs()) >= end_us(alone) - 1

    def test_a_full_queue_holds_no_graph(self) -> None:
        build = host_bound()
        graph = build.build()
        before = int(np.flatnonzero(graph.tasks.kind == TaskKind.KERNEL)[0])
        wait = build.host(0, "", 0, kind=TaskKind.HOST_WAIT)
        build.edge(before, wait, 700 * US, kind=EdgeKind.QUEUE_FULL, from_start=True)
        launch = build.call(0, "cudaLaunchKernel", 10 * US)
        build.kernel(0, "k", 5 * US, caller=launch)
        graph = build.build()
        assert end_us(graph) > 800
        assert after(graph, CudaGraphs()) == pytest.approx(100 + 10 + 7 * 0.2 + 7 * 5)

    def test_the_odd_delay_of_a_launch_goes_with_it(self) -> None:
        build = host_bound()
        build.rows[2] = replace(build.rows[2], residual_ns=30 * US)
        assert build.rows[2].kind == TaskKind.KERNEL
        assert after(build.build(), CudaGraphs()) == pytest.approx(100 + 10 + 6 * 0.2 + 30)

    def test_graphs_already_say_so(self) -> None:
        build = GraphBuilder()
        call = build.call(0, "cudaGraphLaunch", 50 * US)
        for _ in range(3):
            build.kernel(0, "k", 5 * US, caller=call)
        assert apply(build.build(), CudaGraphs()).no_effect == (
            "all device work is launched by graphs already"
        )

    def test_a_launch_between_two_waits_is_no_graph(self) -> None:
        build = GraphBuilder()
        for _ in range(3):
            build.kernel(0, "k", 5 * US, caller=build.call(0, "cudaLaunchKernel", 10 * US))
            build.call(0, "cudaDeviceSynchronize", US)
        reason = apply(build.build(), CudaGraphs()).no_effect
        assert reason is not None
        assert "cudaDeviceSynchronize (3)" in reason

    def test_the_cost_is_that_of_the_run_where_it_has_graphs(self) -> None:
        nodes = np.array([100, 1_000])
        recorded = np.array([60_000, 420_000])  # twice the figures of the source
        cost = launch_cost(recorded, nodes, Bound.NOMINAL)
        assert cost.ns(np.array([500])).tolist() == [2 * (10_000 + 500 * 200)]
        assert launch_cost(recorded[:0], nodes[:0], Bound.LOW).ns(nodes).tolist() == [2_600, 3_500]


class TestRemoveSync:
    def test_the_wait_goes_and_so_does_the_call(self) -> None:
        graph = host_bound(between="cudaStreamSynchronize").build()
        assert end_us(graph) == 415 + 10 + 1
        assert after(graph, Remove(where="sync:*")) == 415
        assert after(graph, Remove(where="sync:cudaStream*")) == 415

    def test_other_work_of_a_blocking_call_stays(self) -> None:
        graph = host_bound(between="cudaFree").build()
        assert after(graph, Remove(where="sync:cudaFree")) == 416

    def test_a_wait_without_a_call_has_a_name(self) -> None:
        graph = host_bound(between="older profilers leave it out").build()
        graph = replace(graph, tasks=replace(graph.tasks, kind=_as_work(graph, "older *")))
        assert after(graph, Remove(where="sync:implied*")) == end_us(graph) - 10

    def test_the_name_alone_leaves_the_wait(self) -> None:
        graph = host_bound(between="cudaStreamSynchronize").build()
        assert after(graph, Remove(where="name:cudaStreamSynchronize")) == 425

    def test_a_run_that_never_blocks_is_told(self) -> None:
        with pytest.raises(ScenarioError) as caught:
            apply(host_bound().build(), Remove(where="sync:*"))
        assert caught.value.hint == "no call waits for the device in this trace"


def _as_work(graph: TaskGraph, name: str) -> np.ndarray:
    """Kinds with the calls of a name turned into work."""
    index = next(at for at, known in enumerate(graph.names) if fnmatch(known, name))
    named = graph.tasks.name == index
    return np.where(named, TaskKind.HOST_WORK, graph.tasks.kind).astype(np.int8)


class TestTwins:
    def test_work_is_known_by_the_call_that_it_leads_to(self) -> None:
        # The longest op of rank 0's first stretch has another name than that of the others, so
        # names alone would compare its second stretch with their first.
        build = GraphBuilder(ranks=(0, 1, 2))
        for rank in (0, 1, 2):
            build.host(rank, "load" if rank == 0 else "step", 900 * US)
            build.kernel(rank, "k", US, caller=build.call(rank, "cudaLaunchKernel", US))
            build.host(rank, "step", (20 + rank) * US)
            build.kernel(rank, "k", US, caller=build.call(rank, "cudaLaunchKernel", US))
        graph = build.build()
        changed = apply(graph, NoStragglers()).graph
        work = changed.tasks.kind == TaskKind.HOST_WORK
        assert (changed.tasks.dur_ns[work] / US).tolist() == [900, 21] * 3

    def test_a_rank_without_a_call_keeps_its_place_behind_it(self) -> None:
        build = GraphBuilder(ranks=(0, 1))
        for rank in (0, 1):
            build.host(rank, "a", (10 + rank) * US)
            build.call(rank, "cudaEventRecord", US)
            if rank:
                build.call(rank, "cudaMalloc", 50 * US)
            build.host(rank, "b", (30 + rank) * US)
            build.kernel(rank, "k", US, caller=build.call(rank, "cudaLaunchKernel", US))
        changed = apply(build.build(), NoStragglers()).graph
        work = changed.tasks.kind == TaskKind.HOST_WORK
        assert (changed.tasks.dur_ns[work] / US).tolist() == [10, 30, 10, 30]


def test_kernels_of_collectives_without_members_are_no_compute() -> None:
    build = GraphBuilder()
    call = build.call(0, "c", US)
    build.kernel(0, "gemm", US, caller=call)
    build.kernel(0, "nccl", US, caller=call, kernel_class=KernelClass.COLLECTIVE)
    graph = build.build()
    assert graph.tasks.caller[0] == NONE
    assert computing(graph, device_of_lane(graph)).tolist() == [1]
