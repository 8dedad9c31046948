"""The command beside a table of a report gives the rows of the table."""

import json
import shlex
from pathlib import Path

from replay.api import Window
from tests.cli.calls import Run
from tests.material import material_of
from whatif.postmortem.sections import host, kernels, memory
from whatif.report.blocks import DataTable, Query

TRACE = Path("sample_traces/ddp8_h100")
FEWER = {"kernels.rates", "kernels.types"}
"""Rows of a query put together, or those that tell a rate."""


def _tables() -> dict[str, tuple[Query, int]]:
    """Command and number of rows of every table with one row for each of its query."""
    with material_of(TRACE, window=Window(ranks=(0, 2), steps=range(11, 12))) as material:
        sections = [module.section(material) for module in (kernels, host, memory)]
    return {
        block.key: (block.query, len(block.rows) + block.left_out)
        for section in sections
        for block in section.blocks
        if isinstance(block, DataTable) and block.query is not None and block.key not in FEWER
    }


def test_each_command_gives_the_rows_of_its_table(run: Run) -> None:
    told = _tables()
    assert len(told) > 5
    for query, rows in told.values():
        outcome = run(*shlex.split(query.command)[1:], "--json")
        assert (outcome.code, outcome.err) == (0, "")
        assert len(json.loads(outcome.out)) == rows
