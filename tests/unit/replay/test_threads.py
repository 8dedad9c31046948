"""Facts about CPU threads: what is work, who waits for whom, what silence means."""

from itertools import pairwise
from pathlib import Path

import pytest

from ingest.vocab import EdgeKind, Evidence, TaskKind
from tests.kineto import AUTOGRAD, MAIN, KinetoFile
from tests.replayed import Replayed, written

BACKWARD = "autograd::engine::evaluate_function: MmBackward0"


def _backward(file: KinetoFile, at: float, *, out: float, back: float) -> float:
    """Forward on the main thread, backward on its own thread, and on again; answers the end."""
    for number in range(6):
        begin = at + 100 * number
        file.op("aten::mm", (begin, begin + 95))
        file.launched("forward", (begin + 10, begin + 15), (begin + 20, begin + 90))
    begin = at + 600 + out
    for number in range(15):
        start = begin + 100 * number
        file.op(BACKWARD, (start, start + 100), thread=AUTOGRAD)
        file.launched(
            "backward", (start + 10, start + 15), (start + 20, start + 90), thread=AUTOGRAD
        )
    end = begin + 1500 + back
    file.op("Optimizer.step#SGD.step", (end, end + 50))
    file.launched("sgd", (end + 10, end + 15), (end + 20, end + 40))
    return end + 50


def _lane(run: Replayed, task: int) -> str:
    return run.graph.lanes[run.graph.tasks.lane[task]].role


def test_main_thread_waits_for_the_thread_it_handed_to(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 2500))
    _backward(file, 0, out=140, back=60)
    run = written(tmp_path, file)
    (wait,) = run.waits()
    back = run.edge(wait, EdgeKind.HAND_OVER)
    assert (_lane(run, wait), _lane(run, back.src)) == ("main", "autograd")
    assert (back.lag_us, back.evidence) == (70, Evidence.INFERRED)
    assert run.span(back.src)[1] == 2240
    assert run.span(wait) == (2300, 2300)


def test_thread_has_no_task_before_its_first_row_and_is_woken_by_another(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 2500))
    _backward(file, 0, out=140, back=60)
    run = written(tmp_path, file)
    opening = next(task for task in run.openings() if _lane(run, task) == "autograd")
    assert run.span(opening) == (740, 740)
    out = run.edge(opening, EdgeKind.HAND_OVER)
    assert (_lane(run, out.src), out.lag_us) == ("main", 150)
    assert run.span(out.src)[1] == 595


def test_hand_over_lags_are_medians_per_direction(tmp_path: Path) -> None:
    file = KinetoFile()
    end = 0.0
    for number in range(3):
        begin = end
        end = _backward(file, begin, out=120 + number, back=40 + number) + 10
        file.step(number, (begin, end))
    run = written(tmp_path, file)
    out, back = (run.facts.lags[f"hand_over ({way})"] for way in ("out", "back"))
    assert (out.samples, back.samples) == (3, 3)
    assert back.lag_ns == 41_000
    assert not back.is_default
    assert not out.is_default
    assert run.is_exact()


def test_longer_backward_moves_what_comes_after_it(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 2500))
    _backward(file, 0, out=140, back=60)
    run = written(tmp_path, file)
    before = run.base.schedule
    assert run.span(run.task("sgd"), before)[0] == 2320
    # The second file has the same shape and a backward thread that starts 100 us later.
    later = KinetoFile()
    later.step(1, (0, 2600))
    _backward(later, 0, out=240, back=60)
    again = written(tmp_path, later)
    assert again.span(again.task("sgd"))[0] == 2420


def _silence(file: KinetoFile, at: float, length: float) -> float:
    """Two operators with nothing between them."""
    file.op("aten::a", (at, at + 50))
    file.launched("k", (at + 10, at + 15), (at + 20, at + 60))
    file.op("aten::b", (at + 50 + length, at + 100 + length))
    return at + 100 + length


def test_long_silence_without_cause_stays_work_and_counts_as_unexplained(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, _silence(file, 0, 3000)))
    run = written(tmp_path, file)
    tasks = run.graph.tasks
    assert run.waits() == []
    assert tasks.unexplained_ns.sum() == 3_000_000
    assert (tasks.kind[tasks.unexplained_ns > 0] == TaskKind.HOST_WORK).all()
    assert run.base.trust.explained_frac == pytest.approx(100 / 3100)


def test_silence_with_a_twin_of_equal_length_is_host_work(tmp_path: Path) -> None:
    file = KinetoFile()
    middle = _silence(file, 0, 3000)
    file.step(1, (0, middle))
    file.step(2, (middle, _silence(file, middle, 3200)))
    run = written(tmp_path, file)
    assert run.graph.tasks.unexplained_ns.sum() == 0


def test_silence_of_other_length_is_no_twin(tmp_path: Path) -> None:
    file = KinetoFile()
    middle = _silence(file, 0, 3000)
    file.step(1, (0, middle))
    file.step(2, (middle, _silence(file, middle, 4000)))
    run = written(tmp_path, file)
    assert run.graph.tasks.unexplained_ns.sum() == 7_000_000


def test_short_silence_is_work(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, _silence(file, 0, 900)))
    run = written(tmp_path, file)
    assert run.graph.tasks.unexplained_ns.sum() == 0


def test_thread_that_only_polls_carries_no_tasks(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 300))
    file.launched("k", (5, 10), (15, 100))
    for at in range(0, 300, 20):
        file.call("cudaEventQuery", (at, at + 2), thread=AUTOGRAD)
    run = written(tmp_path, file)
    host = run.graph.tasks.kind <= TaskKind.HOST_WAIT
    assert {_lane(run, task) for task in host.nonzero()[0]} == {"main"}


def test_tasks_of_a_thread_follow_one_another_without_gap(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 2500))
    _backward(file, 0, out=140, back=60)
    run = written(tmp_path, file)
    tasks = run.graph.tasks
    for thread in (MAIN, AUTOGRAD):
        role = "main" if thread == MAIN else "autograd"
        ids = [t for t in range(run.graph.n_tasks) if tasks.kind[t] <= TaskKind.HOST_WAIT]
        ids = [t for t in ids if _lane(run, t) == role]
        for before, after in pairwise(ids):
            assert run.edge(after, EdgeKind.PROGRAM_ORDER).src == before
            waits = tasks.kind[after] == TaskKind.HOST_WAIT
            assert waits or run.span(after)[0] == run.span(before)[1]


def test_host_work_is_named_for_the_operator_that_fills_most_of_it(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 300))
    file.op("aten::short", (0, 20))
    file.op("aten::long", (20, 90))
    file.launched("k", (100, 105), (110, 150))
    run = written(tmp_path, file)
    work = run.task("aten::long")
    assert run.span(work) == (0, 100)
    assert run.graph.names[run.graph.tasks.op[work]] == "aten::long"
