"""Report -> Markdown as GitHub shows it: short enough for a comment on a pull request."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from whatif.postmortem.contract import PAGE_ONE, Finding, Report, Section
from whatif.postmortem.render.page_one import new_on
from whatif.report.blocks import (
    Block,
    Cell,
    Column,
    DataTable,
    Lines,
    Query,
    StackedBars,
    Timeline,
    Unit,
    Words,
)
from whatif.report.charts.amounts import printable, told, told_range
from whatif.report.charts.as_table import table_of
from whatif.report.charts.svg import cut
from whatif.report.escaping import code, plain, prose

MOST_LETTERS = 65_000
"""A comment may have 65,536."""
ROWS_TRIED = (8, 5, 3)
"""Of each table: the most that keep the whole below `MOST_LETTERS`; then tables are left out."""
BAR_CELLS = 10
SHADES = "█▓▒░"
LONGEST_NAME = 60
_BACKTICKS = re.compile(r"`+")


def markdown(report: Report) -> str:
    """The whole, with as many rows of each table as a comment has room for."""
    for rows in ROWS_TRIED:
        text = "\n".join(_lines(report, rows)) + "\n"
        if len(text) <= MOST_LETTERS:
            return text
    return "\n".join(_lines(report, None)) + "\n"


def _lines(report: Report, rows: int | None) -> Iterator[str]:
    yield from (f"# Post-mortem: {plain(report.title)}", "")
    yield from (f"**{prose(report.verdict.sentence)}**", "")
    if report.verdict.not_fixed:
        yield from (prose(report.verdict.not_fixed), "")
    for name, reason in report.failed:
        yield from (f"Left out: {code(name)}: {prose(reason)}", "")
    yield from _findings(report.findings)
    for number, section in enumerate(report.sections):
        blocks = section.blocks
        if section.key == PAGE_ONE:
            blocks = tuple(new_on(section, report))
        else:
            yield from (f"## {number} {plain(section.title)}", "", prose(section.summary), "")
        yield from _blocks(blocks, rows)
        yield from _missing(section)
    yield f"{plain(report.program)}: {code(report.command)}"


def _findings(findings: Sequence[Finding]) -> Iterator[str]:
    if not findings:
        return
    yield from ("| finding | saves a step | do | confidence |", "|---|---:|---|---|")
    for finding in findings:
        cells = (
            f"**{prose(finding.insight)}**",
            _saving(finding),
            prose(finding.action),
            f"{finding.confidence.value}: {prose(finding.why_confidence)}",
        )
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield from _folded("Evidence", _evidence(findings))


def _saving(finding: Finding) -> str:
    if finding.saving_ns is None:
        return told(None, Unit.NS)
    value = told(finding.saving_ns, Unit.NS)
    if finding.is_bound:
        value = f"at most {value}"
    elif finding.saving_low_ns is not None and finding.saving_high_ns is not None:
        value += f" ({told_range(finding.saving_low_ns, finding.saving_high_ns, Unit.NS)})"
    if finding.what_if:
        value += f", with {prose(finding.what_if)}"
    lacks = finding.not_in_range
    return f"{value}; not in the range: {prose(lacks)}" if lacks else value


def _evidence(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        flag = f" Replayed with {code(finding.flag)}." if finding.flag else ""
        yield from (f"**{prose(finding.insight)}** {prose(finding.evidence)}{flag}", "")
        yield from _query(finding.query)


def _query(query: Query | None) -> Iterator[str]:
    """The command where there is one, as it is shorter than the statement."""
    if query is None:
        return
    text = query.command or query.sql
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    yield from (f"{fence}{'sh' if query.command else 'sql'}", printable(text), fence, "")


def _blocks(blocks: Sequence[Block], rows: int | None) -> Iterator[str]:
    """The first as it is, the rest folded."""
    if rows is None:
        if blocks:
            yield from (f"{len(blocks)} tables and charts: see the HTML report.", "")
        return
    for block in blocks[:1]:
        yield from _block(block, rows)
    if rest := blocks[1:]:
        yield from _folded(_more(rest), (line for block in rest for line in _block(block, rows)))


def _missing(section: Section) -> Iterator[str]:
    for one in section.missing:
        yield f"- Cannot tell: {prose(one.what)} ({prose(one.how)})"
    if section.missing:
        yield ""


def _more(blocks: Sequence[Block]) -> str:
    titles = [block.title for block in blocks if not isinstance(block, Words)]
    return plain(cut("; ".join(titles), 200)) or "More"


def _folded(summary: str, lines: Iterator[str]) -> Iterator[str]:
    yield from ("<details>", f"<summary>{summary}</summary>", "", *lines, "</details>", "")


def _block(block: Block, rows: int) -> Iterator[str]:
    if isinstance(block, Words):
        for paragraph in block.paragraphs:
            yield from (prose(paragraph), "")
        return
    yield from (f"**{prose(block.title)}**", "")
    if block.about:
        yield from (prose(block.about), "")
    match block:
        case Lines():
            yield from (f"- {told(x, block.x_unit)}: {prose(word)}" for x, word in block.marks)
            yield ""
        case Timeline():
            pass
        case StackedBars():
            yield from _stacked(block, rows)
        case DataTable():
            yield from _table(block, rows)
        case _:
            yield from _table(table_of(block), rows)


def _stacked(block: StackedBars, rows: int) -> Iterator[str]:
    """Its numbers, with bars of shades where there are enough of them."""
    table = table_of(block)
    parts = block.parts
    if len(parts) > len(SHADES):
        yield from _table(table, rows)
        return
    heads = [f"{shade} {part.name}" for shade, part in zip(SHADES, parts, strict=False)]
    columns = [Column(name=name, unit=block.unit) for name in heads]
    yield from _table(
        DataTable(
            key=table.key,
            title=table.title,
            columns=(
                table.columns[0],
                *columns,
                table.columns[-1],
                Column(name="shares", unit=Unit.TEXT),
            ),
            rows=tuple((*row, _shares(row[1:-1], row[-1])) for row in table.rows),
        ),
        rows,
    )


def _shares(values: Sequence[Cell], whole: Cell) -> str:
    """A bar of `BAR_CELLS` x 2 cells; cell borders are rounded cumulatively, so that it is full."""
    if not isinstance(whole, int | float) or whole <= 0:
        return ""
    bar, before = "", 0.0
    for shade, value in zip(SHADES, values, strict=False):
        after = before + (value if isinstance(value, int | float) else 0)
        cells = round(2 * BAR_CELLS * after / whole) - round(2 * BAR_CELLS * before / whole)
        bar, before = bar + shade * cells, after
    return bar


def _table(table: DataTable, most: int) -> Iterator[str]:
    if not table.rows:
        yield from ("No rows.", "")
        return
    yield f"| {' | '.join(plain(column.name) or ' ' for column in table.columns)} |"
    sides = ["---" if column.unit in {Unit.TEXT, Unit.CODE} else "---:" for column in table.columns]
    yield f"|{'|'.join(sides)}|"
    largest = [_largest(table, at) for at in range(len(table.columns))]
    for row in islice(table.rows, most):
        cells = map(_cell, row, table.columns, largest)
        yield f"| {' | '.join(cells)} |"
    yield ""
    left_out = table.left_out + max(0, len(table.rows) - most)
    if left_out:
        yield from (f"{left_out:,} more {'row' if left_out == 1 else 'rows'}.", "")


def _largest(table: DataTable, at: int) -> float:
    if not table.columns[at].has_bar:
        return 0.0
    values = (row[at] for row in table.rows)
    return max((abs(value) for value in values if isinstance(value, int | float)), default=0.0)


def _cell(value: Cell, column: Column, largest: float) -> str:
    text = told(value, column.unit)
    if column.unit is Unit.CODE and value is not None:
        return code(cut(text, LONGEST_NAME))
    if largest > 0 and isinstance(value, int | float):
        cells = round(BAR_CELLS * abs(value) / largest)
        return f"{'█' * cells}{'░' * (BAR_CELLS - cells)} {text}"
    return plain(cut(text, 3 * LONGEST_NAME))
