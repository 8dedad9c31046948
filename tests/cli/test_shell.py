"""The shell of `replay sql`, line by line and once on a terminal."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.pipeline import IngestOptions
from replay.api import open_run
from replay.cli.complete import Words, completions
from replay.cli.options import RowsFormat
from replay.cli.shell import Shell, split
from tests.cli.calls import ROOT

TRACE = ROOT / "sample_traces/tiny/cpu_only.json"
WORDS = Words(
    columns={"kernel": ["id", "name"], "slice": ["id", "ts"]},
    keywords=["select", "from", "sum"],
    queries=["steps", "op_times"],
    commands=[".run", ".schema", ".quit"],
)


@pytest.fixture
def shell() -> Iterator[Shell]:
    with open_run(TRACE, options=IngestOptions(cache=False)) as run:
        yield Shell(run, form=RowsFormat.CSV, limit=2)


@pytest.mark.parametrize(
    ("text", "whole", "rest"),
    [
        ("SELECT 1;", ["SELECT 1"], ""),
        ("SELECT 1; SELECT 2; SEL", ["SELECT 1", "SELECT 2"], " SEL"),
        ("SELECT ';' AS \";\";", ["SELECT ';' AS \";\""], ""),
        ("SELECT 'it''s; '", [], "SELECT 'it''s; '"),
        ("SELECT 'open;", [], "SELECT 'open;"),
        ("SELECT 1 -- a; b\n;", ["SELECT 1 -- a; b"], ""),
        ("/* a; */ SELECT 1 - 2 / 3;", ["/* a; */ SELECT 1 - 2 / 3"], ""),
        (";; -- nothing\n", [], ""),
    ],
)
def test_a_semicolon_ends_a_statement_unless_it_is_quoted(
    text: str, whole: list[str], rest: str
) -> None:
    assert split(text) == (whole, rest)


def test_sql_goes_on_over_lines(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.take("SELECT 1 AS a,")
    assert shell.take(".5 AS b;")
    assert capsys.readouterr() == ("a,b\n1,0.5\n", "")


def test_a_mistake_is_one_line_and_the_shell_goes_on(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    for line in (
        "SELECT short_nam FROM slice;",
        "DROP VIEW slice;",
        ".run nothing",
        ".schema slic",
        ".x",
        ".format parquet",
        ".limit many",
        ".run 'open",
    ):
        assert shell.take(line)
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("error: ")
        assert err.count("\n") == 1
    assert shell.take("SELECT 1 AS a;")
    assert capsys.readouterr().out == "a\n1\n"


def test_commands_do_what_help_says(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.take(".help")
    assert ".schema TABLE" in capsys.readouterr().out
    shell.take(".format json")
    shell.take(".tables")
    assert "slice" in {row["name"] for row in json.loads(capsys.readouterr().out)}
    shell.take(".schema slice")
    assert json.loads(capsys.readouterr().out)[0]["name"] == "id"
    shell.take(".queries")
    assert "steps" in {row["name"] for row in json.loads(capsys.readouterr().out)}
    shell.take(".run op_times top=1")
    assert len(json.loads(capsys.readouterr().out)) == 1
    shell.take(".format table")
    shell.take("SELECT range AS n FROM range(5);")
    assert "(3 of 5 rows left out; .limit 0 shows all)" in capsys.readouterr().out
    shell.take(".limit 0")
    shell.take("SELECT range AS n FROM range(5);")
    assert "left out" not in capsys.readouterr().out
    assert shell.take(".quit") is False


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (".s", [".schema"]),
        (".schema k", ["kernel"]),
        (".run o", ["op_times"]),
        ("SELECT * FROM k", ["kernel"]),
        ("SELECT * FROM kernel AS k WHERE k.n", ["k.name"]),
        ("SELECT * FROM kernel k JOIN slice s ON s.i", ["s.id"]),
        ("SELECT * FROM kernel WHERE na", ["name"]),
        ("se", ["select"]),
        ("SE", ["SELECT"]),
        ("SELECT nothing_like", []),
    ],
)
def test_completion_knows_tables_aliases_and_keywords(text: str, found: list[str]) -> None:
    assert completions(text, WORDS) == found


def test_completion_sees_the_lines_before() -> None:
    assert completions("WHERE t", WORDS, earlier="SELECT *\nFROM slice\n") == ["ts"]


def test_on_a_terminal_it_completes_keeps_history_and_leaves(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "replay", "sql", str(TRACE)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "TERM": "dumb"},
    )
    os.close(slave)
    _until(master, "replay> ")
    os.write(master, b"SELECT cou\t(*) AS n FROM sli\t\n;\n")
    assert "error" not in _until(master, "n\r\n")
    os.write(master, b"SELECT 1\x03")
    _until(master, "replay> ")
    os.write(master, b".quit\n")
    _until(master, "\0", seconds=3)
    assert process.wait(10) == 0
    os.close(master)
    assert "AS n FROM" in (tmp_path / "trace-replay" / "sql_history").read_text(encoding="utf-8")


def _until(terminal: int, word: str, *, seconds: float = 30) -> str:
    """What the terminal shows until the word comes, it closes, or time is up."""
    shown = ""
    end = time.monotonic() + seconds
    while word not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                shown += os.read(terminal, 65536).decode()
            except OSError:
                break
    return shown
