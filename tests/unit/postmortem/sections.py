"""Sections of the report of small traces, for tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingest.pipeline import IngestOptions
from replay import api
from whatif.postmortem.contract import Section
from whatif.postmortem.material import Material
from whatif.report.blocks import Block, DataTable, StackedBars

Cells = dict[str, Any]
WITHOUT_CACHE = IngestOptions(cache=False)


def section_of(
    write: Callable[[Material], Section],
    paths: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    window: api.Window = api.WHOLE,
) -> tuple[Section, Material]:
    """One section of the report of a run, and what it was written from."""
    seen: list[tuple[Section, Material]] = []

    def keep(material: Material, *, program: str) -> None:
        del program
        seen.append((write(material), material))

    monkeypatch.setattr("replay.calls.reported.build_report", keep)
    api.report(paths, command="replay report", window=window, options=WITHOUT_CACHE)
    return seen[0]


def block_of(section: Section, key: str) -> Block:
    """The block of that key."""
    return next(block for block in section.blocks if getattr(block, "key", "") == key)


def rows_of(section: Section, key: str) -> list[Cells]:
    """Rows of a table by the names of their columns."""
    table = block_of(section, key)
    assert isinstance(table, DataTable)
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def bars_of(section: Section, key: str) -> dict[str, dict[str, float | None]]:
    """Category to the values of the parts that are not zero."""
    bars = block_of(section, key)
    assert isinstance(bars, StackedBars)
    return {
        category: {part.name: part.values[place] for part in bars.parts if part.values[place]}
        for place, category in enumerate(bars.categories)
    }
