"""How far a replay can be trusted: strict error, explained share, grade (DESIGN section 4)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ingest.vocab import DEVICE_KINDS, HOST_KINDS, Evidence
from replay.engine.run import replay
from replay.engine.schedule import Schedule
from replay.graph.arrays import Bool, TaskGraph
from replay.graph.facts import GraphFacts
from replay.results.clocks import unsure_clocks
from replay.results.critical_path import CriticalPath, critical_path
from replay.results.metrics import StepTimes, step_times
from replay.results.unexplained import path_unexplained_ns, presumed_work_ns

GRADES: tuple[tuple[str, float, float], ...] = (
    ("A", 0.02, 0.97),
    ("B", 0.05, 0.90),
    ("C", 0.15, 0.0),
)
"""Grade, highest strict error, lowest explained share; D below them."""
NOTABLE_FRAC = 0.01
"""Repairs and collectives with members missing cap the grade above this share of the step."""
HOST_BOUND_FRAC = 0.5
"""A path with more host work than this proves little: host durations are copied."""
MOSTLY_FRAC = 0.5
"""The same of device work and of waits that stay as recorded for want of their launches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartError:
    """|strict start - recorded start| over some device tasks, ns; 0 where there are none."""

    tasks: int
    median_ns: int
    p90_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What the unchanged replay says of itself."""

    grade: str
    strict_error_frac: float
    explained_frac: float
    start: StartError
    """Over all device tasks."""
    unlinked_frac: float
    evidence: dict[str, float]
    """Share of recorded, ordered and inferred edges, program order left out."""
    host_path_frac: float
    """Share of the critical path that is host work, copied from the recording."""
    unexplained_path_ns: int
    """Residuals and silence without a cause on the path."""
    reasons: tuple[str, ...]
    issues: dict[str, int]

    @property
    def start_error_ns(self) -> int:
        """Median over all device tasks."""
        return self.start.median_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Measured, calibrated and strict step of the unchanged trace, and their schedules."""

    measured: StepTimes
    replayed: StepTimes
    strict: StepTimes
    schedule: Schedule
    strict_schedule: Schedule
    path: CriticalPath
    trust: Trust


def recorded_schedule(graph: TaskGraph) -> Schedule:
    """The recording itself in the form of a schedule."""
    ts_ns, dur_ns = graph.tasks.ts_ns, graph.tasks.dur_ns
    nothing = np.full(graph.n_tasks, -1, np.int64)
    return Schedule(start_ns=ts_ns.copy(), end_ns=ts_ns + dur_ns, blocked_by=nothing)


def baseline(graph: TaskGraph, facts: GraphFacts) -> Baseline:
    """Replay the unchanged trace twice and judge it."""
    schedule = replay(graph)
    strict_schedule = replay(graph, residuals=False)
    measured = step_times(graph, recorded_schedule(graph))
    path = critical_path(graph, schedule)
    strict = step_times(graph, strict_schedule)
    return Baseline(
        measured=measured,
        replayed=step_times(graph, schedule),
        strict=strict,
        schedule=schedule,
        strict_schedule=strict_schedule,
        path=path,
        trust=_trust(graph, facts, path, (schedule, strict_schedule), measured, strict),
    )


def start_error(graph: TaskGraph, strict: Schedule, chosen: Bool) -> StartError:
    """Of the chosen tasks (shape (tasks,)), as far as they are device tasks."""
    device = np.isin(graph.tasks.kind, [int(kind) for kind in DEVICE_KINDS])
    error_ns = np.abs(strict.start_ns - graph.tasks.ts_ns)[chosen & device]
    if not len(error_ns):
        return StartError(tasks=0, median_ns=0, p90_ns=0)
    median_ns, p90_ns = np.percentile(error_ns, [50, 90])
    return StartError(tasks=len(error_ns), median_ns=int(median_ns), p90_ns=int(p90_ns))


def step_error_frac(measured: StepTimes, strict: StepTimes, first_step: int = 0) -> float:
    """Signed error of the strict replay over the steps from the `first_step`-th on, together."""
    measured_ns = int(measured.boundary_ns[-1] - measured.boundary_ns[first_step])
    strict_ns = int(strict.boundary_ns[-1] - strict.boundary_ns[first_step])
    return (strict_ns - measured_ns) / measured_ns if measured_ns else 0.0


def _trust(
    graph: TaskGraph,
    facts: GraphFacts,
    path: CriticalPath,
    schedules: tuple[Schedule, Schedule],
    measured: StepTimes,
    strict: StepTimes,
) -> Trust:
    schedule, strict_schedule = schedules
    error = step_error_frac(measured, strict)
    unexplained_ns = int(path_unexplained_ns(graph, path).sum())
    explained = 1.0 - unexplained_ns / path.length_ns if path.length_ns else 0.0
    explained = min(max(explained, 0.0), 1.0)
    host_frac = _host_share(graph, path)
    caps = [
        *_caps(graph, facts, host_frac, int(measured.mean_ns)),
        *_copied_starts(facts, path, schedule),
        *_presumed_work(graph, path),
    ]
    grade, reasons = _grade(facts, error, explained, caps)
    return Trust(
        grade=grade,
        strict_error_frac=error,
        explained_frac=explained,
        start=start_error(graph, strict_schedule, np.ones(graph.n_tasks, bool)),
        unlinked_frac=facts.unlinked_frac,
        evidence={how.name.lower(): facts.evidence_share(how) for how in Evidence},
        host_path_frac=host_frac,
        unexplained_path_ns=unexplained_ns,
        reasons=tuple(reasons),
        issues=facts.issues,
    )


def _host_share(graph: TaskGraph, path: CriticalPath) -> float:
    host = np.isin(graph.tasks.kind[path.task], [int(kind) for kind in HOST_KINDS])
    return float(path.span_ns[host].sum()) / path.length_ns if path.length_ns else 0.0


def _grade(
    facts: GraphFacts, error: float, explained: float, caps: list[tuple[str, str]]
) -> tuple[str, list[str]]:
    grade = next(
        (name for name, worst, least in GRADES if abs(error) <= worst and explained >= least), "D"
    )
    reasons = []
    if abs(error) > GRADES[0][1]:
        reasons.append(f"the strict replay is off by {error:+.1%}")
    if explained < GRADES[0][2]:
        reasons.append(f"{1 - explained:.0%} of the critical path has no known cause")
    for cap, reason in caps:
        grade = max(grade, cap)
        reasons.append(reason)
    if facts.streams_held:
        reasons.append(
            f"{facts.streams_held} streams begin with waiting for work that was launched before "
            "the recording"
        )
    reasons += unsure_clocks(facts)
    defaults = [name for name, lag in facts.lags.items() if lag.is_default and lag.samples]
    if defaults:
        reasons.append(f"default lags (too few samples): {', '.join(sorted(defaults))}")
    return grade, reasons


def _copied_starts(
    facts: GraphFacts, path: CriticalPath, schedule: Schedule
) -> Iterator[tuple[str, str]]:
    """Starts that no replay moves, because nothing recorded leads to them."""
    if facts.has_device and facts.unlinked_frac > MOSTLY_FRAC:
        yield (
            "C",
            f"{facts.unlinked_frac:.0%} of the device work has no recorded launch, so its start is "
            "copied from the recording",
        )
    released = len(path.task) > 0 and int(schedule.blocked_by[path.task[0]]) < 0
    waited_ns = int(path.lag_ns[0]) if released else 0
    if waited_ns > MOSTLY_FRAC * path.length_ns:
        yield (
            "C",
            f"{waited_ns / path.length_ns:.0%} of the critical path waits for a start that is "
            "copied from the recording",
        )


def _presumed_work(graph: TaskGraph, path: CriticalPath) -> Iterator[tuple[str, str]]:
    """It lowers the strict error by construction, so the answer says how much there is."""
    presumed_ns = int(presumed_work_ns(graph, path).sum())
    if presumed_ns > NOTABLE_FRAC * path.length_ns:
        yield (
            "A",
            f"{presumed_ns / path.length_ns:.0%} of the critical path is taken for work of CUDA "
            "graphs without rows: it comes back at each of their launches",
        )


def _caps(
    graph: TaskGraph, facts: GraphFacts, host_frac: float, step_ns: float
) -> list[tuple[str, str]]:
    """Best grades that the data allow, each with its reason."""
    caps = []
    if not facts.has_device and not facts.members:
        caps.append(("D", "no device task and no collective in this trace"))
    elif not facts.has_device:
        caps.append(("A", "no GPU rows in this trace: host work and collectives only"))
    if host_frac > HOST_BOUND_FRAC:
        caps.append(
            (
                "C",
                f"{host_frac:.0%} of the critical path is host work, whose durations are copied "
                "from the recording, so a small error proves little",
            )
        )
    lone = graph.collectives.members_seen < graph.collectives.members_expected
    longest_ns = int((graph.collectives.outside_wait_high_ns * lone).max(initial=0))
    if longest_ns > NOTABLE_FRAC * step_ns:
        caps.append(("C", "members of long collectives are not in these files"))
    moved_ns = facts.moved_ns / (len(graph.ranks) * len(graph.steps))
    if moved_ns > NOTABLE_FRAC * step_ns:
        reason = f"{moved_ns / step_ns:.0%} of the step is device work that began before its launch"
        caps.append(("B", f"{reason} and was moved"))
    if any(not file.complete for file in facts.files):
        caps.append(("B", "a file is cut off"))
    return caps
