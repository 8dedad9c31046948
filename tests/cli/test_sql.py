"""The tables of a run on the command line."""

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest

from replay.cli.options import RowsFormat
from replay.cli.rows import Room, write_rows
from replay.table import Table
from tests.cli.calls import Run

TRACE = "sample_traces/ddp8_h100"
QUERY = """
    SELECT rank, count(*) AS files, NULL AS nothing, 'a,b' AS text
    FROM trace GROUP BY rank ORDER BY rank LIMIT 2
"""


def test_rows_are_a_table_to_read(run: Run) -> None:
    outcome = run("sql", TRACE, QUERY)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (
        "rank  files  nothing  text\n   0      1        -  a,b\n   1      1        -  a,b\n"
    )


def test_rows_are_csv(run: Run) -> None:
    rows = list(csv.reader(io.StringIO(run("sql", TRACE, QUERY, "--format", "csv").out)))
    assert rows == [
        ["rank", "files", "nothing", "text"],
        ["0", "1", "", "a,b"],
        ["1", "1", "", "a,b"],
    ]


def test_rows_are_one_json_array_of_objects(run: Run) -> None:
    rows = json.loads(run("sql", TRACE, QUERY, "--json").out)
    assert rows == [
        {"rank": 0, "files": 1, "nothing": None, "text": "a,b"},
        {"rank": 1, "files": 1, "nothing": None, "text": "a,b"},
    ]


def test_no_rows_are_an_empty_array(run: Run) -> None:
    assert json.loads(run("sql", TRACE, "SELECT 1 AS a WHERE false", "--json").out) == []
    assert run("sql", TRACE, "SELECT 1 AS a WHERE false").out == "a\n"


@pytest.mark.parametrize(
    "query",
    [
        "SELEC 1",
        "SELECT * FROM nosuch",
        "SELECT nosuch FROM kernel",
        "",
        "CREATE TABLE x (a INTEGER)",
        "DELETE FROM store.slice",
        "DROP VIEW kernel",
        "COPY (SELECT 1) TO 'out.csv'",
        "ATTACH 'other.duckdb'",
        "SELECT * FROM read_csv('pyproject.toml')",
        "SELECT 1; SELECT 2",
    ],
)
def test_bad_sql_and_writes_are_refused_in_one_line(run: Run, query: str) -> None:
    outcome = run("sql", TRACE, query)
    assert (outcome.code, outcome.out) == (2, "")
    error, *rest = outcome.err.splitlines()
    assert error.startswith("error: ")
    assert all(line == "" or line.startswith("hint: ") for line in rest)
    assert not Path("out.csv").exists()


def test_the_schema_lists_every_table_with_its_meaning(run: Run) -> None:
    rows = json.loads(run("schema", "--json").out)
    names = {row["name"] for row in rows}
    assert {"trace", "slice", "kernel", "collective", "collective_rank", "import_stat"} <= names
    assert rows == json.loads(run("schema", TRACE, "--json").out)


def test_the_schema_of_a_table_lists_its_columns(run: Run) -> None:
    rows = json.loads(run("schema", "kernel", "--json").out)
    assert {"id", "rank", "ts", "dur", "class"} <= {row["name"] for row in rows}
    assert rows == json.loads(run("schema", TRACE, "kernel", "--json").out)


def test_an_unknown_table_names_the_nearest(run: Run) -> None:
    outcome = run("schema", "kernels")
    assert outcome.code == 2
    assert "kernel" in outcome.err.splitlines()[2]


def test_a_query_comes_from_a_file_or_stdin(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.sql"
    file.write_text("-- param n BIGINT 1 A number.\nSELECT $n + 1 AS a; -- end\n", encoding="utf-8")
    assert run("sql", TRACE, "-f", file).out == "a\n2\n"
    assert run("sql", TRACE, "-f", file, "--param", "n=4").out == "a\n5\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 3 AS a"))
    assert run("sql", TRACE).out == "a\n3\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("  \n"))
    outcome = run("sql", TRACE)
    assert (outcome.code, outcome.out) == (2, "")
    assert "no query is given" in outcome.err


def test_values_of_a_query_are_given_by_name(run: Run) -> None:
    out = run("sql", TRACE, "SELECT $a + 1 AS a, $b AS b", "--param", "a=1", "--param", "b=x").out
    assert out == "a  b\n2  x\n"
    assert run("sql", TRACE, "SELECT $a").code == 2


@pytest.mark.parametrize("suffix", ["csv", "json", "md", "txt", "parquet"])
def test_the_ending_of_a_file_says_its_format(run: Run, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"rows.{suffix}"
    outcome = run("sql", TRACE, QUERY, "-o", file)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == f"2 rows written to {file}\n"
    forms = {"md": "markdown", "txt": "table"}
    if suffix == "parquet":
        assert pl.read_parquet(file)["rank"].to_list() == [0, 1]
    else:
        printed = run("sql", TRACE, QUERY, "--format", forms.get(suffix, suffix)).out
        assert file.read_text(encoding="utf-8") == printed
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize(
    "options",
    [
        ["--format", "parquet"],
        ["-o", "rows.xyz"],
        ["-o", "no/such/folder/rows.csv"],
        ["--format", "csv", "--limit", "1"],
    ],
)
def test_a_form_that_cannot_be_is_refused(run: Run, options: list[str]) -> None:
    outcome = run("sql", TRACE, QUERY, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert "error: " in outcome.err


def test_rows_are_never_written_over_the_trace(run: Run, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_bytes(Path("sample_traces/tiny/cpu_only.json").read_bytes())
    before = trace.read_bytes()
    outcome = run("sql", trace, "SELECT 1", "-o", trace)
    assert (outcome.code, "not overwritten" in outcome.err) == (2, True)
    assert trace.read_bytes() == before


def test_a_table_says_what_it_leaves_out(run: Run) -> None:
    out = run(
        "sql", TRACE, "SELECT range AS n, repeat('x', 70) AS t FROM range(1500)", "--limit", "2"
    ).out
    assert out.splitlines()[-2:] == [
        "(2 cells cut to 60 characters; --format csv has them whole)",
        "(1,498 of 1,500 rows left out; --limit 0 shows all)",
    ]
    whole = run("sql", TRACE, "SELECT range AS n FROM range(1500)").out
    assert len(whole.splitlines()) == 1501


def test_columns_that_do_not_fit_are_named() -> None:
    table = Table(names=("a", "bb", "c"), rows=((1, "x" * 30, 3),))
    text = write_rows(table, RowsFormat.TABLE, Room(width=20))
    assert text == ("a\n1\n(columns left out, they do not fit: bb, c; --format csv has them)\n")
    fits = write_rows(table, RowsFormat.TABLE, Room(width=34))
    assert fits.splitlines()[1] == f"1  {'x' * 23}…  3"


def test_markdown_escapes_what_would_end_a_cell() -> None:
    table = Table(names=("a", "n"), rows=(("x|y", 1), (None, 2)))
    assert write_rows(table, RowsFormat.MARKDOWN) == (
        "| a | n |\n| --- | ---: |\n| x\\|y | 1 |\n| - | 2 |\n"
    )


def test_bad_sql_names_the_nearest(run: Run) -> None:
    assert 'Did you mean "kernel"?' in run("sql", TRACE, "SELECT * FROM kernels").err
    assert '"short_name"' in run("sql", TRACE, "SELECT short_nam FROM kernel").err.splitlines()[0]
    refused = run("sql", TRACE, "WITH x AS (DELETE FROM store.meta RETURNING *) SELECT * FROM x")
    assert refused.code == 2
    assert "read-only" in refused.err


def test_a_plan_is_shown_as_it_is_drawn(run: Run) -> None:
    assert "\n│" in run("sql", TRACE, "EXPLAIN SELECT 1").out


def test_tables_are_counted(run: Run) -> None:
    rows = {row["name"]: row for row in json.loads(run("tables", TRACE, "--counts", "--json").out)}
    assert rows["trace"]["rows"] == 8
    assert set(rows) == {row["name"] for row in json.loads(run("schema", "--json").out)}
    assert "rows" not in json.loads(run("tables", TRACE, "--json").out)[0]
    assert run("tables", "missing.json").code == 3


def test_descriptions_are_never_cut(run: Run) -> None:
    assert "…" not in run("schema", "kernel").out
    assert "attention, convolution" in run("schema", "kernel").out
