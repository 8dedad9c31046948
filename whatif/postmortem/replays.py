"""What-ifs that a report asks beside the table of levers, each replayed when it is asked for."""

from collections.abc import Sequence
from dataclasses import replace

from ingest.errors import ScenarioError, UsageError
from replay.graph.arrays import TaskGraph
from replay.results.fidelity import Baseline
from whatif.levers import Lever, LeverTable, lever_of
from whatif.many import Outcome, outcomes
from whatif.report.columns import to_type
from whatif.scenario import Scenario
from whatif.study import (
    Readings,
    Study,
    readings_of,
    rebased_ns,
    replays_of,
    study,
    without_one_step,
)
from whatif.study import Replays as AllReplays
from whatif.transforms.registry import Transform


class Replays:
    """Asks what-ifs of one run."""

    def __init__(self, graph: TaskGraph, baseline: Baseline, table: LeverTable) -> None:
        """Nothing is replayed yet.

        Args:
            graph: of the run.
            baseline: its unchanged replay.
            table: its levers, which were replayed already.
        """
        self._graph, self._baseline = graph, baseline
        self._base = table.base
        self._readings: Readings | None = None
        self._replays: AllReplays | None = None
        self._known: dict[str, Lever] = {}
        for row in table.rows:
            for lever in row.moved.values():
                self._remember(lever)

    def known(self, flag: str) -> Lever | None:
        """A lever that was replayed, by its flag or by what is typed; None for another."""
        return self._known.get(flag)

    def saving(self, why: str, changes: Sequence[Transform]) -> Lever | None:
        """What some changes save together, with the range; None where they do not fit the run."""
        scenario = Scenario(transforms=tuple(changes))
        try:
            (found,) = outcomes(self._told(), self._baseline, [scenario])
        except UsageError:
            return None
        if isinstance(found, ScenarioError):
            return None
        lever = lever_of(why, tuple(changes), found, self._base)
        self._remember(lever)
        return lever

    def saving_of_graph(self, why: str, changed: TaskGraph) -> Lever:
        """The same of a graph with other durations, for a change that no flag stands for.

        Its range is that of the measured steps and of the strict replay; models have no part in it.
        """
        if self._replays is None:
            self._replays = replays_of(self._told(), self._baseline)
        replays = self._replays
        times = replays.nominal.step_times(changed)
        all_ns = (
            int(times.mean_ns),
            *without_one_step(times),
            *rebased_ns(self._baseline, replays.strict.step_times(changed)),
        )
        base = replace(self._base, all_ns=self._base.all_ns[: len(all_ns)])
        return lever_of(why, (), Outcome(all_ns=all_ns), base)

    def study(self, changes: Sequence[Transform]) -> Study | None:
        """The whole schedule of a scenario; None where it does not fit the run."""
        try:
            return study(self._graph, self._baseline, Scenario(transforms=tuple(changes)))
        except (ScenarioError, UsageError):
            return None

    def _told(self) -> Readings:
        if self._readings is None:
            self._readings = readings_of(self._graph)
        return self._readings

    def _remember(self, lever: Lever) -> None:
        self._known[lever.flag_text] = lever
        self._known[typed(lever)] = lever


def typed(lever: Lever) -> str:
    """The what-ifs of a lever as they are typed in a shell."""
    return " ".join(to_type(change.flag) for change in lever.changes)
