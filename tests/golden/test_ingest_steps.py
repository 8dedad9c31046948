"""Steps that a file does not record are inferred from a clear period, else there is none."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from tests.kineto import KinetoFile
from tests.reading import rows

STEPS = "SELECT step, ts // 1000, dur // 1000, source FROM step ORDER BY ts"
Fill = Callable[[KinetoFile, int], None]


def _each(fill: Fill, starts: Sequence[int]) -> Callable[[KinetoFile], None]:
    def filled(file: KinetoFile) -> None:
        for start in starts:
            fill(file, start)

    return filled


def _engine(file: KinetoFile, at: int) -> None:
    file.annotation(f"execute_context_{at}(9_{at})_generation_0(0)", (at, at + 60))


def _trainer(file: KinetoFile, at: int) -> None:
    file.annotation("## forward ##", (at, at + 20))
    file.annotation("## forward ##", (at + 30, at + 50))
    file.annotation("Optimizer.step#Adam.step", (at + 80, at + 85))
    file.annotation("Optimizer.step#Adam.step", (at + 86, at + 90))


def _forward_only(file: KinetoFile, at: int) -> None:
    file.annotation("## forward ##", (at, at + 60))
    file.op("aten::linear", (at + 90, at + 100))


def _decode(file: KinetoFile, at: int) -> None:
    file.op("aten::embedding", (at, at + 5))
    for layer in range(4):
        file.op("aten::linear", (at + 10 + 10 * layer, at + 15 + 10 * layer))
    file.launched("k", (at + 60, at + 65), (at + 70, at + 72))
    file.call("cudaStreamSynchronize", (at + 80, at + 90))


def _layers_without_a_wait(file: KinetoFile, at: int) -> None:
    file.op("aten::linear", (at, at + 5))
    file.launched("k", (at + 60, at + 65), (at + 70, at + 72))


EVEN = (0, 100, 200, 300)


@pytest.mark.parametrize(
    ("fill", "bounds"),
    [
        (_each(_engine, EVEN), [0, 100, 200, 300]),
        (_each(_engine, (0, 400, 500, 600, 700)), [400, 500, 600, 700]),
        (_each(_trainer, EVEN), [0, 90, 190, 290, 390]),
        (_each(_trainer, (0, 400, 500, 600)), []),
        (_each(_forward_only, EVEN), [0, 100, 200, 300, 400]),
        (_each(_decode, EVEN), [0, 100, 200, 300, 390]),
        (_each(_engine, (0, 100, 200)), []),
        (_each(_engine, (0, 100, 500, 600, 1000)), []),
        (_each(_layers_without_a_wait, EVEN), []),
    ],
    ids=[
        "engine", "engine after a warm-up", "two optimizers, micro-batches", "too few in a row",
        "forward", "rows in order", "two intervals", "uneven", "layers",
    ],
)  # fmt: skip
def test_steps_are_inferred_only_from_a_clear_period(
    tmp_path: Path, fill: Callable[[KinetoFile], None], bounds: list[int]
) -> None:
    file = KinetoFile()
    fill(file)
    file.op("first", (0, 1), thread=900)
    found = rows(file.write(tmp_path / "t.json"), STEPS)
    spans = [(start, end - start) for start, end in pairwise(bounds)]
    assert found == [(number, *span, "inferred") for number, span in enumerate(spans)]


def test_recorded_steps_are_the_only_ones_where_there_are_any(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(7, (0, 400))
    _each(_engine, EVEN)(file)
    path = file.write(tmp_path / "t.json")
    assert rows(path, STEPS) == [(7, 0, 400, "ProfilerStep")]
    assert rows(path, "SELECT DISTINCT is_recorded FROM step_window") == [(True,)]


def test_inferred_steps_do_not_become_the_run_s_windows(tmp_path: Path) -> None:
    file = KinetoFile()
    _each(_decode, EVEN)(file)
    path = file.write(tmp_path / "t.json")
    assert rows(path, "SELECT step, is_recorded FROM step_window") == [(0, False)]
    assert rows(path, "SELECT DISTINCT step FROM slice") == [(None,)]


def _recorded(tmp_path: Path, file: KinetoFile, *, without_end: int = 0) -> Sequence[object]:
    path = file.write(tmp_path / "rank0.json")
    text = path.read_bytes()
    path.write_bytes(text[: len(text) - without_end])
    return rows(path, "SELECT step, complete FROM step ORDER BY ts")


def test_step_that_only_the_end_of_recording_closed_holds_no_work(tmp_path: Path) -> None:
    file = KinetoFile()
    for number in (1, 2):
        file.step(number, (1000 * number, 1000 * number + 900))
        file.launched("k", (1000 * number + 10, 1000 * number + 15), (1000 * number + 20, 2500))
    file.step(3, (2950, 2967))
    file.kernel("still running", (2955, 2999))
    assert _recorded(tmp_path, file) == [(1, True), (2, True), (3, False)]


def test_steps_of_a_file_that_shows_no_work_in_any_are_taken_as_they_are(tmp_path: Path) -> None:
    file = KinetoFile()
    for number in (1, 2):
        file.step(number, (1000 * number, 1000 * number + 900))
        file.kernel("k", (1000 * number + 10, 1000 * number + 500))
    assert _recorded(tmp_path, file) == [(1, True), (2, True)]


def test_a_cut_file_lacks_the_end_of_its_last_step_only(tmp_path: Path) -> None:
    file = KinetoFile()
    for number in (1, 2):
        file.step(number, (1000 * number, 1000 * number + 900))
        file.op("aten::mm", (1000 * number + 10, 1000 * number + 500))
    assert _recorded(tmp_path, file, without_end=6) == [(1, True), (2, False)]
