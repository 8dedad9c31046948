"""The list of known oddities and their counter."""

from pathlib import Path

import pytest

import ingest
from ingest.issues import ISSUES, LOG_LIMIT, IssueLog
from ingest.vocab import Severity

SOURCES = {
    path: path.read_text(encoding="utf-8")
    for path in Path(ingest.__file__).parent.rglob("*.py")
    if path.name != "issues.py"
}


@pytest.mark.parametrize("name", [issue.name for issue in ISSUES])
def test_every_known_oddity_is_counted_somewhere(name: str) -> None:
    assert [path.name for path, text in SOURCES.items() if f'"{name}"' in text]


def test_every_oddity_has_one_name_and_says_what_it_is() -> None:
    assert len({issue.name for issue in ISSUES}) == len(ISSUES)
    assert all(issue.description for issue in ISSUES)


def test_only_the_first_places_of_a_kind_are_kept_and_all_are_counted() -> None:
    log = IssueLog()
    for number in range(LOG_LIMIT + 5):
        log.at("bad_escape", byte_offset=number, excerpt="x" * 900, action="kept")
    log.at("truncated", byte_offset=7, excerpt="", action="kept")
    assert log.counts == {"bad_escape": LOG_LIMIT + 5, "truncated": 1}
    assert [place.byte_offset for place in log.places] == [*range(LOG_LIMIT), 7]
    assert max(len(place.excerpt) for place in log.places) == 200


def test_nothing_is_counted_where_nothing_happened() -> None:
    log = IssueLog()
    log.count("unlinked", 0)
    assert list(log.stats()) == []


def test_repairs_are_what_strict_reading_refuses() -> None:
    log = IssueLog()
    for issue in ISSUES:
        log.count(issue.name, 2)
    harmless = {issue.name for issue in ISSUES if issue.severity is Severity.INFO}
    assert set(log.repairs) == {issue.name for issue in ISSUES} - harmless
    assert {name for name, *_ in log.stats()} == {issue.name for issue in ISSUES}


def test_a_name_that_is_not_listed_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="nonsense"):
        IssueLog().count("nonsense")
