"""What commands write: whole or not at all, never over a trace, under the name that was typed."""

import errno
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.calls import ROOT, Run

TRACE = "sample_traces/tiny/cpu_only.json"
MOST_BYTES = 2_000


@contextmanager
def _full() -> Iterator[None]:
    """No file may grow beyond some bytes: the system refuses as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _arguments(verb: str, read: Path, output: Path) -> list[str | Path]:
    return {
        "diff": ["diff", read, TRACE, "-o", output],
        "report": ["report", read, "-o", output],
        "export": ["export", read, "-o", output],
        "sql": ["sql", read, "FROM slice", "-o", output],
        "ingest": ["ingest", read, "-o", output],
        "sweep": ["sweep", read, "--scale", "class:host=1,2", "--html", output],
        "scenario": [read, "--scale", "class:host=2", "--save-scenario", output],
    }[verb]


VERBS = ("diff", "report", "export", "sql", "ingest", "sweep", "scenario")


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_writes_over_a_trace(run: Run, tmp_path: Path, verb: str) -> None:
    read, other = tmp_path / "read.json", tmp_path / "other.json"
    for path in (read, other):
        shutil.copy(ROOT / TRACE, path)
    before = read.read_bytes()
    for path in (read, other):
        outcome = run(*_arguments(verb, read, path))
        assert (outcome.code, outcome.out) == (2, "")
        assert "not overwritten" in outcome.err
        assert path.read_bytes() == before


@pytest.mark.parametrize("verb", VERBS)
def test_a_place_where_no_file_can_lie_is_refused(run: Run, tmp_path: Path, verb: str) -> None:
    (tmp_path / "folder.json").mkdir()
    for name, word in (("no/such/x.json", "make it first"), ("folder.json", "is a folder")):
        outcome = run(*_arguments(verb, ROOT / TRACE, tmp_path / name))
        assert (outcome.code, outcome.out) == (2, "")
        assert word in outcome.err


def test_an_export_may_be_written_anew(run: Run, tmp_path: Path) -> None:
    for name in ("x.json", "x.json.gz", "folder"):
        assert [run("export", TRACE, "-o", tmp_path / name).code for _ in range(2)] == [0, 0]


def test_a_folder_of_timelines_keeps_the_recordings_in_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "recorded").mkdir()
    mine = tmp_path / "recorded" / "rank0.json.gz"
    shutil.copy(ROOT / "sample_traces/ddp8_h100/rank0.json.gz", mine)
    before = mine.read_bytes()
    outcome = run("export", TRACE, "-o", tmp_path)
    assert (outcome.code, "not overwritten" in outcome.err) == (2, True)
    assert mine.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["recorded"]


WRITTEN = (
    ["diff", TRACE, TRACE, "-o", "x.json"],
    ["report", TRACE, "-o", "x.json"],
    ["export", TRACE, "-o", "x.json"],
    ["export", TRACE, "-o", "folder"],
    ["export", TRACE, "--chakra", "-o", "folder"],
    ["export", TRACE, "--table", "all", "-o", "folder"],
    ["export", TRACE, "--table", "slice", "-o", "x.parquet"],
    ["sql", TRACE, "FROM range(1000)", "-o", "x.csv"],
    ["sql", TRACE, "SELECT md5(range::TEXT) FROM range(1000)", "-o", "x.parquet"],
    ["sweep", TRACE, "--scale", "class:host=1,2", "--html", "x.html"],
    [TRACE, "--scale", "class:host=2", "--save-scenario", "x.yaml"],
)


def _fails_and_leaves_all_as_it_was(run: Run, folder: Path, arguments: list[str]) -> None:
    output = folder / arguments[-1]
    if output.suffix:
        output.write_text('{"schema_version": 1, "program": "trace-replay"}', encoding="utf-8")
    before = output.read_bytes() if output.suffix else b""
    outcome = run(*arguments[:-1], output)
    assert outcome.code == 2, outcome.err
    first = outcome.err.splitlines()[0].replace("`", "")
    assert first.startswith(f"error: {output}: ")
    if output.suffix:
        assert output.read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ([output.name] if output.suffix else [])


@pytest.mark.parametrize("arguments", WRITTEN, ids=" ".join)
def test_no_room_for_what_is_written_is_told_by_the_name_that_was_typed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    replace = Path.replace

    def full(part: Path, place: Path) -> Path:
        if tmp_path in place.parents:
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(part, place)

    monkeypatch.setattr(Path, "replace", full)
    _fails_and_leaves_all_as_it_was(run, tmp_path, arguments)


@pytest.mark.parametrize(
    "arguments", [one for one in WRITTEN if one[0] in ("sql", "sweep")], ids=" ".join
)
def test_a_file_that_grows_too_big_is_taken_away(
    run: Run, tmp_path: Path, arguments: list[str]
) -> None:
    assert run("check", TRACE).code == 0
    with _full():
        _fails_and_leaves_all_as_it_was(run, tmp_path, arguments)


def test_ctrl_c_is_told(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("replay.calls.exported.write_together", interrupt)
    outcome = run("export", TRACE, "-o", tmp_path / "x.json")
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err.startswith("interrupted; no half store or file is left")
    assert list(tmp_path.iterdir()) == []
