"""Many scenarios at once give what each gives by itself."""

import pytest

from ingest.errors import ScenarioError
from replay.graph.arrays import TaskGraph
from tests.builders import GraphBuilder, baseline_of, data_parallel
from whatif.many import Answer, Outcome, Ranges, outcomes
from whatif.recorded import Recorded
from whatif.scenario import Scenario
from whatif.study import readings_of, study
from whatif.transforms.network import NetworkScale
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.remove import Remove
from whatif.transforms.scale import Scale
from whatif.transforms.stragglers import NoStragglers

MIB = 1 << 20
STACKS = (
    (),
    (NetworkScale(factor=2),),
    (Nvlink(rate="x2"), Scale(where="class:gemm", factor=0.5)),
    (Remove(where="class:collective"),),
    (NoStragglers(),),
    (Scale(where="class:gemm", factor=1),),
)
SCENARIOS = [
    *(Scenario(transforms=stack) for stack in STACKS),
    *(
        Scenario(base=Recorded(nvlink=rate), transforms=(Nvlink(rate="900GBps"),))
        for rate in ("300GBps", "600GBps")
    ),
]


def lone_rank() -> TaskGraph:
    """Its collective waits for a rank that has no file."""
    build = GraphBuilder()
    gemm = build.kernel(0, "gemm", 1_000_000, residual_ns=700)
    build.collective(
        400_000,
        callers={0: build.call(0, "c", 10_000)},
        after={0: gemm},
        group=(0, 1),
        outside_ns=300_000,
        size_bytes=MIB,
    )
    return build.build()


def ask(graph: TaskGraph, scenarios: list[Scenario], **how: object) -> list[Answer]:
    baseline = baseline_of(graph)
    return outcomes(readings_of(graph), baseline, scenarios, **how)


@pytest.mark.parametrize("graph", [data_parallel(slow_rank=1, size_bytes=MIB), lone_rank()])
def test_each_outcome_is_that_of_its_own_study(graph: TaskGraph) -> None:
    baseline = baseline_of(graph)
    for scenario, found in zip(
        SCENARIOS, outcomes(readings_of(graph), baseline, SCENARIOS * 4), strict=False
    ):
        alone = study(graph, baseline, scenario)
        assert isinstance(found, Outcome)
        for name in ("step_ns", "low_ns", "high_ns", "labels", "assumptions", "no_effect"):
            assert getattr(found, name) == getattr(alone, name)


def test_without_full_ranges_only_the_steps_differ() -> None:
    build = GraphBuilder()
    for step, dur_ns in enumerate((1_000, 2_000)):
        build.kernel(0, "gemm", dur_ns, step=step, residual_ns=100)
    graph = build.build()
    scenario = Scenario(transforms=(Scale(where="name:gemm", factor=2.0),))
    (found,) = ask(graph, [scenario], ranges=Ranges.STEPS)
    assert isinstance(found, Outcome)
    assert (found.low_ns, found.step_ns, found.high_ns) == (2_100, 3_100, 4_100)


def test_a_scenario_that_does_not_fit_leaves_the_others_alone() -> None:
    graph = data_parallel()
    wrong = Scenario(transforms=(Scale(where="class:attention", factor=0.5),))
    found = ask(graph, [wrong, *SCENARIOS[:2], wrong, SCENARIOS[3]])
    assert [isinstance(one, ScenarioError) for one in found] == [True, False, False, True, False]
    right = ask(graph, [*SCENARIOS[:2], SCENARIOS[3]])
    assert [one for one in found if isinstance(one, Outcome)] == right


def test_progress_is_told_as_a_share() -> None:
    graph, shares = data_parallel(), []
    ask(graph, SCENARIOS * 10, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
