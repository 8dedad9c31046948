"""Kernels beside communication: factors read from a run, durations where the overlap changes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.vocab import KernelClass, TaskKind
from replay.engine.run import replay
from replay.engine.settle import settle, settled_schedules
from replay.graph.arrays import TaskGraph
from tests.bench.accuracy_runtime import held_out
from tests.builders import GraphBuilder
from whatif.couplings.slowdown import SlowdownBesideComm, slowdown_beside_comm
from whatif.couplings.walks import FULL_SPEED, time_taken, work_done
from whatif.models.overlap import (
    MOVING,
    Observed,
    fit,
    weighted_median,
)

US = 1_000
GEMM = int(KernelClass.GEMM)


def observed(rows: list[tuple[int, int, float, float]]) -> Observed:
    """Rows (kernel, duration, part beside waiting, part beside moving), all GEMMs."""
    kernel, dur_ns, waiting, moving = zip(*rows, strict=True)
    return Observed(
        kernel=np.array(kernel, np.int64),
        kernel_class=np.full(len(rows), GEMM, np.int64),
        dur_ns=np.array(dur_ns, np.int64),
        beside_frac=np.array([waiting, moving]).T,
    )


def test_a_kernel_wholly_beside_transfers_tells_its_ratio() -> None:
    found = fit(observed([(0, 100_000, 0, 0)] * 3 + [(0, 150_000, 0, 1)] * 10))
    (told,) = found.classes
    assert (told.kernel_class, told.state, told.pairs) == (GEMM, MOVING, 10)
    assert told.factor == pytest.approx(1.5)
    assert found.of_kernel.tolist() == [[1.0, pytest.approx(1.5)]]


def test_a_part_beside_is_solved_for_the_whole() -> None:
    # 100 us of work: 50 us alone, then 100 us beside at half the speed.
    found = fit(observed([(0, 100_000, 0, 0)] * 3 + [(0, 150_000, 0, 100 / 150)] * 10))
    assert found.classes[0].factor == pytest.approx(2.0)


def test_waiting_is_told_by_itself_and_taken_out_of_moving() -> None:
    rows = [(0, 100_000, 0, 0)] * 3 + [(0, 125_000, 1, 0)] * 10
    rows += [(0, 25_000 + 200_000, 25 / 225, 200 / 225)] * 10  # 20 us of work waiting, 80 moving
    found = fit(observed(rows))
    assert found.of_kernel[0] == pytest.approx([1.25, 2.5])


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([(0, 150_000, 0, 1)] * 20, id="never alone"),
        pytest.param([(0, 100_000, 0, 0)] * 3 + [(0, 150_000, 0, 1)] * 7, id="too few"),
        pytest.param([(0, 4_000, 0, 0)] * 3 + [(0, 8_000, 0, 1)] * 20, id="too short"),
        pytest.param(
            [(0, 100_000, 0, 0)] * 3 + [(0, 90_000, 0, 1), (0, 110_000, 0, 1)] * 10, id="by chance"
        ),
        pytest.param([(0, 100_000, 0, 0)] * 3 + [(0, 80_000, 0, 1)] * 20, id="faster"),
        pytest.param([], id="no kernel"),
    ],
)
def test_nothing_is_slower_without_evidence(rows: list[tuple[int, int, float, float]]) -> None:
    if not rows:
        empty = np.zeros(0, np.int64)
        nothing = Observed(
            kernel=empty, kernel_class=empty, dur_ns=empty, beside_frac=np.zeros((0, 2))
        )
        assert not fit(nothing).any
    else:
        assert not fit(observed(rows)).any


def test_a_kernel_with_few_samples_takes_the_factor_of_its_class() -> None:
    rows = [(0, 100_000, 0, 0)] * 3 + [(0, 200_000, 0, 1)] * 10 + [(1, 300_000, 0, 0)]
    assert fit(observed(rows)).of_kernel[1, MOVING] == pytest.approx(2.0)


def test_the_long_kernels_make_the_factor_of_a_class() -> None:
    assert weighted_median(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 5.0])) == 3.0


SEGMENTS = st.lists(st.integers(1, 1_000), min_size=0, max_size=6)


@settings(deadline=None)
@given(SEGMENTS, st.integers(1, 2_000), st.integers(0, 5_000), st.floats(1, 5))
def test_the_time_for_the_work_done_is_the_time_it_took(
    lengths: list[int], dur_ns: int, start_ns: int, factor: float
) -> None:
    begin_ns = np.concatenate([[np.iinfo(np.int64).min], 1_000 + np.cumsum([0, *lengths])])
    state = np.array([2, *(place % 3 for place in range(len(lengths) + 1))])
    speed = np.array([[round(FULL_SPEED / factor), round(FULL_SPEED / (factor + 1)), FULL_SPEED]])
    one = np.zeros(1, np.int64)
    behind = np.array([len(begin_ns)])
    start = np.array([start_ns])
    args = (one, behind, begin_ns, state, speed, start)
    work = work_done(*args, np.array([dur_ns]))
    assert dur_ns * FULL_SPEED / (factor + 1.01) <= work[0] <= dur_ns * FULL_SPEED
    assert time_taken(*args, work).tolist() == [dur_ns]


def overlapping(*, rounds: int = 10, transfer_ns: int = 400 * US) -> TaskGraph:
    """Rounds on two ranks: a GEMM alone for 100 us, then the same beside a transfer, 150 us."""
    builder = GraphBuilder(ranks=(0, 1))
    for _ in range(rounds):
        callers = {rank: builder.call(rank, "launch", 1 * US) for rank in (0, 1)}
        alone = {
            rank: builder.kernel(rank, "gemm", 100 * US, caller=callers[rank], geometry=5)
            for rank in (0, 1)
        }
        transfers = builder.collective(transfer_ns, callers=callers, after=alone)
        for rank in (0, 1):
            builder.kernel(rank, "gemm", 150 * US, caller=callers[rank], geometry=5)
            builder.edge(transfers[rank], builder.kernel(rank, "rest", 50 * US, geometry=6))
    return builder.build()


def coupling_of(graph: TaskGraph) -> SlowdownBesideComm:
    found = slowdown_beside_comm(graph, replay(graph))
    assert found is not None
    return found


def without_transfers(graph: TaskGraph) -> TaskGraph:
    gone = np.isin(graph.tasks.kind, (TaskKind.TRANSFER,))
    return replace(graph, tasks=replace(graph.tasks, dur_ns=np.where(gone, 0, graph.tasks.dur_ns)))


def gemms(graph: TaskGraph) -> np.ndarray:
    return np.array([graph.names[name] == "gemm" for name in graph.tasks.name])


def test_the_overlap_of_the_recording_gives_the_recording() -> None:
    graph = overlapping()
    settled, schedule = settle(graph, [coupling_of(graph)])
    assert settled is graph
    assert (schedule.start_ns == replay(graph).start_ns).all()


def test_another_replay_has_the_factors_of_the_recording_and_its_own_overlap() -> None:
    graph = overlapping()
    apart = replay(without_transfers(graph))
    coupling = slowdown_beside_comm(graph, apart)
    assert coupling is not None
    assert coupling.found.classes[0].factor == pytest.approx(1.5)
    assert (coupling.durations(graph, apart) == graph.tasks.dur_ns).all()


def test_without_communication_kernels_take_their_time_alone() -> None:
    graph = overlapping()
    settled, _ = settle(without_transfers(graph), [coupling_of(graph)])
    assert np.abs(settled.tasks.dur_ns[gemms(graph)] - 100 * US).max() <= 1


def test_longer_communication_slows_more() -> None:
    graph = overlapping(transfer_ns=75 * US)  # half of the second GEMM lies beside it
    longer = np.where(graph.tasks.kind == TaskKind.TRANSFER, 400 * US, graph.tasks.dur_ns)
    settled, _ = settle(
        replace(graph, tasks=replace(graph.tasks, dur_ns=longer)), [coupling_of(graph)]
    )
    # 100 us of work: 75 us were alone, so 25 were done in 75 us beside, at a third of the speed.
    slowed = settled.tasks.dur_ns[gemms(graph)]
    assert sorted(set((slowed / US).round(2).tolist())) == pytest.approx([100, 300])


def test_many_at_once_settle_as_each_by_itself() -> None:
    graph = overlapping()
    variants = [graph, without_transfers(graph)]
    at = graph.boundaries.task
    schedules = settled_schedules(variants, [coupling_of(graph)], at)
    for variant, found in zip(variants, schedules, strict=True):
        assert (found.end_ns[at] == settle(variant, [coupling_of(graph)])[1].end_ns[at]).all()


def test_a_scaled_kernel_keeps_its_share_of_slowdown() -> None:
    graph = overlapping()
    halved = np.where(gemms(graph), graph.tasks.dur_ns // 2, graph.tasks.dur_ns)
    plain = replace(graph, tasks=replace(graph.tasks, dur_ns=halved))
    given_ns = coupling_of(graph).durations(plain, replay(plain))
    assert (given_ns == halved).all()


def test_the_answer_says_what_was_read() -> None:
    assert coupling_of(overlapping()).assumption.startswith(
        "gemm 1.50x slower beside transfers (20 pairs), re-applied where the overlap changes"
    )


def test_without_evidence_there_is_no_coupling() -> None:
    builder = GraphBuilder()
    builder.kernel(0, "gemm", 100 * US, caller=builder.call(0, "launch", US), geometry=5)
    graph = builder.build()
    assert slowdown_beside_comm(graph, replay(graph)) is None


def test_a_half_of_the_run_predicts_the_other() -> None:
    held = held_out(overlapping(rounds=40))
    assert held is not None
    assert held.by == "ranks"
    assert held.errors(held.alone_ns) == pytest.approx((1 / 3, -1 / 3))
    assert held.errors(held.predicted_ns) == pytest.approx((0, 0))
