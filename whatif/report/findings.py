"""What was found out about a run: everything that an answer is written from."""

from dataclasses import dataclass
from pathlib import Path

from ingest.units import Nanos
from replay.graph.arrays import TaskGraph
from replay.graph.facts import GraphFacts
from replay.results.causes import NOT_FETCHING, Fetching
from replay.results.fidelity import Baseline
from replay.results.flops import NO_FLOPS, RecordedFlops
from replay.results.metrics import Breakdown
from whatif.levers import Lever
from whatif.report.rates import Workload
from whatif.report.reading import RunReading
from whatif.study import Study
from whatif.unprofiled import Unprofiled


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the traces were read, and how long the answer took."""

    failed: tuple[tuple[str, str], ...]
    """File and reason of those that could not be read."""
    store: Path | None
    """None when it is not kept."""
    store_bytes: int
    is_cached: bool
    """The store was there already."""
    seconds: float
    clean_step_ns: Nanos | None = None
    """Mean step without the profiler, where the recording measured it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """A run, its unchanged replay and, where a what-if was asked, its study."""

    reading: Reading
    graph: TaskGraph
    facts: GraphFacts
    baseline: Baseline
    breakdown: Breakdown
    """Of the unchanged replay."""
    run: RunReading
    """Of the unchanged replay."""
    workload: Workload
    """What a step is said to do; empty when nothing was said."""
    study: Study | None
    levers: tuple[Lever, ...] | None
    """None when they were not asked for."""
    unprofiled: Unprofiled | None = None
    """A step measured without the profiler, which graph and baseline then meet."""
    flops: RecordedFlops = NO_FLOPS
    """Of the recorded operators, by their shapes."""
    fetching: Fetching = NOT_FETCHING
    """When each rank was inside its data loader."""

    @property
    def recorded(self) -> Baseline:
        """Replays of the recording as it is: what trust is judged by."""
        return self.baseline if self.unprofiled is None else self.unprofiled.recorded
