"""Markdown as GitHub reads it."""

import re

from msgspec.structs import replace

from tests.unit.postmortem.sample_report import HOSTILE, kernels, sample_report
from whatif.postmortem.render.markdown import MOST_LETTERS, code, markdown, plain, prose


def _tables(text: str) -> list[list[str]]:
    """Runs of lines that are rows."""
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith("|"):
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [table for table in found if table]


def _cells(row: str) -> int:
    return len(re.findall(r"(?<!\\)\|", row)) - 1


def test_rows_have_as_many_cells_as_their_heads() -> None:
    tables = _tables(markdown(sample_report()))
    assert len(tables) >= 6
    for table in tables:
        assert {_cells(row) for row in table} == {_cells(table[0])}


def test_the_verdict_comes_first_and_then_the_findings() -> None:
    lines = markdown(sample_report()).splitlines()
    assert lines[0] == "# Post-mortem: runs/nanogpt &lt;8 ranks&gt;"
    assert lines[2].startswith("**Step 50.23 ms (p95 74.00).")
    text = "\n".join(lines)
    assert text.index("8.00 ms (6.00-11.00 ms), with every rank as") < text.index(
        "## 1 Can this be trusted"
    )


def test_names_mean_nothing_to_markdown_or_html() -> None:
    text = markdown(sample_report())
    outside = re.sub(r"(`+).*?\1", "", text)
    assert "<img" not in outside
    assert plain("a|b*c_d<e>`f`") == r"a\|b\*c\_d&lt;e&gt;\`f\`"
    assert code("a|b`c") == r"``a\|b`c``"
    assert code("`x`") == "`` `x` ``"
    assert "\n" not in code(HOSTILE)


def test_backticks_in_our_words_mark_what_is_typed() -> None:
    assert prose("record with `record_shapes=True`, a_b") == (
        r"record with `record_shapes=True`, a\_b"
    )
    assert prose("one ` alone") == r"one \` alone"


def test_bars_are_full_and_in_proportion() -> None:
    text = markdown(sample_report())
    row = next(line for line in text.splitlines() if line.startswith("| rank 3 "))
    bar = row.split("|")[-2].strip()
    assert (bar.count("█"), bar.count("▒"), bar.count("░")) == (12, 1, 7)
    assert "| ██████████ 9.00 ms |" in text
    assert "| █████░░░░░ 4.50 ms |" in text


def test_left_out_rows_are_counted() -> None:
    assert "332 more rows." in markdown(sample_report())


def test_a_long_report_still_fits_a_comment() -> None:
    report = sample_report()
    sections = tuple(
        replace(report.sections[0], key=f"s{at}", blocks=(kernels(),) * 12) for at in range(15)
    )
    text = markdown(replace(report, sections=sections))
    assert len(text) <= MOST_LETTERS
    assert "see the HTML report" in text
