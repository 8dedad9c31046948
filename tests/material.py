"""What sections of a report are written from, of files in a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ingest.pipeline import IngestOptions, open_run
from replay import api
from replay.asking import Asking
from replay.graph.build import build
from replay.results.kernel_work import find_kernel_work
from replay.run import Run
from tests.unit.report.findings import findings_of
from whatif.levers import lever_table
from whatif.postmortem.contract import Section
from whatif.postmortem.material import Material
from whatif.report.blocks import Block, DataTable, Lines, Scatter, StackedBars, Words
from whatif.report.levers import levers_answer
from whatif.report.run_facts import run_facts
from whatif.report.view import answer_of


@contextmanager
def material_of(*paths: Path, window: api.Window = api.WHOLE) -> Iterator[Material]:
    """The run of these files; it can be asked inside the block."""
    opened = open_run(paths, options=IngestOptions(cache=False))
    with Run(opened) as run:
        built = build(opened.store, ranks=window.ranks, steps=window.steps)
        work = find_kernel_work(opened.store, built.graph.names, built.facts)
        found = findings_of(replace(built.graph, work=work), facts=built.facts)
        asking = Asking(run, trace=" ".join(map(str, paths)), window=window.as_values())
        told = run_facts(found)
        yield Material(
            name="run",
            trace="run",
            command="replay report run",
            findings=found,
            answer=answer_of(found),
            levers=levers_answer(told, lever_table(found.graph, found.baseline)),
            sources=asking.sources(),
            ask=asking,
        )


def block_of(section: Section, key: str) -> Block:
    """The block of that key."""
    (found,) = (one for one in section.blocks if not isinstance(one, Words) and one.key == key)
    return found


def table_of(section: Section, key: str) -> DataTable:
    """The table of that key."""
    found = block_of(section, key)
    assert isinstance(found, DataTable)
    return found


def column_of(table: DataTable, name: str) -> list[object]:
    """Values of a column by its name."""
    at = [column.name for column in table.columns].index(name)
    return [row[at] for row in table.rows]


def keys_of(section: Section) -> list[str]:
    """Keys of the blocks that have one."""
    return [one.key for one in section.blocks if not isinstance(one, Words)]


def is_whole(section: Section) -> bool:
    """Rows are as wide as their table, values as many as categories, nothing is below zero."""
    return bool(section.summary) and all(map(_is_whole, section.blocks))


def _is_whole(block: Block) -> bool:
    if isinstance(block, DataTable):
        return all(len(row) == len(block.columns) for row in block.rows)
    if isinstance(block, StackedBars):
        parts = [value for part in block.parts for value in part.values]
        return all(len(part.values) == len(block.categories) for part in block.parts) and all(
            value is None or value >= 0 for value in parts
        )
    if isinstance(block, Lines):
        return all(len(line.values) == len(block.x) for line in block.lines)
    if isinstance(block, Scatter):
        return all(dot.x > 0 and dot.y > 0 for dot in block.dots)
    return True
