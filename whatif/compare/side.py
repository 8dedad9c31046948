"""One of the two runs that are compared."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from replay.graph.arrays import TaskGraph
from replay.graph.facts import GraphFacts
from replay.results.causes import NOT_FETCHING, Fetching
from replay.results.fidelity import Baseline
from whatif.report.reading import RunReading


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A run that was read and replayed as it is."""

    name: str
    """As typed: the run's folder or file."""
    graph: TaskGraph
    facts: GraphFacts
    baseline: Baseline
    reading: RunReading
    fetching: Fetching = NOT_FETCHING
    frames: Mapping[int, str] = field(default_factory=dict)
    """Python frames around silent host tasks, by task; empty where no stacks were recorded."""
    failed: tuple[tuple[str, str], ...] = ()
    """Files that could not be read, and why."""
