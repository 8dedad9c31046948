"""Facts about the base that a step measured without the profiler gives."""

import numpy as np
import pytest

from ingest.errors import ScenarioError
from ingest.units import Nanos
from replay.graph.arrays import TaskGraph
from replay.results.fidelity import Baseline, baseline
from tests.builders import GraphBuilder, facts_of
from tests.unit.report.findings import findings_of
from whatif.report.text import render
from whatif.unprofiled import FACTORS, without_profiler

HOST_NS, DEVICE_NS = 800_000, 200_000


def _in_turn() -> tuple[TaskGraph, Baseline]:
    """Host work, then a kernel that waits for it: a step of 1 ms."""
    made = GraphBuilder()
    made.host(0, "work", HOST_NS // 2)
    call = made.call(0, "launch", HOST_NS // 2)
    made.kernel(0, "k", DEVICE_NS, caller=call)
    graph = made.build()
    return graph, baseline(graph, facts_of(graph))


def _base(step_ns: int) -> tuple[Baseline, float]:
    graph, recorded = _in_turn()
    _, base, said = without_profiler(graph, recorded, Nanos(step_ns))
    return base, said.host_factor


@pytest.mark.parametrize("step_ns", [300_000, 600_000, 999_999, 1_000_000, 1_200_000])
def test_replay_meets_the_step_with_the_host_alone(step_ns: int) -> None:
    base, factor = _base(step_ns)
    assert abs(int(base.replayed.mean_ns) - step_ns) <= 1
    assert factor == pytest.approx((step_ns - DEVICE_NS) / HOST_NS, abs=2e-6)


def test_recorded_step_changes_nothing() -> None:
    graph, recorded = _in_turn()
    same, base, said = without_profiler(graph, recorded, recorded.replayed.mean_ns)
    assert said.host_factor == 1
    assert (same.tasks.dur_ns == graph.tasks.dur_ns).all()
    assert (base.schedule.start_ns == recorded.schedule.start_ns).all()


def test_measured_step_and_trust_stay_those_of_the_recording() -> None:
    graph, recorded = _in_turn()
    _, base, said = without_profiler(graph, recorded, Nanos(600_000))
    assert base.measured is recorded.measured
    assert base.trust is recorded.trust
    assert said.recorded is recorded


def test_work_from_before_the_steps_and_device_work_keep_their_time() -> None:
    made = GraphBuilder()
    early = made.host(0, "before", 100_000, fixed=True)
    work = made.host(0, "work", 500_000)
    kernel = made.kernel(0, "k", 400_000, caller=work)
    graph = made.build()
    changed, _, _ = without_profiler(graph, baseline(graph, facts_of(graph)), Nanos(800_000))
    assert changed.tasks.dur_ns[[early, kernel]].tolist() == [100_000, 400_000]
    assert changed.tasks.dur_ns[work] == pytest.approx(300_000, abs=1)


@pytest.mark.parametrize("step_ns", [200_000, 2_000_000])
def test_step_that_no_host_gives_is_refused_with_what_can_be_met(step_ns: int) -> None:
    graph, recorded = _in_turn()
    with pytest.raises(ScenarioError, match=r"it takes 0\.28 ms with host .* 1\.20 ms") as raised:
        without_profiler(graph, recorded, Nanos(step_ns))
    assert raised.value.exit_code == 4
    assert raised.value.hint


def test_host_that_may_be_slower_without_harm_is_not_sped_up() -> None:
    """The device works 1 ms whatever the host does: any factor gives the recorded step."""
    made = GraphBuilder()
    call = made.call(0, "launch", 1_000)
    made.kernel(0, "k", 1_000_000, caller=call)
    made.host(0, "work", 400_000)
    graph = made.build()
    recorded = baseline(graph, facts_of(graph))
    changed, _, said = without_profiler(graph, recorded, recorded.replayed.mean_ns)
    assert said.host_factor == 1
    assert np.array_equal(changed.tasks.dur_ns, graph.tasks.dur_ns)
    assert FACTORS[0] < said.host_factor < FACTORS[1]


def test_answer_says_it_beside_the_replayed_step() -> None:
    graph, _ = _in_turn()
    found = findings_of(graph, unprofiled_step_ns=Nanos(600_000))
    lines = [" ".join(line.split()) for line in render(found).splitlines()]
    assert "step measured 1.00 ms" in lines
    assert "replayed 0.60 ms host x0.500, without the profiler" in lines
