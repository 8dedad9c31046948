"""Levers are ranked by what twice as fast would save, and what saves nothing says so."""

from itertools import pairwise

import pytest

from ingest.vocab import KernelClass
from replay.graph.arrays import TaskGraph
from tests.builders import GraphBuilder, baseline_of, data_parallel
from whatif.levers import HOST_LINK, LEAST_SAVING, NODE_LINK, LeverTable, Strength, lever_table
from whatif.scenario import Scenario
from whatif.study import study
from whatif.topology import find_topology
from whatif.transforms.scale import Scale


def table(graph: TaskGraph, scenario: Scenario | None = None) -> LeverTable:
    return lever_table(graph, baseline_of(graph), scenario or Scenario())


def test_a_run_of_one_gemm_gives_what_is_taken_off_it() -> None:
    build = GraphBuilder()
    build.kernel(0, "gemm", 1_000_000)
    found = table(build.build())
    assert [row.what for row in found.rows] == ["gemm kernels"]
    (row,) = found.rows
    savings = {strength: lever.saving_ns for strength, lever in row.moved.items()}
    assert savings == {
        Strength.TENTH: 1_000_000 - 909_100,
        Strength.TWICE: 500_000,
        Strength.LIMIT: 1_000_000,
    }


def test_levers_come_by_the_saving_of_twice_as_fast_and_none_below_noise() -> None:
    found = table(data_parallel(slow_rank=1))
    savings = [row.ranked_by.saving_ns for row in found.rows]
    assert savings == sorted(savings, reverse=True)
    assert min(savings) >= LEAST_SAVING * found.base.step_ns
    assert [row.what for row in found.rows][:2] == ["stragglers", "gemm kernels"]


@pytest.mark.parametrize("slow_rank", [None, 1])
def test_a_lever_moved_further_saves_no_less_and_the_range_holds_the_step(
    slow_rank: int | None,
) -> None:
    for row in table(data_parallel(slow_rank=slow_rank)).rows:
        for weaker, stronger in pairwise(row.moved.values()):
            assert weaker.saving_ns <= stronger.saving_ns
        for lever in row.moved.values():
            assert lever.low_ns <= lever.step_ns <= lever.high_ns
            assert lever.saving_low_ns <= lever.saving_ns <= lever.saving_high_ns


def test_each_lever_is_the_answer_to_its_own_flag() -> None:
    graph = data_parallel(slow_rank=1)
    (row,) = [row for row in table(graph).rows if row.what == "gemm kernels"]
    half = Scenario(transforms=(Scale(where="class:gemm", factor=0.5),))
    alone = study(graph, baseline_of(graph), half)
    lever = row.moved[Strength.TWICE]
    assert (lever.step_ns, lever.low_ns, lever.high_ns) == (
        alone.step_ns,
        alone.low_ns,
        alone.high_ns,
    )
    assert lever.flag_text == "--scale class:gemm=0.5"


def test_steps_that_differ_do_not_widen_the_saving() -> None:
    """Every step has a kernel of 2 ms, and more and more other work."""
    build = GraphBuilder()
    for step in range(3):
        build.kernel(0, "other", 5_000_000 * (step + 1), kernel_class=KernelClass.OTHER, step=step)
        build.kernel(0, "gemm", 2_000_000, step=step)
    (row,) = [row for row in table(build.build()).rows if row.what == "gemm kernels"]
    lever = row.moved[Strength.TWICE]
    assert lever.saving_low_ns == lever.saving_ns == lever.saving_high_ns == 1_000_000
    assert lever.high_ns - lever.low_ns == 5_000_000


def test_levers_after_a_scenario_count_from_its_step() -> None:
    graph = data_parallel()
    after = Scenario(transforms=(Scale(where="class:gemm", factor=0.0),))
    found = table(graph, after)
    assert found.base.step_ns == study(graph, baseline_of(graph), after).step_ns
    assert "gemm kernels" not in [row.what for row in found.rows]
    assert found.rows[0].what == "network"


def test_what_is_hidden_behind_other_work_is_below_noise_with_the_reason() -> None:
    build = GraphBuilder(ranks=(0, 1))
    callers = {rank: build.call(rank, "c", 10_000) for rank in (0, 1)}
    build.collective(100_000, callers=callers)
    for rank in (0, 1):
        build.kernel(rank, "gemm", 5_000_000, caller=callers[rank])
    found = table(build.build())
    assert [row.what for row in found.rows] == ["gemm kernels"]
    assert "hidden" in found.below_noise["network"]


def test_a_run_that_nothing_shortens_has_no_lever() -> None:
    build = GraphBuilder()
    build.kernel(0, "gemm", 1_000, residual_ns=1_000_000)
    found = table(build.build())
    assert found.rows == ()
    assert "gemm kernels" in found.below_noise


@pytest.mark.parametrize("on_host", [True, False])
def test_the_network_of_gloo_is_not_told_by_nodes_and_gpus(*, on_host: bool) -> None:
    builder = GraphBuilder(ranks=(0, 1), gpu=None)
    callers = {rank: builder.host(rank, "backward", 1_000_000) for rank in (0, 1)}
    builder.collective(4_000_000, callers=callers, on_host=on_host, size_bytes=4_000_000)
    graph = builder.build()
    made = table(graph)
    names = {row.what for row in made.rows} | set(made.below_noise)
    assert (HOST_LINK in names, NODE_LINK in names) == (on_host, not on_host)
    told = find_topology(graph, None).told
    assert ("gloo" in told, "GPUs" in told) == (on_host, not on_host)
