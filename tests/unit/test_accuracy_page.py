"""The accuracy page can be made again by its command."""

from pathlib import Path

import pytest

from tests.bench.accuracy import DOC, SECTIONS, trace_sets, written
from tests.bench.tables import Table


@pytest.mark.parametrize("name", [name for name, _ in SECTIONS])
def test_page_has_a_place_for_each_table_and_only_that_is_written(name: str) -> None:
    page = DOC.read_text(encoding="utf-8")
    changed = written(page, name, ["| a |", "|---|"])
    before, old = page.split(f"<!-- {name}: begin -->\n")
    assert changed.startswith(f"{before}<!-- {name}: begin -->\n| a |\n|---|\n<!-- {name}: end -->")
    assert changed.endswith(old.split(f"<!-- {name}: end -->")[1])


def test_page_without_a_mark_is_not_written() -> None:
    with pytest.raises(AssertionError, match="no mark"):
        written("# Accuracy\n", "strict", [])


def test_files_of_a_run_are_one_set_and_unrelated_ones_each_their_own(tmp_path: Path) -> None:
    for name in ("run/rank0.json", "run/rank1.json.gz", "single/a.json", "pair_x/b.json.gz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = {name: [file.name for file in files] for name, files in trace_sets(tmp_path).items()}
    assert found == {
        "pair_x/b": ["b.json.gz"],
        "run": ["rank0.json", "rank1.json.gz"],
        "single/a": ["a.json"],
    }


def test_numbers_of_a_table_stand_to_the_right() -> None:
    table = Table(head=("set", "error"), rows=(("a", "+1.00%"),))
    assert list(table.lines()) == ["| set | error |", "|---|---:|", "| a | +1.00% |"]
