"""Facts about steps: which count, and where they begin and end."""

from pathlib import Path

import pytest

from ingest.errors import UsageError
from tests.kineto import KinetoFile
from tests.replayed import Replayed, written


def _ahead() -> KinetoFile:
    """A CPU that runs ahead: its three windows are over before the first step's kernels are."""
    file = KinetoFile()
    for number in range(3):
        at = 50 * number
        file.step(number + 5, (at, at + 50))
        file.launched("k", (at + 10, at + 15), (20 + 300 * number, 310 + 300 * number))
    return file


def _boundaries_us(run: Replayed) -> list[float]:
    return (run.base.measured.boundary_ns / 1000).tolist()


def test_step_ends_with_the_device_work_launched_in_it(tmp_path: Path) -> None:
    run = written(tmp_path, _ahead())
    assert run.graph.steps == (5, 6, 7)
    assert _boundaries_us(run) == [0, 310, 610, 910]


def test_step_begins_after_the_device_work_launched_before_it(tmp_path: Path) -> None:
    file = KinetoFile()
    file.kernel("head", (0, 120))
    file.step(1, (10, 300))
    file.launched("k", (20, 25), (122, 200))
    run = written(tmp_path, file)
    assert _boundaries_us(run) == [120, 300]


def test_chosen_steps_are_half_open(tmp_path: Path) -> None:
    run = written(tmp_path, _ahead(), steps=range(6, 7))
    assert run.graph.steps == (6,)
    assert _boundaries_us(run) == [310, 610]
    assert run.graph.tasks.step[run.all_of("k")].tolist() == [-1, 0, -1]
    assert run.graph.tasks.fixed[run.all_of("k")].tolist() == [True, False, False]


def test_no_chosen_step_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no step of 8:9 is complete") as error:
        written(tmp_path, _ahead(), steps=range(8, 9))
    assert "5 to 7" in str(error.value.hint)


def test_only_steps_that_all_ranks_have_count(tmp_path: Path) -> None:
    files = []
    for rank, steps in ((0, (1, 2, 3)), (1, (2, 3, 4))):
        file = KinetoFile(rank=rank, ranks=(0, 1))
        for place, number in enumerate(steps):
            at = 100 * (place + rank)
            file.step(number, (at, at + 100))
            file.launched("k", (at + 10, at + 15), (at + 20, at + 60))
        files.append(file)
    run = written(tmp_path, *files)
    assert run.graph.steps == (2, 3)
    assert _boundaries_us(run) == [100, 200, 300]


def test_steps_with_a_gap_between_them_are_the_longest_run(tmp_path: Path) -> None:
    file = KinetoFile()
    for place, number in enumerate((1, 4, 5)):
        at = 100 * place
        file.step(number, (at, at + 100))
        file.launched("k", (at + 10, at + 15), (at + 20, at + 60))
    assert written(tmp_path, file).graph.steps == (4, 5)


def test_steps_whose_numbers_run_against_time_do_not_follow_one_another(tmp_path: Path) -> None:
    file = KinetoFile()
    for place, number in enumerate((2, 1)):
        at = 100 * place
        file.step(number, (at, at + 90))
        file.launched("k", (at + 10, at + 15), (at + 20, at + 80))
    run = written(tmp_path, file)
    assert (len(run.graph.steps), run.facts.steps_left_out) == (1, 1)
    assert run.measured_us > 0


def test_steps_that_are_left_out_are_counted(tmp_path: Path) -> None:
    file = KinetoFile()
    for place, number in enumerate((1, 2, 4)):
        at = 100 * place
        file.step(number, (at, at + 90))
        file.launched("k", (at + 10, at + 15), (at + 20, at + 80))
    run = written(tmp_path, file)
    assert (run.graph.steps, run.facts.steps_left_out) == ((1, 2), 1)


def test_boundary_of_the_run_is_the_latest_over_the_ranks(tmp_path: Path) -> None:
    files = []
    for rank, end in ((0, 60), (1, 180)):
        file = KinetoFile(rank=rank, ranks=(0, 1))
        file.step(1, (rank * 5, 100))
        file.launched("k", (10, 15), (20, end))
        files.append(file)
    run = written(tmp_path, *files)
    assert _boundaries_us(run) == [5, 180]
    measured = run.base.measured
    assert [measured.rank_mean_ns(0), measured.rank_mean_ns(1)] == [100_000, 175_000]


def test_without_steps_the_run_is_one_step_without_the_profilers_last_synchronise(
    tmp_path: Path,
) -> None:
    file = KinetoFile()
    file.op("aten::mm", (0, 20))
    file.launched("k", (5, 10), (15, 200))
    file.call("cudaDeviceSynchronize", (30, 900))
    run = written(tmp_path, file)
    assert not run.graph.steps_recorded
    assert _boundaries_us(run) == [0, 200]
    assert run.base.replayed.mean_ns == run.base.measured.mean_ns


def test_without_steps_a_synchronise_inside_the_run_counts(tmp_path: Path) -> None:
    file = KinetoFile()
    file.op("aten::mm", (0, 20))
    file.launched("k", (5, 10), (15, 200))
    file.call("cudaDeviceSynchronize", (30, 220))
    file.launched("k2", (230, 235), (240, 260))
    run = written(tmp_path, file)
    assert _boundaries_us(run) == [0, 260]


def test_without_steps_ranks_span_from_the_first_start_to_the_last_end(tmp_path: Path) -> None:
    files = []
    for rank, start, end in ((0, 0, 60), (1, 40, 180)):
        file = KinetoFile(rank=rank, ranks=(0, 1))
        file.launched("k", (start, start + 5), (start + 10, end))
        files.append(file)
    run = written(tmp_path, *files)
    assert _boundaries_us(run) == [0, 180]
