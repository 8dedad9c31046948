"""Which changes would save most: by 10 %, twice, and without limit, all replayed at once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ingest.units import Nanos
from ingest.vocab import COMPUTE_CLASSES, DEVICE_KINDS, KernelClass, TaskKind
from replay.graph.arrays import TaskGraph
from replay.results.fidelity import Baseline
from whatif.many import Outcome, Ranges, outcomes
from whatif.scenario import Scenario
from whatif.study import readings_of
from whatif.topology import is_on_hosts
from whatif.transforms.cuda_graphs import CudaGraphs
from whatif.transforms.host_scale import MOST as FASTEST_HOST
from whatif.transforms.host_scale import HostScale
from whatif.transforms.net import Net
from whatif.transforms.network import NetworkScale
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.perfect_overlap import PerfectOverlap
from whatif.transforms.registry import Transform
from whatif.transforms.remove import Remove
from whatif.transforms.scale import Scale
from whatif.transforms.stragglers import NoStragglers

SHOWN = 3
LEAST_SHARE = 0.02
"""A class of kernels with less of the device time is no lever."""
LEAST_SAVING = 0.005
"""A saving of less of the step is noise: two runs of one job differ by about 1 %."""
LIMITLESS = 1_000_000
"""So many times as fast that only latency is left of a transfer."""
LAUNCHES = "class:host,name:*aunch*"
"""The calls that give work to the device (CUDA and HIP, kernels and graphs)."""
NODE_LINK = "network between nodes"
HOST_LINK = "network of gloo"
"""What `--net` is where all collectives run on CPU threads: on one node too."""
UNCHANGED = Scenario()


class Strength(StrEnum):
    """How far a lever is moved."""

    TENTH = "tenth"
    """10 % faster."""
    TWICE = "twice"
    LIMIT = "limit"
    """Without limit; of a lever without degrees, the change itself."""


SPEEDS = {Strength.TENTH: 1.1, Strength.TWICE: 2.0, Strength.LIMIT: float("inf")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """One change and what it would save per step."""

    why: str
    """The change in words."""
    flag_text: str
    """Command-line option that reproduces it."""
    step_ns: Nanos
    low_ns: Nanos
    """The range of `step_ns`."""
    high_ns: Nanos
    saving_ns: Nanos
    saving_low_ns: int
    """The range of the saving: each well-founded answer against the same answer without the lever,
    so that steps which differ from each other do not widen it."""
    saving_high_ns: int
    no_effect: str = ""
    """Why it saves nothing; empty where it does."""
    changes: tuple[Transform, ...] = ()
    """What `flag_text` says, on top of what the saving counts from."""
    assumptions: tuple[str, ...] = ()
    """What the answer takes for granted."""
    known_errors: tuple[str, ...] = ()
    """Of the models that it used, on measurements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeverRow:
    """One lever, moved more and more."""

    what: str
    moved: dict[Strength, Lever]
    """A lever without degrees has `LIMIT` alone."""

    @property
    def ranked_by(self) -> Lever:
        """Twice as fast, or the change itself."""
        return self.moved.get(Strength.TWICE) or self.moved[Strength.LIMIT]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeverTable:
    """All levers of a run."""

    base: Outcome
    """What the savings count from: the replayed run, or the scenario that was given."""
    noise_ns: int
    rows: tuple[LeverRow, ...]
    """Those that save more than noise when moved twice as far; the biggest saving first."""
    below_noise: dict[str, str]
    """Levers that save nothing worth telling, and why not, where it is known."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    what: str
    changes: dict[Strength, Transform]
    short: tuple[Strength, ...] = ()
    """Told in the plain answer."""
    limit_words: str = ""

    def words(self, strength: Strength) -> str:
        if strength is Strength.LIMIT:
            return self.limit_words or f"{self.what} without limit"
        return f"{self.what} {'twice as fast' if strength is Strength.TWICE else '10 % faster'}"


def levers(graph: TaskGraph, baseline: Baseline, *, shown: int = SHOWN) -> tuple[Lever, ...]:
    """The changes that save most, biggest first; none where nothing saves anything."""
    asked = [
        (candidate, strength) for candidate in _candidates(graph) for strength in candidate.short
    ]
    found = _moved(graph, baseline, UNCHANGED, asked, ranges=Ranges.STEPS)[1]
    least_ns = max(LEAST_SAVING * baseline.replayed.mean_ns, 1)
    worth = [lever for lever in found if lever is not None and lever.saving_ns >= least_ns]
    return tuple(sorted(worth, key=lambda lever: -lever.saving_ns)[:shown])


def lever_table(graph: TaskGraph, baseline: Baseline, scenario: Scenario = UNCHANGED) -> LeverTable:
    """Every lever of the run, on top of a scenario, with the range of each answer.

    Raises:
        ScenarioError: the scenario does not fit the run.
    """
    candidates = list(_candidates(graph))
    asked = [(candidate, strength) for candidate in candidates for strength in candidate.changes]
    base, found = _moved(graph, baseline, scenario, asked, ranges=Ranges.FULL)
    noise_ns = round(LEAST_SAVING * base.step_ns)
    moved: dict[str, dict[Strength, Lever]] = {}
    for (candidate, strength), lever in zip(asked, found, strict=True):
        if lever is not None:
            moved.setdefault(candidate.what, {})[strength] = lever
    rows = [
        LeverRow(what=what, moved=some) for what, some in moved.items() if Strength.LIMIT in some
    ]
    worth = [row for row in rows if row.ranked_by.saving_ns >= max(noise_ns, 1)]
    return LeverTable(
        base=base,
        noise_ns=noise_ns,
        rows=tuple(sorted(worth, key=lambda row: -row.ranked_by.saving_ns)),
        below_noise={row.what: row.ranked_by.no_effect for row in rows if row not in worth},
    )


def _candidates(graph: TaskGraph) -> Iterator[_Candidate]:
    kinds = graph.tasks.kind
    twice, limit = (Strength.TWICE,), (Strength.LIMIT,)
    if len(graph.ranks) > 1:
        words = "no stragglers: every rank as fast as the median rank"
        yield _Candidate("stragglers", {Strength.LIMIT: NoStragglers()}, limit, words)
    if (kinds == TaskKind.TRANSFER).any():
        network: dict[Strength, Transform] = {
            Strength.TENTH: NetworkScale(factor=SPEEDS[Strength.TENTH]),
            Strength.TWICE: NetworkScale(factor=SPEEDS[Strength.TWICE]),
            Strength.LIMIT: Scale(where="class:collective", factor=0),
        }
        words = "transfers free (waiting for others stays)"
        yield _Candidate("network", network, (*twice, *limit), words)
        yield _Candidate("NVLink or xGMI", _by_speed(_nvlink))
        yield _Candidate(HOST_LINK if is_on_hosts(graph) else NODE_LINK, _by_speed(_net))
        hidden = "transfers hidden under compute as far as that goes"
        yield _Candidate("overlap with compute", {Strength.LIMIT: PerfectOverlap()}, (), hidden)
    busy = _classes(graph)
    for name in busy:
        yield _Candidate(f"{name} kernels", _by_speed(_scaled(f"class:{name}")), twice)
    if len(busy) > 1:
        yield _Candidate("all compute kernels", _by_speed(_scaled("class:compute")), twice)
    if np.isin(kinds, (TaskKind.HOST_WORK, TaskKind.HOST_CALL)).any():
        yield _Candidate("host", _by_speed(_host), twice)
        yield _Candidate("launch calls", _by_speed(_scaled(LAUNCHES)))
        graphs = "kernels launched by CUDA graphs"
        yield _Candidate("CUDA graphs", {Strength.LIMIT: CudaGraphs()}, (), graphs)
        waits = "no call that waits for the device"
        yield _Candidate("waits of the host", {Strength.LIMIT: Remove(where="sync:*")}, (), waits)
    if (kinds == TaskKind.MEMCPY).any():
        yield _Candidate("copies", _by_speed(_scaled("class:memcpy")), limit, "copies free")


def _by_speed(change: Callable[[float], Transform]) -> dict[Strength, Transform]:
    return {strength: change(speed) for strength, speed in SPEEDS.items()}


def _scaled(where: str) -> Callable[[float], Transform]:
    return lambda speed: Scale(where=where, factor=float(f"{1 / speed:.4g}"))


def _host(speed: float) -> Transform:
    return HostScale(factor=min(speed, FASTEST_HOST))


def _nvlink(speed: float) -> Transform:
    return Nvlink(rate=_rate(speed))


def _net(speed: float) -> Transform:
    return Net(rate=_rate(speed))


def _rate(speed: float) -> str:
    return f"x{speed:g}" if speed < LIMITLESS else f"x{LIMITLESS}"


def _classes(graph: TaskGraph) -> list[str]:
    """Compute classes with more than LEAST_SHARE of the device time."""
    tasks = graph.tasks
    device = np.isin(tasks.kind, [int(kind) for kind in DEVICE_KINDS]) & ~tasks.fixed
    time_ns = np.bincount(
        tasks.kernel_class[device], weights=tasks.dur_ns[device], minlength=max(KernelClass) + 1
    )
    return [
        code.name.lower()
        for code in sorted(COMPUTE_CLASSES)
        if time_ns[code] > LEAST_SHARE * time_ns.sum()
    ]


def _moved(
    graph: TaskGraph,
    baseline: Baseline,
    scenario: Scenario,
    asked: list[tuple[_Candidate, Strength]],
    *,
    ranges: Ranges,
) -> tuple[Outcome, list[Lever | None]]:
    """The step that savings count from, and each lever; None where the run lacks it."""
    changes = [candidate.changes[strength] for candidate, strength in asked]
    stacks = [scenario, *(scenario.then(change) for change in changes)]
    base, *found = outcomes(readings_of(graph), baseline, stacks, ranges=ranges)
    if not isinstance(base, Outcome):
        raise base
    return base, [
        lever_of(candidate.words(strength), (change,), outcome, base)
        if isinstance(outcome, Outcome)
        else None
        for (candidate, strength), change, outcome in zip(asked, changes, found, strict=True)
    ]


def lever_of(why: str, changes: tuple[Transform, ...], outcome: Outcome, base: Outcome) -> Lever:
    """What an outcome saves of the base that it was made on.

    Args:
        why: the change in words.
        changes: on top of those of the base.
        outcome: with the changes.
        base: without them.
    """
    flag = " ".join(change.flag for change in changes)
    own = [reason for reason in outcome.no_effect if reason not in base.no_effect]
    savings = _savings(base, outcome)
    return Lever(
        why=why,
        flag_text=flag,
        step_ns=outcome.step_ns,
        low_ns=outcome.low_ns,
        high_ns=outcome.high_ns,
        saving_ns=Nanos(base.step_ns - outcome.step_ns),
        saving_low_ns=min(savings),
        saving_high_ns=max(savings),
        no_effect=own[-1].removeprefix(f"{flag}: ") if own else "",
        changes=changes,
        assumptions=outcome.assumptions,
        known_errors=outcome.known_errors,
    )


def _savings(base: Outcome, outcome: Outcome) -> list[int]:
    """Pair by pair; where a scenario has other answers than its base, against its prediction."""
    if len(base.all_ns) != len(outcome.all_ns):
        return [base.step_ns - step_ns for step_ns in outcome.all_ns]
    return [before - after for before, after in zip(base.all_ns, outcome.all_ns, strict=True)]
