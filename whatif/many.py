"""Many scenarios on one run, replayed together: the steps of `study`, without their schedules."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import TypeVar

from ingest.errors import ScenarioError
from ingest.units import Nanos
from replay.engine.kernel import WIDTH
from replay.results.fidelity import Baseline
from replay.results.metrics import StepTimes
from whatif.scenario import Scenario
from whatif.stacking import Changed
from whatif.study import (
    Readings,
    Stacks,
    Variant,
    of_missing_ranks,
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

    all_ns: tuple[int, ...]
    """The prediction, then all other answers that are as well founded, in the same order for every
    scenario of a run; the range is the least and the longest of them."""
    labels: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    no_effect: tuple[str, ...] = ()

    @property
    def step_ns(self) -> Nanos:
        """The prediction."""
        return Nanos(self.all_ns[0])

    @property
    def low_ns(self) -> Nanos:
        """Low end of its range."""
        return Nanos(min(self.all_ns))

    @property
    def high_ns(self) -> Nanos:
        """High end of its range."""
        return Nanos(max(self.all_ns))


Answer = Outcome | ScenarioError
"""A scenario that does not fit the run leaves the others alone."""


def outcomes(
    readings: Readings,
    baseline: Baseline,
    scenarios: Sequence[Scenario],
    *,
    ranges: Ranges = Ranges.FULL,
    progress: Callable[[float], None] = lambda _share: None,
) -> list[Answer]:
    """Step and range of every scenario, in their order; each equals that of its own `study`.

    Graphs are made when they are replayed, `WIDTH` scenarios at a time and processor, so that the
    memory does not grow with the number of scenarios.

    Args:
        readings: of the run and its baseline (`whatif.study.readings_of`).
        baseline: the unchanged run.
        scenarios: any number.
        ranges: how much is replayed for the range of each.
        progress: told the share that is done.
    """
    run = _Run(baseline=baseline, readings=readings, ranges=ranges)
    parts = [scenarios[first : first + WIDTH] for first in range(0, len(scenarios), WIDTH)]
    found: list[Answer] = []
    with ThreadPoolExecutor(max(min(len(parts), os.cpu_count() or 1), 1)) as pool:
        for part in pool.map(run.answers, parts):
            found += part
            progress(len(found) / len(scenarios))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What all scenarios share."""

    baseline: Baseline
    readings: Readings
    ranges: Ranges

    def answers(self, scenarios: Sequence[Scenario]) -> list[Answer]:
        """Of a few scenarios at once."""
        stacks = Stacks(self.readings)
        found = [(scenario, _changed(stacks, scenario)) for scenario in scenarios]
        pairs = [(scenario, one) for scenario, one in found if isinstance(one, Changed)]
        steps = self.readings.answers.told_of_all([one.graph for _, one in pairs])
        candidates = [[int(times.mean_ns), *without_one_step(times)] for times, _ in steps]
        if self.ranges is Ranges.FULL:
            self._add_bounds(stacks, pairs, candidates)
        fitting = zip(pairs, steps, candidates, strict=True)
        return [
            one if isinstance(one, ScenarioError) else self._outcome(*next(fitting))
            for _, one in found
        ]

    def _add_bounds(
        self,
        stacks: Stacks,
        pairs: Sequence[tuple[Scenario, Changed]],
        candidates: list[list[int]],
    ) -> None:
        """Add the steps of all other graphs that are as well founded, one per scenario a round."""
        strict = self.readings.strict.step_times_of_all([one.graph for _, one in pairs])
        for all_ns, times in zip(candidates, strict, strict=True):
            all_ns += rebased_ns(self.baseline, times)
        others = [variants(stacks, scenario, one) for scenario, one in pairs]
        for row in zip_longest(*others):
            for all_ns, times in _with_times(zip(candidates, row, strict=True)):
                all_ns.append(int(times.mean_ns))

    def _outcome(
        self,
        pair: tuple[Scenario, Changed],
        told: tuple[StepTimes, tuple[str, ...]],
        all_ns: list[int],
    ) -> Outcome:
        (scenario, changed), (times, coupled) = pair, told
        no_effect = changed.no_effect
        unmoved = times.mean_ns == self.baseline.replayed.mean_ns
        if unmoved and len(no_effect) < len(scenario.transforms):
            no_effect = (*no_effect, why_unmoved(self.readings.graph, changed.graph, self.baseline))
        return Outcome(
            all_ns=tuple(all_ns),
            labels=changed.labels,
            assumptions=(*changed.assumptions, *coupled, *of_missing_ranks(changed.graph)),
            no_effect=no_effect,
        )


def _changed(stacks: Stacks, scenario: Scenario) -> Changed | ScenarioError:
    try:
        return stacks.nominal.made(scenario)
    except ScenarioError as error:
        return error


_T = TypeVar("_T")


def _with_times(row: Iterable[tuple[_T, Variant | None]]) -> Iterator[tuple[_T, StepTimes]]:
    """Step times of variants; those that replay in the same way together."""
    alike: dict[int, list[tuple[_T, Variant]]] = {}
    for what, one in row:
        if one is not None:
            alike.setdefault(id(one.answers), []).append((what, one))
    for some in alike.values():
        answers = some[0][1].answers
        steps = answers.step_times_of_all([one.graph for _, one in some])
        yield from zip((what for what, _ in some), steps, strict=True)
