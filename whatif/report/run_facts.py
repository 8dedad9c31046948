"""What the answers to several what-ifs at once say of the run that they start from."""

from typing import Protocol

import msgspec

from replay.graph.arrays import TaskGraph
from replay.graph.facts import GraphFacts
from replay.results.fidelity import Baseline
from whatif.report.answer import TraceFacts
from whatif.report.findings import Reading
from whatif.report.view import trace_facts


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The run, how far its replay can be trusted, and its mean step."""

    trace: TraceFacts
    grade: str
    strict_error_frac: float
    measured_ns: int
    replayed_ns: int
    """What scenarios are compared with."""


class ReplayedRun(Protocol):
    """A run that was read and replayed."""

    @property
    def graph(self) -> TaskGraph:
        """Its tasks."""
        ...

    @property
    def facts(self) -> GraphFacts:
        """Of the same."""
        ...

    @property
    def baseline(self) -> Baseline:
        """Its unchanged replay."""
        ...

    @property
    def reading(self) -> Reading:
        """How its files were read."""
        ...


def run_facts(run: ReplayedRun) -> RunFacts:
    """Of a run that was read and replayed."""
    baseline = run.baseline
    return RunFacts(
        trace=trace_facts(run.graph, run.facts, len(run.reading.failed)),
        grade=baseline.trust.grade,
        strict_error_frac=baseline.trust.strict_error_frac,
        measured_ns=baseline.measured.mean_ns,
        replayed_ns=baseline.replayed.mean_ns,
    )


def head(run: RunFacts) -> str:
    """The run in one line."""
    trace = run.trace
    ranks = f"{len(trace.ranks)} rank{'' if len(trace.ranks) == 1 else 's'}"
    return f"{ranks}, {trace.gpu or 'no GPU rows'}, trust {run.grade}" + (
        f"; {trace.made}" if trace.made else ""
    )
