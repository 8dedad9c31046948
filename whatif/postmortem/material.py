"""What sections are written from: the findings of a run, and a way to ask its tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from whatif.compare.contract import Diff
from whatif.postmortem.contract import Finding
from whatif.postmortem.replays import Replays
from whatif.recorded import NOTHING_SAID, Recorded
from whatif.report.answer import Answer
from whatif.report.blocks import Query
from whatif.report.findings import Findings
from whatif.report.levers import LeversAnswer

Value = int | float | bool | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of a query, and the query."""

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    query: Query
    left_out: int = 0

    def column(self, name: str) -> tuple[Any, ...]:
        """Values of one column, in the order of the rows."""
        at = self.names.index(name)
        return tuple(row[at] for row in self.rows)

    def dicts(self) -> tuple[Mapping[str, Any], ...]:
        """One mapping a row."""
        return tuple(dict(zip(self.names, row, strict=True)) for row in self.rows)


class Ask(Protocol):
    """Asks a named query (`replay/queries/NAME.sql`) on the tables of the run.

    The part of the run that counts (`$ranks`, `$first_step`, `$last_step`) is filled in where the
    query declares such parameters and the caller gives none.
    """

    def __call__(self, name: str, /, *, limit: int | None = None, **params: Value) -> Rows:
        """Rows of the query; at most `limit` where given, the rest is counted."""
        ...

    def query(self, name: str, /, **params: Value) -> Query:
        """The query as it would be asked, without running it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A trace file."""

    name: str
    rank: int | None
    events: int
    digest: str
    """SHA-256 of its bytes, hex."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A run as sections see it."""

    name: str
    """As a person would call the run: its folder or file."""
    trace: str
    """The run as it is typed after `replay sql`, quoted."""
    command: str
    """As it was typed."""
    findings: Findings
    answer: Answer
    """The same as the JSON contract says it."""
    levers: LeversAnswer
    """All what-ifs with their ranges."""
    sources: tuple[SourceFile, ...]
    ask: Ask
    replays: Replays | None = None
    """Asks what-ifs beside the levers; None where none can be asked."""
    recorded: Recorded = NOTHING_SAID
    """What was said of the recorded machine."""
    comparison: Diff | None = None
    """Against a baseline, as B; None where none was given."""
    found: tuple[Finding, ...] = ()
    """What the rules found, in their order; empty while they are asked."""
