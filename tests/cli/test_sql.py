"""The tables of a run on the command line."""

import csv
import io
import json
from pathlib import Path

import pytest

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
