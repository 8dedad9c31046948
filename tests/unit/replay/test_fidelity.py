"""Facts about trust: the grade at its thresholds, what caps it, and why."""

from dataclasses import replace

import numpy as np
import pytest

from replay.graph.facts import FileFacts, GraphFacts
from replay.graph.lags import Typical
from replay.results.fidelity import Trust, baseline
from tests.builders import GraphBuilder, facts_of

FILE = FileFacts(
    trace_id=0,
    world_size=None,
    rank=0,
    rank_source="distributedInfo",
    host=None,
    gpu=None,
    devices_seen=1,
    events=10,
    clock_offset_ns=0,
    clock_uncertainty_ns=None,
    device_clock_offset_ns=0,
    complete=True,
)


def _trust(
    *, late_ns: int = 0, silent_ns: int = 0, host_ns: int = 100_000, **changed: object
) -> Trust:
    """A step of 1 ms: host work, then a kernel that starts `late_ns` after it for no reason."""
    made = GraphBuilder()
    first = made.host(0, "work", host_ns)
    made.kernel(0, "k", 1_000_000 - host_ns - late_ns, caller=first, residual_ns=late_ns)
    graph = made.build()
    unexplained_ns = np.array([silent_ns, 0])
    graph = replace(graph, tasks=replace(graph.tasks, unexplained_ns=unexplained_ns))
    facts: GraphFacts = replace(facts_of(graph), **changed)
    return baseline(graph, facts).trust


@pytest.mark.parametrize(
    ("late_ns", "grade"),
    [(0, "A"), (20_000, "A"), (20_001, "B"), (50_000, "B"), (50_001, "C"), (150_000, "C"),
     (150_001, "D")],
)  # fmt: skip
def test_grade_by_strict_error(late_ns: int, grade: str) -> None:
    trust = _trust(late_ns=late_ns)
    assert trust.strict_error_frac == pytest.approx(-late_ns / 1e6)
    assert trust.explained_frac == pytest.approx(1 - late_ns / 1e6)
    assert trust.grade == grade


@pytest.mark.parametrize(
    ("silent_ns", "grade"),
    [(30_000, "A"), (30_001, "B"), (100_000, "B"), (100_001, "C"), (400_000, "C")],
)
def test_grade_by_explained_share(silent_ns: int, grade: str) -> None:
    trust = _trust(silent_ns=silent_ns, host_ns=450_000)
    assert trust.strict_error_frac == 0
    assert trust.explained_frac == pytest.approx(1 - silent_ns / 1e6)
    assert trust.grade == grade


def test_error_counts_in_both_directions() -> None:
    trust = _trust(late_ns=-30_000)
    assert trust.strict_error_frac == pytest.approx(0.03)
    assert trust.explained_frac == pytest.approx(0.97)
    assert trust.grade == "B"


def test_start_error_is_the_median_over_device_work() -> None:
    assert _trust(late_ns=700).start_error_ns == 700


def test_path_of_host_work_is_capped_because_its_durations_are_copied() -> None:
    assert _trust(host_ns=500_000).grade == "A"
    capped = _trust(host_ns=510_000)
    assert capped.grade == "C"
    assert any("51% of the critical path is host work" in reason for reason in capped.reasons)


def test_file_that_is_cut_off_caps_the_grade() -> None:
    trust = _trust(files=(replace(FILE, complete=False),))
    assert (trust.grade, trust.reasons) == ("B", ("a file is cut off",))


def test_cap_never_raises_a_grade() -> None:
    assert _trust(late_ns=100_000, files=(replace(FILE, complete=False),)).grade == "C"


@pytest.mark.parametrize(("moved_ns", "grade"), [(10_000, "A"), (10_001, "B")])
def test_repairs_of_more_than_a_hundredth_of_the_step_cap_the_grade(
    moved_ns: int, grade: str
) -> None:
    assert _trust(moved_ns=moved_ns).grade == grade


@pytest.mark.parametrize(("unlinked_frac", "grade"), [(0.5, "A"), (0.51, "C")])
def test_device_work_without_launches_caps_the_grade_because_its_starts_are_copied(
    unlinked_frac: float, grade: str
) -> None:
    trust = _trust(unlinked_frac=unlinked_frac)
    assert trust.grade == grade
    assert any("has no recorded launch" in reason for reason in trust.reasons) == (grade == "C")


@pytest.mark.parametrize(("release_ns", "told"), [(900_000, 0), (1_100_000, 1)])
def test_path_that_waits_for_a_copied_start_is_not_explained(release_ns: int, told: int) -> None:
    """A millisecond of work, and before it the time until the recording lets it begin."""
    made = GraphBuilder()
    made.kernel(0, "k", 1_000_000, release_ns=release_ns)
    graph = replace(made.build(), steps_recorded=False)
    floor_ns = graph.boundaries.floor_ns.copy()
    floor_ns[0] = 0
    graph = replace(graph, boundaries=replace(graph.boundaries, floor_ns=floor_ns))
    trust = baseline(graph, facts_of(graph)).trust
    assert trust.strict_error_frac == 0
    assert trust.explained_frac == pytest.approx(1_000_000 / (release_ns + 1_000_000))
    assert trust.grade == "C"
    assert sum("copied from the recording" in reason for reason in trust.reasons) == told


def test_trace_without_device_and_collective_has_the_lowest_grade() -> None:
    trust = _trust(has_device=False, members=0)
    assert trust.grade == "D"
    assert "no device task and no collective in this trace" in trust.reasons


def test_default_lags_are_told() -> None:
    few = Typical(lag_ns=2_000, samples=3, is_default=True)
    none = Typical(lag_ns=2_000, samples=0, is_default=True)
    trust = _trust(lags={"stream_order": few, "event_wait": none})
    assert trust.reasons == ("default lags (too few samples): stream_order",)


def test_long_collective_with_members_missing_caps_the_grade() -> None:
    made = GraphBuilder()
    call = made.call(0, "launch", 10_000)
    gemm = made.kernel(0, "gemm", 900_000, caller=call)
    made.collective(50_000, callers={0: call}, after={0: gemm}, expected=2)
    graph = made.build()
    trust = baseline(graph, facts_of(graph)).trust
    assert trust.grade == "C"
    assert "members of long collectives are not in these files" in trust.reasons
