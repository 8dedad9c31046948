"""docs/sql.md lists what is there, and its examples give rows."""

import json
import re
from pathlib import Path

import pytest

from ingest.store import VIEW_FILES, Store
from replay import api
from tests.cli.calls import ROOT, Run

TEXT = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```sql\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
SAMPLE = "sample_traces/ddp8_h100"


@pytest.mark.parametrize("query", EXAMPLES, ids=lambda query: query.split("FROM ")[1].split()[0])
def test_an_example_gives_rows(run: Run, query: str) -> None:
    named = re.search(r"-- of (sample_traces/\S+)\n", query)
    outcome = run("sql", named[1] if named else SAMPLE, query, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads(outcome.out)


def test_there_are_examples_enough() -> None:
    assert len(EXAMPLES) >= 12


def _listed(section: str) -> set[str]:
    """First names of the rows of the table in a section."""
    part = TEXT.split(f"\n## {section}\n")[1].split("\n## ")[0].split("\n### ")[0]
    cells = [line.split(" | ")[0] for line in part.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`(\w+)", cell)}


def test_every_table_and_view_is_listed_and_no_other() -> None:
    there = {row[0] for row in api.schema().rows}
    parts = [_listed(section) for section in ("Tables", "Views", "Replay")]
    assert set().union(*parts) == there
    assert sum(map(len, parts)) == len(there)


def test_every_macro_is_listed_and_no_other() -> None:
    with Store.create(Path(":memory:")) as store:
        for path in VIEW_FILES:
            store.run_file(path)
        macros = store.rows(
            "SELECT DISTINCT function_name FROM duckdb_functions()"
            " WHERE NOT internal AND schema_name = 'main'"
        )
    assert _listed("Macros") == {name for (name,) in macros}
