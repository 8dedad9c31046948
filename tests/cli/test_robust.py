"""Nothing is lost in silence, no file of a person is overwritten, no path ends in a traceback."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calls import ROOT, Run

GOOD = "sample_traces/tiny/cpu_only.json"


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A folder with a trace and a cut file that begins like one."""
    shutil.copy(ROOT / GOOD, tmp_path / "good.json")
    (tmp_path / "bad.json").write_text('{"a": 1}', encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("command", [("sql", "{}", "SELECT 1"), ("schema", "{}", "kernel")])
def test_tables_that_lack_a_file_say_so(run: Run, mixed: Path, command: tuple[str, ...]) -> None:
    outcome = run(*(part.format(mixed) for part in command))
    assert outcome.code == 0
    assert outcome.err.startswith("left out: `bad.json`: ")


def test_a_store_is_never_written_over_a_trace(run: Run, mixed: Path) -> None:
    trace = mixed / "good.json"
    before = trace.read_bytes()
    outcome = run("ingest", trace, "-o", trace)
    assert (outcome.code, outcome.out) == (2, "")
    assert "not overwritten" in outcome.err
    assert trace.read_bytes() == before


def test_a_store_may_be_written_anew(run: Run, tmp_path: Path) -> None:
    store = tmp_path / "run.duckdb"
    assert run("ingest", GOOD, "-o", store).code == 0
    assert run("ingest", GOOD, "-o", store).code == 0


def test_json_of_two_columns_with_one_name_is_refused(run: Run) -> None:
    outcome = run("sql", GOOD, "SELECT 1 AS a, 2 AS a", "--json")
    assert (outcome.code, outcome.out) == (2, "")
    assert "two columns are called `a`" in outcome.err
    assert run("sql", GOOD, "SELECT 1 AS a, 2 AS a").out == "a  a\n1  2\n"


def test_a_folder_that_cannot_be_made_is_told_in_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    outcome = run(GOOD, "--cache-dir", tmp_path / "file" / "cache")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: ")
    assert str(tmp_path / "file") in outcome.err.splitlines()[0]


def test_a_terminal_without_unicode_shows_codes(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "replay", "sql", GOOD, "SELECT chr(8230) AS dots"),
            *("--cache-dir", str(tmp_path)),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "dots\n\\u2026\n")
