"""What a goal needs: the weakest value that meets it, by schedules known by hand."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import ScenarioError, UsageError
from ingest.units import Nanos
from replay.api import Goal
from replay.graph.arrays import TaskGraph
from tests.builders import GraphBuilder, baseline_of, data_parallel
from whatif.scenario import Scenario
from whatif.solve import CLOSE, Knob, Solution, solve
from whatif.transforms.network import NetworkScale
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.registry import Transform
from whatif.transforms.scale import Scale

MIB = 1 << 20


def knob(change: Callable[[float], Transform], **limits: float) -> Knob:
    whole = {"least": 1e-3, "most": 1e6, **limits}
    return Knob(name="knob", scenario=lambda value: Scenario(transforms=(change(value),)), **whole)


def gemm(**limits: float) -> Knob:
    span = {"least": 1e-4, "most": 1e4, "with_zero": True, **limits}
    return knob(lambda value: Scale(where="class:gemm", factor=value), **span)


def found(graph: TaskGraph, one: Knob, goal_ns: int) -> Solution:
    return solve(graph, baseline_of(graph), one, Nanos(goal_ns))


def network() -> Knob:
    return knob(lambda value: NetworkScale(factor=value))


def test_a_goal_halfway_into_the_transfer_needs_twice_the_network() -> None:
    graph = data_parallel()
    step_ns = baseline_of(graph).replayed.mean_ns
    solution = found(graph, network(), step_ns - 200_000)
    assert solution.needed is not None
    assert solution.needed.value == pytest.approx(2, rel=CLOSE - 1)
    assert solution.needed.outcome.step_ns <= step_ns - 200_000
    assert solution.at_best == solution.needed.value == solution.at_worst
    assert solution.detour is None


def test_what_no_value_gives_cannot_be_reached_and_the_bound_is_told() -> None:
    graph = data_parallel()
    step_ns = baseline_of(graph).replayed.mean_ns
    solution = found(graph, network(), step_ns - 400_001)
    assert solution.needed is None
    assert solution.bound.value == 1e6
    assert solution.bound.outcome.step_ns == step_ns - 400_000


def test_a_slower_goal_tells_how_slow_it_may_be() -> None:
    graph = data_parallel()
    step_ns = baseline_of(graph).replayed.mean_ns
    solution = found(graph, network(), step_ns + 400_000)
    assert solution.needed is not None
    assert solution.needed.value == pytest.approx(0.5, rel=CLOSE - 1)


def test_a_factor_on_time_is_the_stronger_the_smaller() -> None:
    graph = data_parallel()
    step_ns = baseline_of(graph).replayed.mean_ns
    solution = found(graph, gemm(), step_ns - 750_000)
    assert solution.needed is not None
    assert solution.needed.value == pytest.approx(0.25, rel=CLOSE - 1)
    assert solution.bound.value == 0


def test_a_goal_that_needs_everything_taken_away_needs_nearly_zero() -> None:
    build = GraphBuilder()
    build.kernel(0, "gemm", 1_000_000)
    graph = build.build()
    solution = found(graph, gemm(), 1)
    assert solution.needed is not None
    assert 0 < solution.needed.value < 2e-6
    nothing = found(graph, gemm(), 0)
    assert nothing.needed is not None
    assert nothing.needed.outcome.step_ns == 0


def test_the_range_of_the_answers_gives_a_range_of_values() -> None:
    graph = data_parallel(size_bytes=64 * MIB)
    one = knob(lambda value: Nvlink(rate=f"x{value:f}"))
    solution = found(graph, one, baseline_of(graph).replayed.mean_ns - 100_000)
    assert solution.needed is not None
    assert solution.at_best is not None
    assert solution.at_worst is None or solution.at_worst >= solution.needed.value
    assert solution.at_best <= solution.needed.value


def turning(values: dict[int, float], **limits: float) -> Knob:
    """Whole values, each with its factor on the transfers."""

    def at(value: float) -> Scenario:
        factor = values[round(value)]
        return Scenario(transforms=(Scale(where="class:collective", factor=factor),))

    span = {"least": 1, "most": len(values), **limits}
    return Knob(name="turning", is_whole=True, scenario=at, **span)


def test_a_weaker_value_that_meets_the_goal_too_is_told() -> None:
    graph = data_parallel()
    step_ns = baseline_of(graph).replayed.mean_ns
    one = turning({1: 3.0, 2: 1.0, 3: 2.0, 4: 1.0, 5: 0.5})
    solution = found(graph, one, step_ns)
    assert solution.needed is not None
    assert solution.also is not None
    assert (solution.needed.value, solution.also.value) == (4, 2)
    assert not solution.ends_the_search
    falling = found(graph, turning({1: 3.0, 2: 2.0, 3: 1.0, 4: 0.5}), step_ns)
    assert falling.also is None


def test_a_goal_that_the_weakest_value_meets_ends_the_search() -> None:
    graph = data_parallel()
    step_ns = baseline_of(graph).replayed.mean_ns
    solution = found(graph, turning({1: 3.0, 2: 1.0}), 10 * step_ns)
    assert solution.ends_the_search
    assert solution.needed is not None
    assert solution.needed.value == 1


@pytest.mark.parametrize("speedup", [0.0, 1e-300, -1.0, 1e300, float("inf"), float("nan")])
def test_absurd_goals_are_refused(speedup: float) -> None:
    with pytest.raises(UsageError, match="no speedup to be had"):
        Goal(speedup=speedup)


def test_a_step_of_more_than_a_day_is_refused() -> None:
    with pytest.raises(UsageError, match="more than a day"):
        Goal(step_ns=Nanos(10**15))


def test_values_that_do_not_fit_are_left_out_and_told() -> None:
    graph = data_parallel()
    step_ns = baseline_of(graph).replayed.mean_ns

    def only_even(value: float) -> Scenario:
        where = "class:collective" if value % 2 == 0 else "class:attention"
        return Scenario(transforms=(Scale(where=where, factor=1 / value),))

    one = Knob(name="even", least=1, most=64, is_whole=True, scenario=only_even)
    solution = found(graph, one, step_ns - 300_000)
    assert solution.needed is not None
    assert solution.needed.value == 4
    assert "class:attention" in solution.refused


def test_a_knob_of_which_no_value_fits_is_refused() -> None:
    one = knob(lambda value: Scale(where="class:attention", factor=value))
    with pytest.raises(ScenarioError, match="no value of knob fits"):
        found(data_parallel(), one, 1_000)


def test_an_answer_that_turns_back_says_where() -> None:
    """Two kernels in a row that take 1/v and sqrt(v) ms: shortest, 1.89 ms, at v = 2 ** (2 / 3)."""
    build = GraphBuilder()
    build.kernel(0, "a", 1_000_000)
    build.kernel(0, "b", 1_000_000)
    graph = build.build()

    def both(value: float) -> Scenario:
        return Scenario(
            transforms=(
                Scale(where="name:a", factor=1 / value),
                Scale(where="name:b", factor=value**0.5),
            )
        )

    one = Knob(name="both", least=1e-2, most=1e2, scenario=both)
    solution = found(graph, one, 1_900_000)
    assert solution.detour is not None
    before, after = solution.detour
    assert after.outcome.step_ns > before.outcome.step_ns
    assert solution.bound.outcome.step_ns == pytest.approx(1_000_000 * 1.8899, rel=2e-3)
    assert solution.needed == solution.bound
    assert found(graph, one, 1_880_000).needed is None


def test_a_knob_without_effect_does_not_move() -> None:
    graph = data_parallel()
    solution = found(graph, knob(lambda _: Scale(where="rank:1,name:gemm_a", factor=1)), 1)
    assert not solution.moves
    assert solution.needed is None


@settings(max_examples=15, deadline=None)
@given(share=st.floats(0.05, 0.95))
def test_the_value_meets_the_goal_and_a_bit_less_does_not(share: float) -> None:
    graph = data_parallel()
    goal_ns = baseline_of(graph).replayed.mean_ns - round(400_000 * share)
    solution = found(graph, network(), goal_ns)
    assert solution.needed is not None
    assert solution.needed.outcome.step_ns <= goal_ns
    weaker = Scenario(transforms=(NetworkScale(factor=solution.needed.value / CLOSE**2),))
    one = Knob(name="weaker", least=1, most=1.0001, scenario=lambda _: weaker)
    assert found(graph, one, goal_ns).needed is None
