"""A scenario replayed beside the unchanged trace, and how far apart the two are."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ingest.units import Nanos
from ingest.vocab import DEVICE_KINDS, EdgeKind, TaskKind
from replay.engine.run import replay
from replay.engine.schedule import Schedule
from replay.graph.arrays import Bool, Int64, TaskGraph
from replay.graph.residuals import without_edges
from replay.results.fidelity import HOST_BOUND_FRAC, Baseline
from replay.results.metrics import Breakdown, StepTimes, breakdown, step_times
from whatif.answers import Answers
from whatif.jitter import Spread, spread
from whatif.models import gloo
from whatif.models.bound import Bound
from whatif.models.coverage import Coverage
from whatif.models.layout_told import LayoutTold, in_words
from whatif.models.memory.told import MemoryTold
from whatif.scenario import Scenario
from whatif.stacking import Changed, Stacking
from whatif.transforms.absent import AS_RECORDED, arriving_as_recorded, with_transfers
from whatif.transforms.base import Context
from whatif.transforms.host_network import between_runs_frac
from whatif.transforms.jitter import Jitter

HIDDEN = "all transfers are hidden behind other work: no collective is on the critical path"
OFF_PATH = "nothing that changed is on the critical path"
NOTHING_VARIES = "one rank and fewer than three steps show no variation"
AS_RECORDED_AGAIN = "all what-ifs together leave the run as it was recorded"
ANOTHER_PATH = "another chain of work takes as long"
HARDLY_FRAC = 0.0005
"""A step that changes by less is as it was: two decimals of its milliseconds hardly show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What a scenario makes of a run; times are the mean step, ns."""

    labels: tuple[str, ...]
    """The what-ifs as they were understood."""
    name: str
    """Of the scenario; empty where it has none."""
    assumptions: tuple[str, ...]
    known_errors: tuple[str, ...] = ()
    """Of the models that the what-ifs used, on measurements."""
    no_effect: tuple[str, ...]
    """What-ifs that changed nothing, and why."""
    replayed_ns: Nanos
    """The unchanged trace, which the prediction is compared with."""
    step_ns: Nanos
    low_ns: Nanos
    high_ns: Nanos
    rank_ns: tuple[Nanos | None, ...]
    """Predicted step of each recorded rank by its own boundaries, in the order of the unchanged
    graph's `ranks`; None for those that the scenario has no place for. Where several ranks now run
    its work, that of the slowest."""
    predicted: Breakdown
    graph: TaskGraph
    """With the scenario's changes."""
    schedule: Schedule
    """Of `graph`."""
    jitter: Spread | None = None
    """Of its steps, where asked for and anything varies."""
    samples_factor: float = 1.0
    """Samples of a step of the whole job, against the recorded run."""
    rests_on: Coverage | None = None
    """What the times of another layout rest on; None where the layout is the recorded one."""
    memory: MemoryTold | None = None
    """Of a rank, before and after, where the layout changed and sizes are known."""

    layout: LayoutTold | None = None
    """Degrees and ranks of another layout; None where both are the recorded ones."""

    @property
    def speedup(self) -> float | None:
        """Replayed over predicted step, above 1 is faster; None when nothing is left."""
        return self.replayed_ns / self.step_ns if self.step_ns else None


def _layout(graph: TaskGraph, changed: Changed, speedup: float | None) -> LayoutTold | None:
    """Where the degrees or the number of ranks are others."""
    relaid = changed.context.before_relayout
    before, after = (one.world_size or len(one.ranks) for one in (graph, changed.graph))
    moved = relaid is not None and relaid.made.shape.degrees != relaid.described.shape.degrees
    if before == after and not moved:
        return None
    factor = changed.context.samples_factor * before / after
    return LayoutTold(
        degrees="" if relaid is None else in_words(relaid.made.shape.degrees),
        ranks_before=before,
        ranks_after=after,
        throughput_per_rank=None if speedup is None else factor * speedup,
    )


def _memory(context: Context) -> MemoryTold | None:
    relaid = context.before_relayout
    if relaid is None or relaid.memory is None:
        return None
    return relaid.memory.on(context.device)


def study(graph: TaskGraph, baseline: Baseline, scenario: Scenario) -> Study:
    """Replay the scenario on the calibrated graph and bound the answer.

    Raises:
        ScenarioError: the scenario does not fit this trace.
    """
    return Studies(graph, baseline).of(scenario)


class Studies:
    """Studies of one run, one after the other; what they share is made once."""

    def __init__(self, graph: TaskGraph, baseline: Baseline) -> None:
        self._baseline = baseline
        self._readings = readings_of(graph)
        self._stacks = Stacks(self._readings)
        self._replays: tuple[bytes, Replays] | None = None

    def of(
        self,
        scenario: Scenario,
        *,
        is_bounded: bool = True,
        between: Callable[[], None] = lambda: None,
    ) -> Study:
        """Replay the scenario.

        Args:
            scenario: to be replayed.
            is_bounded: look at all that is as well founded; else the range is that of the measured
                steps alone, nothing is drawn for jitter, and one replay is enough.
            between: called between replays; what it raises ends the study.

        Raises:
            ScenarioError: the scenario does not fit this trace.
        """
        graph, baseline = self._readings.graph, self._baseline
        changed = self._stacks.nominal.made(scenario)
        replays = self._replays_of(changed.context.recorded_latency_ns)
        settled, schedule = replays.nominal.settled(changed.graph)
        predicted = step_times(settled, schedule)
        candidates = [int(predicted.mean_ns), *without_one_step(predicted)]
        if is_bounded:
            candidates += self._bounds_ns(scenario, changed, replays, between)
        replayed_ns = baseline.replayed.mean_ns
        anyway_frac = between_runs_frac(graph, changed.graph)
        no_effect = changed.no_effect
        asked = [change for change in scenario.transforms if isinstance(change, Jitter)]
        if may_move(scenario, changed) and is_unmoved(predicted.mean_ns, replayed_ns):
            no_effect = (*no_effect, why_unmoved(graph, changed.graph, baseline))
        relaid = changed.context.before_relayout
        drawn = spread(settled, asked[-1]) if asked and is_bounded else None
        if asked and is_bounded and drawn is None:
            no_effect = (*no_effect, f"{asked[-1].flag}: {NOTHING_VARIES}")
        return Study(
            labels=changed.labels,
            name=scenario.name,
            assumptions=(
                *changed.assumptions,
                *_of_samples(drawn),
                *replays.nominal.assumptions(changed.graph, schedule),
                *of_missing_ranks(changed.graph),
                *of_other_runs(anyway_frac),
            ),
            known_errors=changed.known_errors,
            no_effect=no_effect,
            replayed_ns=replayed_ns,
            step_ns=predicted.mean_ns,
            low_ns=Nanos(round(min(candidates) * (1 - anyway_frac))),
            high_ns=Nanos(round(max(candidates) * (1 + anyway_frac))),
            rank_ns=_rank_ns(graph, settled, predicted),
            predicted=breakdown(settled, schedule),
            graph=settled,
            schedule=schedule,
            jitter=drawn,
            samples_factor=changed.context.samples_factor,
            rests_on=None if relaid is None else relaid.rests_on,
            memory=_memory(changed.context),
            layout=_layout(
                graph,
                changed,
                replayed_ns / predicted.mean_ns if predicted.mean_ns else None,
            ),
        )

    def _bounds_ns(
        self,
        scenario: Scenario,
        changed: Changed,
        replays: "Replays",
        between: Callable[[], None],
    ) -> Iterator[int]:
        """Mean steps of all that is as well founded as the prediction."""
        between()
        yield from rebased_ns(self._baseline, replays.strict.step_times(changed.graph))
        between()
        for one in variants(self._stacks, replays, scenario, changed):
            yield int(one.answers.step_times(one.graph).mean_ns)
            between()

    def _replays_of(self, recorded_latency_ns: Int64 | None) -> "Replays":
        """Scenarios in a row that say the same of the recorded latencies share them."""
        said = b"" if recorded_latency_ns is None else recorded_latency_ns.tobytes()
        if self._replays is None or self._replays[0] != said:
            made = replays_of(self._readings, self._baseline, recorded_latency_ns)
            self._replays = (said, made)
        return self._replays[1]


class Variant(NamedTuple):
    """A graph, and how it replays."""

    answers: Answers
    graph: TaskGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """The unchanged run, and what else its recording may mean."""

    graph: TaskGraph
    splits: tuple[TaskGraph, ...]
    """Missing ranks let the others wait longer, or less."""
    without_full: TaskGraph | None
    """Without the edges of a full device; None where there are none."""


def readings_of(graph: TaskGraph) -> Readings:
    """All that scenarios of a run start from."""
    calls = graph.collectives
    has_full = bool((graph.edges.kind == EdgeKind.SM_FULL).any())
    return Readings(
        graph=graph,
        splits=tuple(
            with_transfers(graph, transfer_ns)
            for transfer_ns in (calls.outside_wait_low_ns, calls.outside_wait_high_ns)
            if (transfer_ns != calls.transfer_ns).any()
        ),
        without_full=without_edges(graph, EdgeKind.SM_FULL) if has_full else None,
    )


def _rank_ns(
    graph: TaskGraph, changed: TaskGraph, predicted: StepTimes
) -> tuple[Nanos | None, ...]:
    """Predicted step of each recorded rank, as far as it is still there.

    Of a run that was put together anew that of the slowest rank that runs work of the recorded one.
    """
    by_rank = {info.rank: predicted.rank_mean_ns(at) for at, info in enumerate(changed.ranks)}
    if changed.origin is not None:
        by_rank = _by_recorded_rank(graph, changed, by_rank)
    return tuple(by_rank.get(info.rank) for info in graph.ranks)


def _by_recorded_rank(
    graph: TaskGraph, changed: TaskGraph, by_rank: dict[int, Nanos]
) -> dict[int, Nanos]:
    assert changed.origin is not None, "put together anew"
    copy = np.flatnonzero((changed.origin >= 0) & (changed.origin < graph.n_tasks))
    now, was = changed.tasks.rank[copy], graph.tasks.rank[changed.origin[copy]]
    found: dict[int, Nanos] = {}
    for rank, recorded in np.unique(np.stack([now, was], axis=1), axis=0).tolist():
        if rank in by_rank:
            found[recorded] = max(by_rank[rank], found.get(recorded, by_rank[rank]))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Replays:
    """How scenarios replay that say the same of the recorded latencies."""

    nominal: Answers
    strict: Answers
    """Without residuals."""
    rougher: Answers | None
    """Without what is read off a few operators; None where nothing is."""
    splits: tuple[Answers, ...]
    """Of the splits of the readings."""


def replays_of(
    readings: Readings, baseline: Baseline, recorded_latency_ns: Int64 | None = None
) -> Replays:
    """From the unchanged run; latencies are per collective, where a scenario says more of them."""

    def answers(graph: TaskGraph, schedule: Schedule, *, residuals: bool = True) -> Answers:
        return Answers.of(
            graph, schedule, recorded_latency_ns=recorded_latency_ns, residuals=residuals
        )

    nominal = answers(readings.graph, baseline.schedule)
    return Replays(
        nominal=nominal,
        strict=answers(readings.graph, baseline.strict_schedule, residuals=False),
        rougher=nominal.without_rough,
        splits=tuple(answers(split, replay(split)) for split in readings.splits),
    )


class Stacks:
    """Scenarios applied to the run and to its other readings.

    Scenarios that begin with the same what-ifs are quick one after the other (`Stacking`).
    """

    def __init__(self, readings: Readings) -> None:
        graph, without_full = readings.graph, readings.without_full
        self.nominal = Stacking(graph)
        self.bounds = tuple(Stacking(graph, bound) for bound in (Bound.LOW, Bound.HIGH))
        self.splits = tuple(map(Stacking, readings.splits))
        self.without_full = None if without_full is None else Stacking(without_full)


def variants(
    stacks: Stacks, replays: Replays, scenario: Scenario, changed: Changed
) -> Iterator[Variant]:
    """What is as well founded as the replay of `changed`; made one by one."""
    for bound in stacks.bounds:
        yield Variant(replays.nominal, bound.made(scenario).graph)
    if replays.rougher is not None:
        yield Variant(replays.rougher, changed.graph)
    found = [Variant(replays.nominal, changed.graph)]
    for answers, split in zip(replays.splits, stacks.splits, strict=True):
        found.append(Variant(answers, split.made(scenario).graph))
        yield found[-1]
    for one in found:
        pinned = arriving_as_recorded(one.graph)
        if pinned is not None:
            yield Variant(one.answers, pinned)
    if stacks.without_full is not None:
        yield Variant(replays.nominal, stacks.without_full.made(scenario).graph)


def may_move(scenario: Scenario, changed: Changed) -> bool:
    """Some what-if has changed the graph; jitter only asks about it."""
    changes = [change for change in scenario.transforms if not isinstance(change, Jitter)]
    return len(changed.no_effect) < len(changes)


def is_unmoved(step_ns: int, replayed_ns: int) -> bool:
    """The prediction is, as far as anybody cares, the step that there was."""
    return abs(step_ns - replayed_ns) <= HARDLY_FRAC * replayed_ns


def rebased_ns(baseline: Baseline, strict: StepTimes) -> Iterator[int]:
    """The strict step of a scenario, freed of the error that the strict baseline has."""
    if baseline.strict.mean_ns:
        yield round(int(strict.mean_ns) * int(baseline.replayed.mean_ns) / baseline.strict.mean_ns)


def _of_samples(drawn: Spread | None) -> tuple[str, ...]:
    return () if drawn is None else (f"samples: {drawn.drawn}; what overlaps as predicted",)


def of_missing_ranks(graph: TaskGraph) -> tuple[str, ...]:
    """Said where the range holds that case."""
    return () if arriving_as_recorded(graph) is None else (AS_RECORDED,)


def of_other_runs(anyway_frac: float) -> tuple[str, ...]:
    """Said where the range holds how much runs differ anyway."""
    return (gloo.BETWEEN_RUNS,) if anyway_frac else ()


def without_one_step(predicted: StepTimes) -> Iterator[int]:
    """Mean of the steps but one, for each of them."""
    steps = predicted.per_step_ns.tolist()
    if len(steps) > 1:
        yield from (round((sum(steps) - step) / (len(steps) - 1)) for step in steps)


def _touched(graph: TaskGraph, changed: TaskGraph) -> Bool:
    """Per task of the run, whether its time is another now, or it runs more or less often."""
    before, after = graph.tasks, changed.tasks
    n_tasks = graph.n_tasks
    origin = np.arange(n_tasks) if changed.origin is None else changed.origin
    copy = np.flatnonzero((origin >= 0) & (origin < n_tasks))
    of = origin[copy]
    touched: Bool = np.bincount(of, minlength=n_tasks) != 1
    differs = before.dur_ns[of] != after.dur_ns[copy]
    differs |= before.residual_ns[of] != after.residual_ns[copy]
    touched[of[differs]] = True
    return touched


def why_unmoved(graph: TaskGraph, changed: TaskGraph, baseline: Baseline) -> str:
    """Why a graph that was changed takes the same step."""
    if changed is graph:
        return AS_RECORDED_AGAIN
    before = graph.tasks
    touched = _touched(graph, changed)
    if touched[baseline.path.task].any():
        return ANOTHER_PATH
    if not touched.any():  # only the order of tasks has changed
        return OFF_PATH
    only_transfers = bool((before.kind[touched] == TaskKind.TRANSFER).all())
    if only_transfers and baseline.trust.host_path_frac > HOST_BOUND_FRAC:
        share = f"{baseline.trust.host_path_frac:.0%}"
        return f"the run waits for the host: {share} of the critical path is host work, no transfer"
    on_device = bool(np.isin(before.kind[touched], tuple(DEVICE_KINDS)).all())
    if on_device and not only_transfers and baseline.trust.host_path_frac > HOST_BOUND_FRAC:
        share = f"{baseline.trust.host_path_frac:.0%}"
        return f"the run waits for the host: {share} of the critical path is host work"
    return HIDDEN if only_transfers else OFF_PATH
