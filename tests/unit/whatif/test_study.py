"""A study compares with the replayed baseline, gives a range, and says why nothing changed."""

import numpy as np
import pytest

from ingest.vocab import EdgeKind
from replay.graph.arrays import TaskGraph
from replay.results.metrics import breakdown
from tests.builders import GraphBuilder, baseline_of, data_parallel
from whatif.levers import levers
from whatif.scenario import Scenario
from whatif.study import Study, study
from whatif.transforms.network import NetworkScale
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.registry import Transform
from whatif.transforms.remove import Remove
from whatif.transforms.scale import Scale
from whatif.transforms.stragglers import NoStragglers

MIB = 1 << 20


def ask(graph: TaskGraph, *transforms: Transform) -> Study:
    return study(graph, baseline_of(graph), Scenario(name="test", transforms=transforms))


def lone_rank() -> TaskGraph:
    build = GraphBuilder()
    build.collective(
        400_000, callers={0: build.call(0, "c", 10_000)}, group=(0, 1), outside_ns=300_000
    )
    return build.build()


def hidden_transfer() -> TaskGraph:
    build = GraphBuilder(ranks=(0, 1))
    callers = {rank: build.call(rank, "c", 10_000) for rank in (0, 1)}
    build.collective(100_000, callers=callers)
    for rank in (0, 1):
        build.kernel(rank, "gemm", 5_000_000, caller=callers[rank])
    return build.build()


def test_the_empty_scenario_gives_the_identical_schedule() -> None:
    graph = data_parallel(slow_rank=1)
    baseline = baseline_of(graph)
    answer = study(graph, baseline, Scenario())
    assert np.array_equal(answer.schedule.start_ns, baseline.schedule.start_ns)
    assert np.array_equal(answer.schedule.blocked_by, baseline.schedule.blocked_by)
    assert answer.graph is graph
    assert answer.step_ns == answer.replayed_ns == answer.low_ns == answer.high_ns
    assert answer.speedup == 1.0
    assert answer.predicted == breakdown(graph, baseline.schedule)


def test_a_twice_as_fast_network_halves_the_exposed_transfer() -> None:
    graph = data_parallel()
    answer = ask(graph, NetworkScale(factor=2))
    before = breakdown(graph, baseline_of(graph).schedule)
    assert answer.replayed_ns - answer.step_ns == 200_000
    assert before.exposed_comm_ns - answer.predicted.exposed_comm_ns == 200_000
    assert answer.labels == ("network x2",)
    assert answer.no_effect == ()
    assert answer.speedup == pytest.approx(answer.replayed_ns / answer.step_ns)


def test_ranks_are_predicted_by_their_own_boundaries() -> None:
    answer = ask(data_parallel(slow_rank=1), Remove(where="class:collective"))
    fast, slow = answer.rank_ns
    assert slow - fast == 1_000_000


def test_transforms_stack_in_the_order_given() -> None:
    answer = ask(data_parallel(), NetworkScale(factor=2), Scale(where="class:collective", factor=3))
    assert answer.step_ns - answer.replayed_ns == 200_000
    assert answer.labels == ("network x2", "class:collective x3")


def test_the_range_holds_the_prediction_and_both_bounds_of_the_model() -> None:
    answer = ask(data_parallel(size_bytes=MIB), Nvlink(rate="1800GBps"))
    assert answer.low_ns < answer.step_ns < answer.high_ns < answer.replayed_ns
    assert any("NCCL" in text for text in answer.assumptions)


def test_unexplained_delays_widen_the_range() -> None:
    build = GraphBuilder()
    build.kernel(0, "gemm", 1_000)
    build.kernel(0, "add", 1_000, residual_ns=500)
    answer = ask(build.build(), Scale(where="name:gemm", factor=0.0))
    assert answer.step_ns == 1_500
    assert answer.low_ns == round(1_000 * 2_500 / 2_000)
    assert answer.high_ns == 1_500


def test_the_range_holds_the_answer_without_the_edges_of_a_full_device() -> None:
    build = GraphBuilder()
    fills = build.kernel(0, "fills", 1_000)
    late = build.kernel(0, "late", 100, stream=13)
    build.edge(fills, late, -30, kind=EdgeKind.SM_FULL)
    answer = ask(build.build(), Scale(where="name:fills", factor=2.0))
    assert answer.replayed_ns == 970 + 100
    assert (answer.step_ns, answer.high_ns) == (1_970 + 100, 1_970 + 100)
    assert answer.low_ns == 2_000


def test_steps_that_differ_widen_the_range() -> None:
    build = GraphBuilder()
    for step, dur_ns in enumerate((1_000, 2_000)):
        build.kernel(0, "gemm", dur_ns, step=step)
    answer = ask(build.build(), Scale(where="name:gemm", factor=2.0))
    assert (answer.low_ns, answer.step_ns, answer.high_ns) == (2_000, 3_000, 4_000)


def test_a_lone_ranks_wait_may_have_been_transfer() -> None:
    answer = ask(lone_rank(), NetworkScale(factor=2))
    assert answer.replayed_ns - answer.step_ns == 200_000
    assert answer.replayed_ns - answer.low_ns == 350_000


@pytest.mark.parametrize(
    ("graph", "transform", "reason"),
    [
        (
            data_parallel(),
            Nvlink(rate="900GBps"),
            "--nvlink 900GBps: NVIDIA H100 80GB HBM3 already has 900 GB/s",
        ),
        (
            hidden_transfer(),
            NetworkScale(factor=2),
            "all transfers are hidden behind other work: no collective is on the critical path",
        ),
        (
            hidden_transfer(),
            Scale(where="rank:0,class:host", factor=0.5),
            "another chain of work takes as long",
        ),
        (
            data_parallel(ranks=(0,)),
            NoStragglers(),
            "--no-stragglers: one rank alone has no peers to compare with",
        ),
    ],
)
def test_a_change_without_effect_says_why(
    graph: TaskGraph, transform: Transform, reason: str
) -> None:
    answer = ask(graph, transform)
    assert answer.no_effect == (reason,)
    assert answer.step_ns == answer.replayed_ns


def test_nothing_left_of_a_step_has_no_speedup() -> None:
    build = GraphBuilder()
    build.kernel(0, "gemm", 1_000)
    answer = ask(build.build(), Remove(where="name:gemm"))
    assert answer.step_ns == 0
    assert answer.speedup is None


def test_levers_name_the_three_biggest_savings_first() -> None:
    graph = data_parallel(slow_rank=1)
    found = levers(graph, baseline_of(graph))
    assert [lever.flag_text for lever in found] == [
        "--no-stragglers",
        "--scale class:gemm=0.5",
        "--scale class:collective=0",
    ]
    assert [lever.saving_ns for lever in found] == [1_000_000, 1_000_000, 400_000]
    replayed_ns = baseline_of(graph).replayed.mean_ns
    assert all(lever.step_ns == replayed_ns - lever.saving_ns for lever in found)


def test_savings_below_half_a_percent_are_not_told() -> None:
    graph = hidden_transfer()
    assert [lever.flag_text for lever in levers(graph, baseline_of(graph))] == [
        "--scale class:gemm=0.5"
    ]


def test_a_study_leaves_the_graph_as_it_was() -> None:
    graph = data_parallel(slow_rank=1, size_bytes=MIB)
    dur_ns = graph.tasks.dur_ns.copy()
    ask(graph, NoStragglers(), Nvlink(rate="x2"), Remove(where="class:host"))
    assert np.array_equal(graph.tasks.dur_ns, dur_ns)
