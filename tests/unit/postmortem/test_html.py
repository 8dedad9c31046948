"""The page: complete, of one piece, safe, and with the numbers of the report."""

import re
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from tests.unit.postmortem.sample_report import HOSTILE, kernels, sample_report, trust
from whatif.postmortem.contract import Report
from whatif.postmortem.render.html import page
from whatif.report.blocks import DataTable, Words

VOID = {"meta", "link", "img", "input", "br", "hr", "base"}
MOST_BYTES = 500_000


class _Page(HTMLParser):
    """Tags, ids and numbers of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def report() -> Report:
    return sample_report()


@pytest.fixture(scope="module")
def text(report: Report) -> str:
    return page(report)


@pytest.fixture(scope="module")
def parsed(text: str) -> _Page:
    return _Page(text)


def test_tags_are_closed_in_order_and_ids_are_unique(parsed: _Page) -> None:
    assert parsed.open == []
    ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_every_link_leads_to_a_place_on_the_page(parsed: _Page) -> None:
    ids = {attributes.get("id") for _, attributes in parsed.tags}
    links = [attributes["href"] or "" for tag, attributes in parsed.tags if tag == "a"]
    assert links
    assert {link.removeprefix("#") for link in links} <= ids


def test_nothing_is_loaded_and_no_name_becomes_a_tag(parsed: _Page, text: str) -> None:
    assert not [tag for tag, _ in parsed.tags if tag in {"img", "link", "iframe", "object"}]
    assert sum(tag == "script" for tag, _ in parsed.tags) == 2
    for _, attributes in parsed.tags:
        assert "src" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
    assert "default-src 'none'" in text
    assert not re.search("[\x00-\x08\u202a-\u202e]", text)


def test_a_page_has_one_main_heading_a_language_and_landmarks(parsed: _Page) -> None:
    tags = [tag for tag, _ in parsed.tags]
    assert [tags.count(tag) for tag in ("h1", "main", "nav", "header", "footer")] == [1] * 5
    assert ("html", {"lang": "en"}) in parsed.tags


def test_all_sections_findings_and_gaps_are_there(report: Report, text: str) -> None:
    for section in report.sections:
        assert f'id="{section.key}"' in text
    for finding in report.findings:
        assert f'id="finding-{finding.key}"' in text
    assert "<code>record_shapes=True</code>" in text


def test_numbers_of_tables_are_those_of_the_report(report: Report, parsed: _Page) -> None:
    tables = [
        block
        for section in report.sections
        for block in section.blocks
        if isinstance(block, DataTable)
    ]
    told = [
        cell
        for table in tables
        for row in table.rows
        for cell in row
        if isinstance(cell, int | float) and not isinstance(cell, bool)
    ]
    shown = [
        float(attributes["data-v"] or 0) for _, attributes in parsed.tags if "data-v" in attributes
    ]
    for number in told:
        assert float(number) in shown


def test_a_page_is_small(text: str) -> None:
    assert len(text.encode()) < MOST_BYTES


def test_long_tables_are_cut_with_a_word(report: Report) -> None:
    table = replace(kernels(), rows=kernels().rows[:1] * 1200)
    section = replace(report.sections[0], blocks=(table,))
    text = page(replace(report, sections=(section,)))
    assert text.count("<tr>") == 501
    assert "1,016 more rows are not shown; the SQL below has all." in text


def test_page_one_does_not_repeat_itself(report: Report) -> None:
    said = Words(paragraphs=(report.verdict.not_fixed,))
    table = replace(trust(), key="verdict.findings", title="Findings again")
    new = Words(paragraphs=("Something else.", report.verdict.sentence))
    first = replace(report.sections[0], blocks=(said, table, new))
    text = page(replace(report, sections=(first, *report.sections[1:])))
    assert text.count(report.verdict.not_fixed) == 1
    assert "Findings again" not in text
    assert "Something else." in text


def test_a_healthy_run_has_no_cards_and_files_left_out_are_told(report: Report) -> None:
    text = page(replace(report, findings=(), failed=(("rank3.json", f"is empty {HOSTILE}"),)))
    assert 'class="cards"' not in text
    assert "Left out: <code>rank3.json</code>" in text


def test_statements_in_cells_are_whole_and_folded(report: Report) -> None:
    sql = "WITH a AS (\n    SELECT 1 AS x\n)\nSELECT '" + "y" * 300 + '\' AS "<b>" FROM a'
    table = replace(kernels(), rows=((sql, "c", 1, 1, 0.1, None),))
    text = page(replace(report, sections=(replace(report.sections[0], blocks=(table,)),)))
    assert "<summary>WITH a AS (     SELECT 1 AS x …</summary>" in text
    assert "y" * 300 in text
    assert "<b>&quot;" not in text
