"""Many scenarios on one run, replayed together: the steps of `study`, without their schedules."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import zip_longest

import numpy as np

from ingest.errors import ScenarioError
from ingest.units import Nanos
from replay.engine.batch import replay_batch
from replay.engine.kernel import WIDTH
from replay.graph.arrays import Int64, TaskGraph
from replay.results.fidelity import Baseline
from replay.results.metrics import StepTimes, step_times_of_ends
from whatif.scenario import Scenario
from whatif.study import (
    Changed,
    Readings,
    apply_all,
    of_missing_ranks,
    other_readings,
    rebased_ns,
    variants,
    why_unmoved,
    without_one_step,
)


class Ranges(StrEnum):
    """How much is replayed for the range of each answer."""

    FULL = "full"
    """All that `study` looks at: 4 replays, up to 9 where ranks are missing."""
    STEPS = "steps"
    """One replay: only how far the measured steps are apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one scenario makes of the mean step; the words are those of a `Study`."""

    step_ns: Nanos
    low_ns: Nanos
    high_ns: Nanos
    labels: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    no_effect: tuple[str, ...] = ()


Answer = Outcome | ScenarioError
"""A scenario that does not fit the run leaves the others alone."""


def outcomes(
    graph: TaskGraph,
    baseline: Baseline,
    scenarios: Sequence[Scenario],
    *,
    ranges: Ranges = Ranges.FULL,
    progress: Callable[[float], None] = lambda _share: None,
) -> list[Answer]:
    """Step and range of every scenario, in their order; each equals that of its own `study`.

    Graphs are made when they are replayed, `WIDTH` scenarios at a time and processor, so that the
    memory does not grow with the number of scenarios.
    """
    run = _Run(graph=graph, baseline=baseline, readings=other_readings(graph), ranges=ranges)
    parts = [scenarios[first : first + WIDTH] for first in range(0, len(scenarios), WIDTH)]
    found: list[Answer] = []
    with ThreadPoolExecutor(max(min(len(parts), os.cpu_count() or 1), 1)) as pool:
        for part in pool.map(run.answers, parts):
            found += part
            progress(len(found) / len(scenarios))
    return found


def steps_of(graphs: Sequence[TaskGraph]) -> list[StepTimes]:
    """Step times of variants of one graph; those with other tasks than the first are apart."""
    alike: dict[tuple[int, int], list[int]] = {}
    for place, graph in enumerate(graphs):
        alike.setdefault((graph.n_tasks, id(graph.boundaries.task)), []).append(place)
    found: dict[int, StepTimes] = {}
    for places in alike.values():
        some = [graphs[place] for place in places]
        ends_ns = replay_batch(some, some[0].boundaries.task)
        for place, graph, row_ns in zip(places, some, ends_ns, strict=True):
            found[place] = step_times_of_ends(graph, row_ns)
    return [found[place] for place in range(len(graphs))]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What all scenarios share."""

    graph: TaskGraph
    baseline: Baseline
    readings: Readings
    ranges: Ranges

    def answers(self, scenarios: Sequence[Scenario]) -> list[Answer]:
        """Of a few scenarios at once."""
        found = [(scenario, self._changed(scenario)) for scenario in scenarios]
        pairs = [(scenario, one) for scenario, one in found if isinstance(one, Changed)]
        steps = steps_of([one.graph for _, one in pairs])
        candidates = [[int(times.mean_ns), *without_one_step(times)] for times in steps]
        if self.ranges is Ranges.FULL:
            self._add_bounds(pairs, candidates)
        fitting = zip(pairs, steps, candidates, strict=True)
        return [
            one if isinstance(one, ScenarioError) else self._outcome(*next(fitting))
            for _, one in found
        ]

    def _changed(self, scenario: Scenario) -> Changed | ScenarioError:
        try:
            return apply_all(self.graph, scenario)
        except ScenarioError as error:
            return error

    def _add_bounds(
        self, pairs: Sequence[tuple[Scenario, Changed]], candidates: list[list[int]]
    ) -> None:
        """Add the steps of all other graphs that are as well founded, one per scenario a round."""
        zeros: dict[int, Int64] = {}
        strict = [_strict(one.graph, zeros) for _, one in pairs]
        for all_ns, times in zip(candidates, steps_of(strict), strict=True):
            all_ns += rebased_ns(self.baseline, times)
        others = [variants(self.readings, scenario, one) for scenario, one in pairs]
        for row in zip_longest(*others):
            there = [at for at, graph in enumerate(row) if graph is not None]
            for at, times in zip(there, steps_of([row[at] for at in there]), strict=True):
                candidates[at].append(int(times.mean_ns))

    def _outcome(
        self, pair: tuple[Scenario, Changed], times: StepTimes, all_ns: list[int]
    ) -> Outcome:
        scenario, changed = pair
        no_effect = changed.no_effect
        unmoved = times.mean_ns == self.baseline.replayed.mean_ns
        if unmoved and len(no_effect) < len(scenario.transforms):
            no_effect = (*no_effect, why_unmoved(self.graph, changed.graph, self.baseline))
        return Outcome(
            step_ns=times.mean_ns,
            low_ns=Nanos(min(all_ns)),
            high_ns=Nanos(max(all_ns)),
            labels=changed.labels,
            assumptions=(*changed.assumptions, *of_missing_ranks(changed.graph)),
            no_effect=no_effect,
        )


def _strict(graph: TaskGraph, zeros: dict[int, Int64]) -> TaskGraph:
    """Without residuals; all graphs of one size share the column, so that they replay together."""
    none_ns = zeros.get(graph.n_tasks)
    if none_ns is None:
        none_ns = zeros.setdefault(graph.n_tasks, np.zeros(graph.n_tasks, np.int64))
        none_ns.flags.writeable = False
    return replace(graph, tasks=replace(graph.tasks, residual_ns=none_ns))
