"""Section `appendix`: SQL behind the figures, thresholds, words, versions, oddities of files."""

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from whatif.postmortem.contract import SCHEMA_VERSION, Finding, Section
from whatif.postmortem.glossary import GLOSSARY
from whatif.postmortem.material import Material, Rows
from whatif.postmortem.tabling import column, rows_table, table
from whatif.postmortem.thresholds_told import rules_told
from whatif.report.answer import SCHEMA_VERSION as ANSWER_VERSION
from whatif.report.blocks import Block, Column, DataTable, Query, Ranges, Unit, Words, details

KEY = "appendix"
TITLE = "Appendix"
MOST = 1_000
"""Nothing of an appendix is cut but what no run has."""

Rule = Callable[[Material], Finding | None]


def section(
    material: Material, sections: Sequence[Section], *, rules: Sequence[Rule], program: str
) -> Section:
    """What the rest of the report rests on.

    Args:
        material: the run.
        sections: all others, whose queries are listed.
        rules: of the findings.
        program: name and version.
    """
    queries = _queries(sections)
    issues = material.ask("import_issues")
    return Section(
        key=KEY,
        title=TITLE,
        summary=f"{len(queries)} queries give the figures; {_odd(issues)}.",
        blocks=(
            _words(material),
            *details(
                *_query_table(queries),
                *_rules(rules),
                _glossary(),
                *_oddities(material),
                _versions(material, program),
            ),
        ),
    )


def _odd(issues: Rows) -> str:
    """The query's first row is the worst."""
    if not issues.rows:
        return "nothing was odd in the files"
    kinds = len(issues.rows)
    noun = "kind of oddity" if kinds == 1 else "kinds of oddities"
    return f"{kinds} {noun} in the files, the worst of severity {issues.column('severity')[0]}"


def _words(material: Material) -> Words:
    return Words(
        paragraphs=(
            f"This report was made by `{material.command}`. "
            f"`replay report {material.trace} -o report.json` writes the same as data, "
            "`-o report.md` as Markdown; a block has its own `query`, which `replay sql` runs "
            "word for word.",
            f"`replay export {material.trace} -o run.json.gz` writes the timeline for "
            "ui.perfetto.dev or chrome://tracing, with the critical path and the waits; with "
            "what-ifs also the predicted run. `replay check` says more of how far the replay can "
            "be trusted.",
        )
    )


def _queries(sections: Sequence[Section]) -> dict[str, tuple[Query, list[str]]]:
    """By command: the query, and the blocks that show it."""
    found: dict[str, tuple[Query, list[str]]] = {}
    for one in sections:
        for block in one.blocks:
            if isinstance(block, (Words, Ranges)) or block.query is None:
                continue
            found.setdefault(block.query.command, (block.query, []))[1].append(block.key)
    return found


QUERIES: dict[str, Column] = {
    "blocks": column("shown in", Unit.TEXT, "Blocks with the query's rows."),
    "command": column("command", Unit.CODE),
    "sql": column("SQL", Unit.CODE, "Parameters as in the command, else as its header has them."),
}


def _query_table(queries: Mapping[str, tuple[Query, Sequence[str]]]) -> Iterator[Block]:
    if queries:
        yield table(
            key="appendix.queries",
            title="SQL behind the figures",
            columns=QUERIES,
            records=[
                {"blocks": ", ".join(blocks), "command": query.command, "sql": query.sql}
                for query, blocks in queries.values()
            ],
            query=None,
            about="Views and tables are described by `replay schema`.",
            most=MOST,
        )


RULES: dict[str, Column] = {
    "rule": column("finding", Unit.CODE),
    "about": column("looks for", Unit.TEXT),
    "threshold": column("threshold", Unit.CODE),
    "value": column("value", Unit.TEXT),
    "reason": column("why", Unit.TEXT),
}


def _rules(rules: Sequence[Rule]) -> Iterator[Block]:
    told = rules_told(rules)
    if told:
        yield table(
            key="appendix.rules",
            title="Findings that were looked for",
            columns=RULES,
            records=[
                {
                    "rule": one.rule,
                    "about": one.about,
                    "threshold": one.threshold,
                    "value": None if one.value is None else f"{one.value:g}",
                    "reason": one.reason,
                }
                for one in told
            ],
            query=None,
            about="A rule that found nothing is not mentioned elsewhere. Shares (FRAC) are of 1.",
            most=MOST,
        )


def _glossary() -> DataTable:
    return table(
        key="appendix.definitions",
        title="Definitions",
        columns={
            "term": column("term", Unit.TEXT),
            "meaning": column("meaning", Unit.TEXT),
        },
        records=[{"term": term, "meaning": meaning} for term, meaning in GLOSSARY],
        query=None,
        most=MOST,
    )


ODDITIES: dict[str, Column] = {
    "name": column("oddity", Unit.CODE),
    "severity": column(
        "severity", Unit.TEXT, "error: a file was left out; data_loss: totals are too low."
    ),
    "value": column("places", Unit.COUNT),
    "files": column("files", Unit.COUNT),
    "description": column("what was done", Unit.TEXT),
    "first_offset": column("first at byte", Unit.COUNT),
}


def _oddities(material: Material) -> Iterator[Block]:
    rows = material.ask("import_issues")
    if rows.rows:
        yield rows_table(
            rows,
            key="appendix.oddities",
            title="What was odd in the files",
            columns=ODDITIES,
            about="Of all files of the store, whatever ranks and steps the report is of.",
            most=MOST,
        )


def _versions(material: Material, program: str) -> DataTable:
    store: Mapping[str, Any] = dict(material.ask("store_versions").rows)
    records = [
        {"what": "program", "version": program},
        {"what": "Python", "version": platform.python_version()},
        {"what": "report, as JSON", "version": f"schema {SCHEMA_VERSION}"},
        {"what": "answer of a what-if, as JSON", "version": f"schema {ANSWER_VERSION}"},
        *({"what": f"store: {key}", "version": value} for key, value in store.items()),
    ]
    return table(
        key="appendix.versions",
        title="Versions",
        columns={"what": column("of", Unit.TEXT), "version": column("version", Unit.TEXT)},
        records=records,
        query=None,
    )
