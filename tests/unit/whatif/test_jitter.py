"""The spread of the step over replays with drawn durations, on runs whose variation is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import UsageError
from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from replay.results.metrics import step_times
from tests.builders import GraphBuilder, baseline_of
from whatif.jitter import Spread, spread
from whatif.scenario import Scenario
from whatif.study import study
from whatif.transforms.jitter import Jitter

US = 1_000


def steps_of(*host_us: int, kernel_us: int = 10, ranks: tuple[int, ...] = (0,)) -> TaskGraph:
    """Steps of some host work, a launch and a kernel; the host waits for nothing."""
    build = GraphBuilder(ranks=ranks)
    for step, dur_us in enumerate(host_us):
        for rank in ranks:
            build.host(rank, "python", (dur_us + 100 * rank) * US, step=step)
            call = build.call(rank, "cudaLaunchKernel", 1 * US, step=step)
            build.kernel(rank, "k", kernel_us * US, caller=call, step=step)
    return build.build()


def spread_of(graph: TaskGraph, samples: int = 200, scale: float = 1, **more: bool) -> Spread:
    found = spread(graph, Jitter(samples=samples, scale=scale), **more)
    assert found is not None
    return found


def drawn_us(step_ns: np.ndarray) -> set[float]:
    """The different steps that were drawn."""
    return set((step_ns / US).round().ravel().tolist())


def test_a_run_without_variation_does_not_spread() -> None:
    graph = steps_of(100, 100, 100, 100)
    found = spread_of(graph)
    assert found.step_ns.shape == (200, 4)
    assert (found.step_ns == step_times(graph, replay(graph)).per_step_ns).all()


def test_steps_are_drawn_from_those_recorded() -> None:
    found = spread_of(steps_of(100, 200, 300, 1_000), samples=2_000)
    # Later steps are as long as the host work and the call.
    drawn, count = np.unique(found.step_ns[:, 1:], return_counts=True)
    assert set((drawn / US).round().tolist()) <= {101, 201, 301, 1_001}
    assert (count / count.sum()) == pytest.approx([0.25] * 4, abs=0.03)
    assert found.p50_ns == pytest.approx(201 * US, rel=0.5)
    assert found.p95_ns == pytest.approx(1_001 * US, rel=0.02)


def test_equal_questions_have_equal_answers() -> None:
    graph = steps_of(100, 200, 300)
    assert (spread_of(graph).step_ns == spread_of(graph).step_ns).all()


def test_twice_the_variation_lies_twice_as_far_from_the_median() -> None:
    found = spread_of(steps_of(100, 200, 300, kernel_us=0), scale=2)
    drawn = drawn_us(found.step_ns[:, 1:])
    assert drawn == {1, 201, 401}


@pytest.mark.parametrize("host_us", [(100,), (100, 400), (100, 200, 400)])
def test_no_variation_asked_is_the_prediction(host_us: tuple[int, ...]) -> None:
    graph = steps_of(*host_us, ranks=(0, 1, 2))
    found = spread_of(graph, scale=0)
    assert (found.step_ns == step_times(graph, replay(graph)).per_step_ns).all()


def test_less_than_measured_lies_between_the_prediction_and_a_draw() -> None:
    found = spread_of(steps_of(100, 200, 300, kernel_us=0), scale=0.5)
    assert drawn_us(found.step_ns[:, 1:2]) == {151, 201, 251}


def test_of_two_steps_a_rank_that_is_always_slow_stays_slow() -> None:
    graph = steps_of(100, 100, ranks=(0, 1, 2))
    found = spread_of(graph)
    assert (found.step_ns == step_times(graph, replay(graph)).per_step_ns).all()
    assert "around its own mean" in found.drawn


def test_two_steps_vary_by_root_two_of_how_far_they_lie_from_their_mean() -> None:
    found = spread_of(steps_of(400, 600, kernel_us=0, ranks=(0, 5)))
    drawn = found.step_ns[:, 1:] / US
    apart = 100 * 2**0.5
    # The later of two ranks that lie 500 us apart is always the second.
    assert set(drawn.ravel().round().tolist()) <= {
        round(1_001 + more * apart) for more in (-1, 0, 1)
    }
    assert found.p50_ns == pytest.approx(1_001 * US, rel=0.15)


def test_with_few_steps_ranks_of_one_role_stand_for_them() -> None:
    found = spread_of(steps_of(100, ranks=(0, 1, 2)))
    # The slowest of three ranks, each drawn from 100, 200 and 300.
    assert drawn_us(found.step_ns) == {111, 211, 311}
    assert "as too few steps were recorded" in found.drawn
    assert found.ranks_as_chance
    assert not spread_of(steps_of(100, 100, ranks=(0, 1))).ranks_as_chance


def test_one_rank_with_few_steps_shows_nothing() -> None:
    graph = steps_of(100, 200)
    assert spread(graph, Jitter(samples=10)) is None
    asked = study(graph, baseline_of(graph), Scenario(transforms=(Jitter(samples=10),)))
    assert asked.jitter is None
    assert asked.no_effect == (
        "--jitter 10: one rank and fewer than three steps show no variation",
    )


def test_a_step_can_be_made_of_the_others_alone() -> None:
    found = spread_of(steps_of(100, 100, 100, 900), own=False)
    assert (found.step_ns[:, 3] / US).round().max() < 900
    assert (found.step_ns[:, 1] / US).round().max() > 900


def test_the_network_varies_as_one() -> None:
    build = GraphBuilder(ranks=(0, 1))
    for step, transfer_us in enumerate((100, 400, 700)):
        calls = {rank: build.call(rank, "launch", US, step=step) for rank in (0, 1)}
        build.collective(transfer_us * US, callers=calls, step=step)
    found = spread_of(build.build())
    # Were ranks drawn apart, the longer of two would show 700 in five of nine cases.
    share = (found.step_ns[:, 1:] >= 699 * US).mean()
    assert share == pytest.approx(1 / 3, abs=0.08)


def test_it_stacks_on_what_ifs_and_moves_no_prediction() -> None:
    graph = steps_of(100, 200, 300)
    asked = study(graph, baseline_of(graph), Scenario(transforms=(Jitter(samples=50),)))
    assert asked.step_ns == asked.replayed_ns
    assert asked.jitter is not None
    assert asked.no_effect == ()


@settings(deadline=None)
@given(st.lists(st.integers(1, 1_000), min_size=3, max_size=6))
def test_the_spread_lies_within_the_recorded_extremes(host_us: list[int]) -> None:
    graph = steps_of(*host_us, kernel_us=0)
    found = spread_of(graph, samples=20)
    assert found.step_ns.min() >= min(host_us) * US
    assert found.step_ns.max() <= (max(host_us) + 1) * US


@pytest.mark.parametrize(
    ("samples", "scale"), [(0, 1), (10**9, 1), (10, -1), (10, 100.5), (10, float("nan"))]
)
def test_what_cannot_be_drawn_is_refused(samples: int, scale: float) -> None:
    with pytest.raises(UsageError):
        Jitter(samples=samples, scale=scale)
