"""A scenario replayed beside the unchanged trace, and how far apart the two are."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ingest.units import Nanos
from ingest.vocab import EdgeKind, TaskKind
from replay.engine.run import replay
from replay.engine.schedule import Schedule
from replay.graph.arrays import Bool, TaskGraph
from replay.graph.residuals import without_edges
from replay.results.fidelity import HOST_BOUND_FRAC, Baseline
from replay.results.metrics import Breakdown, StepTimes, breakdown, step_times
from whatif.answers import Answers
from whatif.models.bound import Bound
from whatif.scenario import Scenario
from whatif.stacking import Changed, Stacking
from whatif.transforms.absent import AS_RECORDED, arriving_as_recorded, with_transfers

HIDDEN = "all transfers are hidden behind other work: no collective is on the critical path"
OFF_PATH = "nothing that changed is on the critical path"
ANOTHER_PATH = "another chain of work takes as long"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What a scenario makes of a run; times are the mean step, ns."""

    labels: tuple[str, ...]
    """The what-ifs as they were understood."""
    name: str
    """Of the scenario; empty where it has none."""
    assumptions: tuple[str, ...]
    no_effect: tuple[str, ...]
    """What-ifs that changed nothing, and why."""
    replayed_ns: Nanos
    """The unchanged trace, which the prediction is compared with."""
    step_ns: Nanos
    low_ns: Nanos
    high_ns: Nanos
    rank_ns: tuple[Nanos, ...]
    """Predicted step of each rank by its own boundaries, in the order of `graph.ranks`."""
    predicted: Breakdown
    graph: TaskGraph
    """With the scenario's changes."""
    schedule: Schedule
    """Of `graph`."""

    @property
    def speedup(self) -> float | None:
        """Replayed over predicted step, above 1 is faster; None when nothing is left."""
        return self.replayed_ns / self.step_ns if self.step_ns else None


def study(graph: TaskGraph, baseline: Baseline, scenario: Scenario) -> Study:
    """Replay the scenario on the calibrated graph and bound the answer.

    Raises:
        ScenarioError: the scenario does not fit this trace.
    """
    readings = readings_of(graph, baseline)
    stacks = Stacks(readings)
    changed = stacks.nominal.made(scenario)
    settled, schedule = readings.answers.settled(changed.graph)
    predicted = step_times(settled, schedule)
    strict = readings.strict.step_times(changed.graph)
    others = variants(stacks, scenario, changed)
    candidates = [
        int(predicted.mean_ns),
        *without_one_step(predicted),
        *rebased_ns(baseline, strict),
        *(int(one.answers.step_times(one.graph).mean_ns) for one in others),
    ]
    replayed_ns = baseline.replayed.mean_ns
    no_effect = changed.no_effect
    if len(no_effect) < len(scenario.transforms) and predicted.mean_ns == replayed_ns:
        no_effect = (*no_effect, why_unmoved(graph, changed.graph, baseline))
    return Study(
        labels=changed.labels,
        name=scenario.name,
        assumptions=(
            *changed.assumptions,
            *readings.answers.assumptions(changed.graph, schedule),
            *of_missing_ranks(changed.graph),
        ),
        no_effect=no_effect,
        replayed_ns=replayed_ns,
        step_ns=predicted.mean_ns,
        low_ns=Nanos(min(candidates)),
        high_ns=Nanos(max(candidates)),
        rank_ns=tuple(predicted.rank_mean_ns(place) for place in range(len(graph.ranks))),
        predicted=breakdown(settled, schedule),
        graph=settled,
        schedule=schedule,
    )


class Variant(NamedTuple):
    """A graph, and how it replays."""

    answers: Answers
    graph: TaskGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """The unchanged run, and what else its recording may mean."""

    graph: TaskGraph
    answers: Answers
    strict: Answers
    """Without residuals."""
    splits: tuple[Variant, ...]
    """Missing ranks let the others wait longer, or less."""
    without_full: TaskGraph | None
    """Without the edges of a full device; None where there are none."""


def readings_of(graph: TaskGraph, baseline: Baseline) -> Readings:
    """All that scenarios of a run start from."""
    calls = graph.collectives
    splits = [
        with_transfers(graph, transfer_ns)
        for transfer_ns in (calls.outside_wait_low_ns, calls.outside_wait_high_ns)
        if (transfer_ns != calls.transfer_ns).any()
    ]
    has_full = bool((graph.edges.kind == EdgeKind.SM_FULL).any())
    return Readings(
        graph=graph,
        answers=Answers.of(graph, baseline.schedule),
        strict=Answers.of(graph, baseline.strict_schedule, residuals=False),
        splits=tuple(Variant(Answers.of(split, replay(split)), split) for split in splits),
        without_full=without_edges(graph, EdgeKind.SM_FULL) if has_full else None,
    )


class Stacks:
    """Scenarios applied to the run and to its other readings.

    Scenarios that begin with the same what-ifs are quick one after the other (`Stacking`).
    """

    def __init__(self, readings: Readings) -> None:
        graph, without_full = readings.graph, readings.without_full
        self.answers = readings.answers
        self.nominal = Stacking(graph)
        self.bounds = tuple(Stacking(graph, bound) for bound in (Bound.LOW, Bound.HIGH))
        self.splits = tuple((split.answers, Stacking(split.graph)) for split in readings.splits)
        self.without_full = None if without_full is None else Stacking(without_full)


def variants(stacks: Stacks, scenario: Scenario, changed: Changed) -> Iterator[Variant]:
    """What is as well founded as the replay of `changed`; made one by one."""
    for bound in stacks.bounds:
        yield Variant(stacks.answers, bound.made(scenario).graph)
    found = [Variant(stacks.answers, changed.graph)]
    for answers, split in stacks.splits:
        found.append(Variant(answers, split.made(scenario).graph))
        yield found[-1]
    for one in found:
        pinned = arriving_as_recorded(one.graph)
        if pinned is not None:
            yield Variant(one.answers, pinned)
    if stacks.without_full is not None:
        yield Variant(stacks.answers, stacks.without_full.made(scenario).graph)


def rebased_ns(baseline: Baseline, strict: StepTimes) -> Iterator[int]:
    """The strict step of a scenario, freed of the error that the strict baseline has."""
    if baseline.strict.mean_ns:
        yield round(int(strict.mean_ns) * int(baseline.replayed.mean_ns) / baseline.strict.mean_ns)


def of_missing_ranks(graph: TaskGraph) -> tuple[str, ...]:
    """Said where the range holds that case."""
    return () if arriving_as_recorded(graph) is None else (AS_RECORDED,)


def without_one_step(predicted: StepTimes) -> Iterator[int]:
    """Mean of the steps but one, for each of them."""
    steps = predicted.per_step_ns.tolist()
    if len(steps) > 1:
        yield from (round((sum(steps) - step) / (len(steps) - 1)) for step in steps)


def why_unmoved(graph: TaskGraph, changed: TaskGraph, baseline: Baseline) -> str:
    """Why a graph that was changed takes the same step."""
    before, after = graph.tasks, changed.tasks
    touched: Bool = (before.dur_ns != after.dur_ns) | (before.residual_ns != after.residual_ns)
    if touched[baseline.path.task].any():
        return ANOTHER_PATH
    if not touched.any():  # only the order of tasks has changed
        return OFF_PATH
    only_transfers = bool((before.kind[touched] == TaskKind.TRANSFER).all())
    if only_transfers and baseline.trust.host_path_frac > HOST_BOUND_FRAC:
        share = f"{baseline.trust.host_path_frac:.0%}"
        return f"the run waits for the host: {share} of the critical path is host work, no transfer"
    return HIDDEN if only_transfers else OFF_PATH
