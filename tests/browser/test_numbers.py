"""Numbers of the page: those of the JSON, and those of the SQL that the page itself shows."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from replay import api
from replay.asking import Asking
from tests.browser.conftest import SAMPLE, Show
from tests.cli.calls import ROOT
from tests.unit.postmortem.sample_report import sample_report
from whatif.postmortem.contract import Section
from whatif.postmortem.material import Rows
from whatif.postmortem.render.html import page as page_of
from whatif.report.blocks import Column, DataTable, Unit

pytestmark = pytest.mark.usefixtures("own_cache")
SAME = (
    ("trust.issues", "times", "value", 1),
    ("critical_path.longest", "takes", "total_ms", 1e6),
    ("communication.sizes", "size", "bytes", 1),
    ("communication.sizes", "busbw p50", "busbw_p50_bytes_per_s", 1),
    ("stragglers.ranks", "collectives", "collectives", 1),
    ("kernels.top", "count", "instances", 1),
    ("kernels.top", "longest", "max_dur", 1),
    ("kernels.lengths", "count", "instances", 1),
    ("host.lead", "launches", "launches", 1),
    ("host.calls", "count", "calls", 1),
    ("host.calls", "longest", "max_dur", 1),
)
"""Table and column of the report, column of its SQL, and what the latter is multiplied by."""
READ_TABLES = """() => Object.fromEntries(
  [...document.querySelectorAll("figure.table")].map(figure => [figure.closest("[id]").id, {
    heads: [...figure.querySelectorAll("thead th")].map(head => head.textContent),
    rows: [...figure.querySelectorAll("tbody tr")].map(row => [...row.cells].map(
      cell => cell.dataset.v === undefined ? null : Number(cell.dataset.v))),
    sql: figure.querySelector(".statement")?.textContent ?? "",
  }]))"""


def _numbers(rows: list[list[Any]]) -> list[list[Any]]:
    """Rows as the page's numbers: null for what is none."""
    return [
        [
            float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else None
            for cell in row
        ]
        for row in rows
    ]


def test_tables_of_the_page_are_those_of_the_json(show: Show, real_page: Path) -> None:
    shown = show(real_page).page.evaluate(READ_TABLES)
    report = json.loads(real_page.with_suffix(".json").read_text(encoding="utf-8"))
    tables = {
        block["key"]: block
        for section in report["sections"]
        for block in section["blocks"]
        if block["type"] == "table" and block["key"] in shown
    }
    assert set(shown) == set(tables)
    for key, table in tables.items():
        assert _numbers(shown[key]["rows"]) == _numbers(table["rows"][:500])


def test_the_sql_of_the_report_gives_its_numbers(show: Show, real_page: Path) -> None:
    shown = show(real_page).page.evaluate(READ_TABLES)
    there = [same for same in SAME if same[0] in shown]
    if not there:
        pytest.skip("no section writes these tables yet")
    with api.open_run([ROOT / SAMPLE]) as run:
        rows_of = {key: run.rows(shown[key]["sql"]) for key, *_ in there}
    for key, head, column, factor in there:
        table, found = shown[key], rows_of[key]
        at = [name.strip() for name in table["heads"]].index(head)
        expected = [row[found.names.index(column)] for row in found.rows]
        told = [row[at] for row in table["rows"]]
        scaled = [value * factor for value in expected[: len(told)]]
        assert told == pytest.approx(scaled, rel=1e-6), (key, head)


def test_all_sql_that_the_report_shows_can_be_run(show: Show, real_page: Path) -> None:
    page = show(real_page).page
    told = page.evaluate(
        "() => [...document.querySelectorAll('.statement')].map(one => one.textContent)"
    )
    with api.open_run([ROOT / SAMPLE]) as run:
        for statement in dict.fromkeys(told):
            assert run.rows(statement).names


def _table(key: str, rows: Rows) -> DataTable:
    """Rows as they come, the first column as names."""
    return DataTable(
        key=key,
        title=key,
        columns=tuple(
            Column(name=name, unit=Unit.COUNT if at else Unit.CODE)
            for at, name in enumerate(rows.names)
        ),
        rows=rows.rows,
        query=rows.query,
        left_out=rows.left_out,
    )


def test_rows_of_a_query_come_through_the_page_unchanged(show: Show, tmp_path: Path) -> None:
    names = ("kernel_times", "late_ranks", "steps")
    with api.open_run([ROOT / SAMPLE]) as run:
        asking = Asking(run, trace=SAMPLE, window={})
        blocks = tuple(_table(f"asked.{name}", asking(name)) for name in names)
    section = Section(key="asked", title="Asked", summary="", blocks=blocks)
    report = sample_report()
    path = tmp_path / "asked.html"
    path.write_text(page_of(replace(report, sections=(section,), findings=())), encoding="utf-8")
    shown = show(path).page.evaluate(READ_TABLES)
    for name in names:
        table = shown[f"asked.{name}"]
        again = api.sql([ROOT / SAMPLE], table["sql"])
        assert tuple(head.replace("\u2195", "").strip() for head in table["heads"]) == again.names
        assert _numbers(table["rows"]) == _numbers([list(row) for row in again.rows])
        assert len(again.rows) > 0
