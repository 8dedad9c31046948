"""Many scenarios on one run, replayed together: the steps of `study`, without their schedules."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import NamedTuple

from ingest.errors import ScenarioError
from ingest.units import Nanos
from replay.engine.kernel import WIDTH
from replay.graph.arrays import Int64
from replay.results.fidelity import Baseline
from whatif.answers import Told
from whatif.scenario import Scenario
from whatif.stacking import Changed
from whatif.study import (
    Readings,
    Replays,
    Stacks,
    Variant,
    is_unmoved,
    may_move,
    of_missing_ranks,
    of_other_runs,
    rebased_ns,
    replays_of,
    variants,
    why_unmoved,
    without_one_step,
)
from whatif.transforms.host_network import between_runs_frac


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
    scenario of a run; the range is from the least to the longest of them."""
    anyway_frac: float = 0.0
    """Of the step, by which runs differ anyway: the range has as much more at both ends."""
    labels: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    known_errors: tuple[str, ...] = ()

    no_effect: tuple[str, ...] = ()

    @property
    def told(self) -> tuple[str, ...]:
        """How wrong its models are known to be, then what was taken for granted."""
        return (*(f"known error: {error}" for error in self.known_errors), *self.assumptions)

    @property
    def step_ns(self) -> Nanos:
        """The prediction."""
        return Nanos(self.all_ns[0])

    @property
    def low_ns(self) -> Nanos:
        """Low end of its range."""
        return Nanos(round(min(self.all_ns) * (1 - self.anyway_frac)))

    @property
    def high_ns(self) -> Nanos:
        """High end of its range."""
        return Nanos(round(max(self.all_ns) * (1 + self.anyway_frac)))


NOT_SAID = b""
"""No scenario says more of the recorded latencies than the graph."""

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


class _Fitting(NamedTuple):
    """A scenario that fits the run, and how it replays."""

    scenario: Scenario
    changed: Changed
    replays: Replays


class _Run:
    """What all scenarios share."""

    def __init__(self, *, readings: Readings, baseline: Baseline, ranges: Ranges) -> None:
        self._readings, self._baseline, self._ranges = readings, baseline, ranges
        self._replays = {NOT_SAID: replays_of(readings, baseline)}

    def answers(self, scenarios: Sequence[Scenario]) -> list[Answer]:
        """Of a few scenarios at once."""
        stacks = Stacks(self._readings)
        found = [self._applied(stacks, scenario) for scenario in scenarios]
        fitting = [one for one in found if isinstance(one, _Fitting)]
        told = _together(Variant(one.replays.nominal, one.changed.graph) for one in fitting)
        candidates = [[int(times.mean_ns), *without_one_step(times)] for times, _ in told]
        if self._ranges is Ranges.FULL:
            self._add_bounds(stacks, fitting, candidates)
        answers = map(self._outcome, fitting, told, candidates)
        return [one if isinstance(one, ScenarioError) else next(answers) for one in found]

    def _applied(self, stacks: Stacks, scenario: Scenario) -> _Fitting | ScenarioError:
        try:
            changed = stacks.nominal.made(scenario)
        except ScenarioError as error:
            return error
        return _Fitting(scenario, changed, self._replays_of(changed.context.recorded_latency_ns))

    def _replays_of(self, recorded_latency_ns: Int64 | None) -> Replays:
        """Scenarios that say the same of the recorded latencies share their couplings."""
        said = NOT_SAID if recorded_latency_ns is None else recorded_latency_ns.tobytes()
        if said not in self._replays:
            replays = replays_of(self._readings, self._baseline, recorded_latency_ns)
            self._replays.setdefault(said, replays)
        return self._replays[said]

    def _add_bounds(
        self, stacks: Stacks, fitting: Sequence[_Fitting], candidates: list[list[int]]
    ) -> None:
        """Add the steps of all other graphs that are as well founded, one per scenario a round."""
        strict = _together(Variant(one.replays.strict, one.changed.graph) for one in fitting)
        for all_ns, (times, _) in zip(candidates, strict, strict=True):
            all_ns += rebased_ns(self._baseline, times)
        others = [variants(stacks, one.replays, one.scenario, one.changed) for one in fitting]
        for row in zip_longest(*others):
            there = [(all_ns, one) for all_ns, one in zip(candidates, row, strict=True) if one]
            steps = _together((one for _, one in there), with_words=False)
            for (all_ns, _), (times, _) in zip(there, steps, strict=True):
                all_ns.append(int(times.mean_ns))

    def _outcome(self, one: _Fitting, told: Told, all_ns: list[int]) -> Outcome:
        (times, coupled), changed = told, one.changed
        no_effect = changed.no_effect
        unmoved = is_unmoved(times.mean_ns, self._baseline.replayed.mean_ns)
        if unmoved and may_move(one.scenario, changed):
            reason = why_unmoved(self._readings.graph, changed.graph, self._baseline)
            no_effect = (*no_effect, reason)
        anyway_frac = between_runs_frac(self._readings.graph, changed.graph)
        return Outcome(
            all_ns=tuple(all_ns),
            anyway_frac=anyway_frac,
            labels=changed.labels,
            assumptions=(
                *changed.assumptions,
                *coupled,
                *of_missing_ranks(changed.graph),
                *of_other_runs(anyway_frac),
            ),
            known_errors=changed.known_errors,
            no_effect=no_effect,
        )


def _together(variants: Iterable[Variant], *, with_words: bool = True) -> list[Told]:
    """Step times of variants in their order; those that replay in the same way at once."""
    given = list(variants)
    alike: dict[int, list[int]] = {}
    for place, one in enumerate(given):
        alike.setdefault(id(one.answers), []).append(place)
    found: dict[int, Told] = {}
    for places in alike.values():
        graphs = [given[place].graph for place in places]
        told = given[places[0]].answers.told_of_all(graphs, with_words=with_words)
        found.update(zip(places, told, strict=True))
    return [found[place] for place in range(len(given))]
