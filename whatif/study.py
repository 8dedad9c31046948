"""A scenario replayed beside the unchanged trace, and how far apart the two are."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ingest.units import Nanos
from ingest.vocab import DEVICE_KINDS, EdgeKind, TaskKind
from replay.engine.run import replay
from replay.engine.schedule import Schedule
from replay.graph.arrays import Bool, TaskGraph
from replay.graph.residuals import without_edges
from replay.results.fidelity import HOST_BOUND_FRAC, Baseline
from replay.results.metrics import Breakdown, StepTimes, breakdown, step_times
from whatif.answers import Answers
from whatif.models.bound import Bound
from whatif.scenario import Scenario
from whatif.transforms.absent import AS_RECORDED, arriving_as_recorded, with_transfers
from whatif.transforms.base import Context

HIDDEN = "all transfers are hidden behind other work: no collective is on the critical path"
OFF_PATH = "nothing that changed is on the critical path"
ANOTHER_PATH = "another chain of work takes as long"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What a scenario makes of a run; times are the mean step, ns."""

    labels: tuple[str, ...]
    """The what-ifs as they were understood."""
    assumptions: tuple[str, ...]
    no_effect: tuple[str, ...]
    """What-ifs that changed nothing, and why."""
    replayed_ns: Nanos
    """The unchanged trace, which the prediction is compared with."""
    step_ns: Nanos
    low_ns: Nanos
    high_ns: Nanos
    rank_ns: tuple[Nanos | None, ...]
    """Predicted step of each recorded rank by its own boundaries, in the order of the unchanged
    graph's `ranks`; None for those that the scenario has no place for."""
    predicted: Breakdown
    graph: TaskGraph
    """With the scenario's changes."""
    schedule: Schedule
    """Of `graph`."""
    samples_factor: float = 1.0
    """Samples of a step of the whole job, against the recorded run."""

    @property
    def speedup(self) -> float | None:
        """Replayed over predicted step, above 1 is faster; None when nothing is left."""
        return self.replayed_ns / self.step_ns if self.step_ns else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A graph after a whole stack of what-ifs."""

    graph: TaskGraph
    context: Context
    labels: tuple[str, ...]
    assumptions: tuple[str, ...]
    no_effect: tuple[str, ...]
    samples_factor: float


def study(graph: TaskGraph, baseline: Baseline, scenario: Scenario) -> Study:
    """Replay the scenario on the calibrated graph and bound the answer.

    Raises:
        ScenarioError: the scenario does not fit this trace.
    """
    changed = apply_all(graph, scenario)
    base = _Base(graph=graph, baseline=baseline, scenario=scenario, changed=changed)
    answers = base.answers(graph, baseline.schedule)
    settled, schedule = answers.settled(changed.graph)
    predicted = step_times(settled, schedule)
    candidates = [int(predicted.mean_ns), *_bounds(base, answers, predicted)]
    replayed_ns = baseline.replayed.mean_ns
    no_effect = changed.no_effect
    if len(no_effect) < len(scenario.transforms) and predicted.mean_ns == replayed_ns:
        no_effect = (*no_effect, _why_unmoved(graph, settled, baseline))
    return Study(
        labels=changed.labels,
        assumptions=(
            *changed.assumptions,
            *answers.assumptions(changed.graph, schedule),
            *_of_missing_ranks(changed.graph),
        ),
        no_effect=no_effect,
        replayed_ns=replayed_ns,
        step_ns=predicted.mean_ns,
        low_ns=Nanos(min(candidates)),
        high_ns=Nanos(max(candidates)),
        rank_ns=_rank_ns(graph, settled, predicted),
        predicted=breakdown(settled, schedule),
        graph=settled,
        schedule=schedule,
        samples_factor=changed.samples_factor,
    )


def apply_all(graph: TaskGraph, scenario: Scenario, bound: Bound = Bound.NOMINAL) -> Changed:
    """Apply the what-ifs one on top of the other."""
    context = Context(bound=bound, recorded=scenario.base)
    labels: list[str] = []
    assumptions: list[str] = []
    no_effect: list[str] = []
    for transform in scenario.transforms:
        applied = transform.apply(graph, context)
        graph, context = applied.graph, applied.context
        labels.append(applied.label)
        assumptions += [text for text in applied.assumptions if text not in assumptions]
        if applied.no_effect is not None:
            no_effect.append(f"{transform.flag}: {applied.no_effect}")
    return Changed(
        graph=graph,
        context=context,
        labels=tuple(labels),
        assumptions=tuple(assumptions),
        no_effect=tuple(no_effect),
        samples_factor=context.samples_factor,
    )


def _rank_ns(
    graph: TaskGraph, changed: TaskGraph, predicted: StepTimes
) -> tuple[Nanos | None, ...]:
    """Predicted step of each recorded rank, as far as it is still there."""
    by_rank = {info.rank: predicted.rank_mean_ns(at) for at, info in enumerate(changed.ranks)}
    return tuple(by_rank.get(info.rank) for info in graph.ranks)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """What a scenario is applied to, and what it made of it."""

    graph: TaskGraph
    baseline: Baseline
    scenario: Scenario
    changed: Changed

    def answers(self, graph: TaskGraph, schedule: Schedule, *, residuals: bool = True) -> Answers:
        """How variants of an unchanged graph replay under the scenario."""
        latency_ns = self.changed.context.recorded_latency_ns
        return Answers.of(graph, schedule, recorded_latency_ns=latency_ns, residuals=residuals)


def _bounds(base: _Base, answers: Answers, predicted: StepTimes) -> Iterator[int]:
    """Other answers that are as well founded, ns (DESIGN section 4)."""
    graph, baseline, scenario = base.graph, base.baseline, base.scenario
    yield from _without_one_step(predicted)
    if baseline.strict.mean_ns:
        of_strict = base.answers(graph, baseline.strict_schedule, residuals=False)
        strict = of_strict.step_times(base.changed.graph)
        yield round(int(strict.mean_ns) * int(baseline.replayed.mean_ns) / baseline.strict.mean_ns)
    for bound in (Bound.LOW, Bound.HIGH):
        yield _step_ns(answers, apply_all(graph, scenario, bound).graph)
    if (rougher := answers.without_rough) is not None:
        yield _step_ns(rougher, base.changed.graph)
    yield from _with_missing_ranks(base, answers)
    if (graph.edges.kind == EdgeKind.SM_FULL).any():
        without = without_edges(graph, EdgeKind.SM_FULL)
        yield _step_ns(answers, apply_all(without, scenario).graph)


def _with_missing_ranks(base: _Base, answers: Answers) -> Iterator[int]:
    """Steps where missing ranks let the others wait longer or less, or arrive as recorded."""
    calls = base.graph.collectives
    variants = [(answers, base.changed.graph)]
    for transfer_ns in (calls.outside_wait_low_ns, calls.outside_wait_high_ns):
        if (transfer_ns != calls.transfer_ns).any():
            split = with_transfers(base.graph, transfer_ns)
            graph = apply_all(split, base.scenario).graph
            variants.append((base.answers(split, replay(split)), graph))
            yield _step_ns(*variants[-1])
    for of_split, graph in variants:
        pinned = arriving_as_recorded(graph)
        if pinned is not None:
            yield _step_ns(of_split, pinned)


def _of_missing_ranks(graph: TaskGraph) -> tuple[str, ...]:
    return () if arriving_as_recorded(graph) is None else (AS_RECORDED,)


def _step_ns(answers: Answers, graph: TaskGraph) -> int:
    return int(answers.step_times(graph).mean_ns)


def _without_one_step(predicted: StepTimes) -> Iterator[int]:
    """Mean of the steps but one, for each of them."""
    steps = predicted.per_step_ns.tolist()
    if len(steps) > 1:
        yield from (round((sum(steps) - step) / (len(steps) - 1)) for step in steps)


def _why_unmoved(graph: TaskGraph, changed: TaskGraph, baseline: Baseline) -> str:
    n_tasks, before, after = graph.n_tasks, graph.tasks, changed.tasks
    touched: Bool = before.dur_ns != after.dur_ns[:n_tasks]
    touched |= before.residual_ns != after.residual_ns[:n_tasks]
    if touched[baseline.path.task].any():
        return ANOTHER_PATH
    only_transfers = bool((before.kind[touched] == TaskKind.TRANSFER).all())
    if only_transfers and baseline.trust.host_path_frac > HOST_BOUND_FRAC:
        share = f"{baseline.trust.host_path_frac:.0%}"
        return f"the run waits for the host: {share} of the critical path is host work, no transfer"
    on_device = bool(np.isin(before.kind[touched], tuple(DEVICE_KINDS)).all())
    if on_device and not only_transfers and baseline.trust.host_path_frac > HOST_BOUND_FRAC:
        share = f"{baseline.trust.host_path_frac:.0%}"
        return f"the run waits for the host: {share} of the critical path is host work"
    return HIDDEN if only_transfers else OFF_PATH
