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
    with pytest.raises(UsageError, match="there are 3 windows") as refusal:
        _names(tmp_path, None)
    first, *listed = refusal.value.hint.splitlines()
    assert first == "choose one with --window 0 to --window 2:"
    assert [line.split(":")[0] for line in listed] == ["  0", "  1", "  2"]
    assert all("2 files" in line for line in listed)
    assert f"({tmp_path.name}/rank0.1.json" in listed[1].replace("`", "")


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


def _run(folder: Path, ranks: range, ts: float, *, size: int) -> None:
    """A run in a folder of its own; of size 1 it records no rank."""
    folder.mkdir(exist_ok=True)
    for rank in ranks:
        event = host("cpu_op", f"{folder.name} rank {rank}", ts + rank, 10)
        text = document(event, head=rank_of(rank, size)) if size > 1 else document(event)
        write(folder / f"rank{rank}.json", text)


def test_runs_in_folders_of_their_own_are_windows_however_many_ranks_each_has(
    tmp_path: Path,
) -> None:
    _run(tmp_path / "alone", range(1), 100, size=1)
    _run(tmp_path / "pair", range(2), 5000, size=2)
    assert _names(tmp_path, 0) == [("alone rank 0",)]
    assert _names(tmp_path, 1) == [("pair rank 0",), ("pair rank 1",)]
    with pytest.raises(UsageError, match="several captures of one rank") as refusal:
        _names(tmp_path, None)
    choice, first, second = refusal.value.hint.splitlines()
    assert choice.endswith(f"or give one run, such as `{tmp_path / 'alone'}`:")
    assert ("alone/rank0.json" in first, "pair/rank0.json" in second) == (True, True)


def test_many_windows_are_not_all_listed(tmp_path: Path) -> None:
    for number in range(30):
        _capture(tmp_path, 0, number, 100 + 50 * number)
    with pytest.raises(UsageError, match="there are 30 windows") as refusal:
        _names(tmp_path, None)
    assert refusal.value.hint.splitlines()[-1] == "  ... and 22 more"


def test_two_runs_at_the_same_time_are_told_by_their_folders(tmp_path: Path) -> None:
    _run(tmp_path / "alone", range(1), 100, size=1)
    _run(tmp_path / "pair", range(2), 100, size=2)
    both = r"alone/rank0\.json.*pair/rank0\.json.*both of rank 0"
    with pytest.raises(TraceError, match=both) as refusal:
        _names(tmp_path, None)
    assert f"such as `{tmp_path / 'alone'}`" in refusal.value.hint


def test_a_file_without_a_rank_is_no_further_rank_of_a_job_that_is_whole(tmp_path: Path) -> None:
    _run(tmp_path / "pair", range(2), 100, size=2)
    (tmp_path / "other").mkdir()
    write(tmp_path / "other" / "trace.json", document(host("cpu_op", "other", 100, 10)))
    with pytest.raises(UsageError, match=r"other/trace\.json.*number 3 of the 2") as refusal:
        _names(tmp_path, None)
    assert refusal.value.hint.endswith(f"such as `{tmp_path / 'pair'}`")


def test_a_file_without_a_rank_is_the_one_that_a_job_lacks(tmp_path: Path) -> None:
    _run(tmp_path, range(1), 100, size=2)
    write(tmp_path / "other.json", document(host("cpu_op", "other", 100, 10)))
    assert _names(tmp_path, None) == [(f"{tmp_path.name} rank 0",), ("other",)]
