"""Several captures of one rank are windows: one is chosen, none is lost unsaid."""

from pathlib import Path

import pytest

from ingest.errors import TraceError, UsageError
from ingest.pipeline import IngestOptions, open_run
from tests.reading import document, host, rank_of, write


def _capture(folder: Path, rank: int, number: int, ts: float) -> Path:
    event = host("cpu_op", f"capture {number} of rank {rank}", ts, 10)
    name = f"rank{rank}.{number}.json"
    return write(folder / name, document(event, head=rank_of(rank)))


def _captures(folder: Path) -> None:
    for rank in (0, 1):
        for number, ts in ((0, 100), (1, 5000), (2, 9000)):
            _capture(folder, rank, number, ts + rank)


def _names(folder: Path, window: int | None) -> list[tuple[str]]:
    options = IngestOptions(cache=False, window=window)
    with open_run([folder], options=options) as run:
        return run.store.rows("SELECT name FROM slice ORDER BY rank")


def test_a_window_is_the_capture_of_its_number_on_every_rank(tmp_path: Path) -> None:
    _captures(tmp_path)
    for number in (0, 1, 2):
        assert _names(tmp_path, number) == [
            (f"capture {number} of rank 0",),
            (f"capture {number} of rank 1",),
        ]


def test_without_a_choice_all_windows_are_told(tmp_path: Path) -> None:
    _captures(tmp_path)
    with pytest.raises(UsageError, match=r"0: .*2 files .*1: .*2: ") as refusal:
        _names(tmp_path, None)
    assert "--window 0 to --window 2" in (refusal.value.hint or "")


def test_a_window_that_is_not_there_is_refused(tmp_path: Path) -> None:
    _captures(tmp_path)
    with pytest.raises(UsageError, match="no window 3"):
        _names(tmp_path, 3)


def test_a_single_capture_is_window_0(tmp_path: Path) -> None:
    _capture(tmp_path, 0, 0, 100)
    assert _names(tmp_path, 0) == [("capture 0 of rank 0",)]
    with pytest.raises(UsageError, match="no window 1"):
        _names(tmp_path, 1)


def test_the_same_window_twice_is_an_error(tmp_path: Path) -> None:
    _capture(tmp_path, 0, 0, 100)
    _capture(tmp_path, 0, 1, 105)
    with pytest.raises(TraceError, match=r"rank0\.0\.json.*rank0\.1\.json.*both of rank 0"):
        _names(tmp_path, 0)


def test_arguments_of_other_windows_are_not_in_the_store(tmp_path: Path) -> None:
    _captures(tmp_path)
    with open_run([tmp_path], options=IngestOptions(cache=False, window=1)) as run:
        assert run.store.rows("SELECT COUNT(*) FROM store.args") == [(2,)]


def test_ranks_that_only_the_names_tell_have_windows_too(tmp_path: Path) -> None:
    for number, ts in ((0, 100), (1, 5000)):
        event = host("cpu_op", f"capture {number}", ts, 10)
        write(tmp_path / f"rank3_step{number}.json", document(event))
    assert _names(tmp_path, 1) == [("capture 1",)]
