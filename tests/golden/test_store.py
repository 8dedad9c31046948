"""Stores are written whole or not at all, by one writer, and never beside the traces."""

import subprocess
import sys
from pathlib import Path

import pytest

from ingest import pipeline
from ingest.errors import TraceError, UsageError
from ingest.pipeline import IngestOptions, open_run

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample_traces" / "tiny" / "graph_launch.json"


def _options(folder: Path) -> IngestOptions:
    return IngestOptions(cache_dir=folder)


def test_the_second_call_reads_the_store_of_the_first(tmp_path: Path) -> None:
    with open_run([SAMPLE], options=_options(tmp_path)) as first:
        assert not first.cached
    with open_run([SAMPLE], options=_options(tmp_path)) as second:
        assert second.cached
        assert second.path == first.path
        assert second.bytes_on_disk == second.path.stat().st_size


def test_a_writer_that_fails_leaves_no_half_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pipeline, "_fill", full)
    with pytest.raises(UsageError, match="No space left on device"):
        open_run([SAMPLE], options=_options(tmp_path))
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == []


def test_a_disk_that_is_full_only_at_the_end_leaves_no_half_store(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk; what DuckDB writes last fails."""
    script = """
import resource, signal, sys
from pathlib import Path
from ingest.errors import UsageError
from ingest.pipeline import IngestOptions, open_run
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
trace, cache, limit = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
try:
    open_run([trace], options=IngestOptions(cache_dir=Path(cache)))
except UsageError:
    print("refused")
"""
    for limit in (4_096, 65_536, 300_000, 1_000_000):
        done = subprocess.run(
            [sys.executable, "-c", script, SAMPLE, tmp_path, str(limit)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout, done.stderr) == ("refused\n", "")
        assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == []


def test_a_kept_store_that_is_damaged_is_made_anew(tmp_path: Path) -> None:
    with open_run([SAMPLE], options=_options(tmp_path)) as run:
        path = run.path
    path.write_bytes(path.read_bytes()[:5000])
    with open_run([SAMPLE], options=_options(tmp_path)) as run:
        assert not run.cached
        assert run.store.rows("SELECT COUNT(*) FROM kernel")[0][0] > 0


def test_two_processes_at_once_make_one_store(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "replay", str(SAMPLE), "--json", "--cache-dir", str(tmp_path)]
    running = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert outputs[0] == outputs[1]
    assert len(list(tmp_path.glob("*.duckdb"))) == 1


def test_nothing_is_written_beside_the_traces(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "rank0.json").write_bytes(SAMPLE.read_bytes())
    with open_run([folder], options=_options(tmp_path / "cache")):
        assert [path.name for path in folder.iterdir()] == ["rank0.json"]


def test_without_a_cache_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with open_run([SAMPLE], options=IngestOptions(cache=False)) as run:
        assert run.store.rows("SELECT COUNT(*) FROM kernel")[0][0] > 0
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(pipeline.Reading, "read", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        open_run([SAMPLE], options=IngestOptions(cache=False))
    assert list(tmp_path.iterdir()) == []


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_file_that_is_no_store_is_refused_in_one_line(tmp_path: Path) -> None:
    fake = tmp_path / "run.duckdb"
    fake.write_text("no database", encoding="utf-8")
    with pytest.raises(TraceError, match="not a DuckDB store"):
        open_run([fake], options=_options(tmp_path))


def test_other_contents_make_another_store(tmp_path: Path) -> None:
    changed = tmp_path / SAMPLE.name
    changed.write_text(SAMPLE.read_text(encoding="utf-8").replace("fwd", "bwd"), encoding="utf-8")
    changed.write_text(changed.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    cache = tmp_path / "cache"
    with open_run([SAMPLE], options=_options(cache)) as one:
        pass
    with open_run([changed], options=_options(cache)) as other:
        assert other.path != one.path


def test_where_the_usual_cache_cannot_be_written_the_answer_comes_without_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    told: list[str] = []
    with open_run([SAMPLE], options=IngestOptions(announce=told.append)) as run:
        assert run.store.rows("SELECT COUNT(*) FROM kernel")[0][0] > 0
    assert [line.startswith("no store is kept") for line in told] == [True]


def test_a_cache_that_was_asked_for_and_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match="cannot write the store"):
        open_run([SAMPLE], options=_options(tmp_path / "file" / "cache"))


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    for name, is_there in (("one", False), ("two", False), ("two", True)):
        text = f'[{{"ph": "X", "name": "{name}", "ts": 1, "dur": 1}}]'
        if not is_there:
            trace.write_text(text)
        with open_run([trace], options=_options(tmp_path / "cache")) as run:
            assert run.cached == is_there
            assert run.store.rows("SELECT name FROM slice") == [(name,)]


def test_progress_never_goes_back_and_ends_near_the_whole() -> None:
    shares: list[float] = []
    options = IngestOptions(cache=False, progress=lambda _text, share: shares.append(share))
    with open_run([SAMPLE], options=options):
        pass
    assert shares == sorted(shares)
    assert 0.0 <= shares[0] <= shares[-1] <= 1.0
    assert shares[-1] > 0.9


def test_an_interrupt_while_the_store_is_written_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(text: str, _: float) -> None:
        if text.startswith("writing"):
            raise KeyboardInterrupt

    options = IngestOptions(cache_dir=tmp_path, progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        open_run([SAMPLE], options=options)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == []
