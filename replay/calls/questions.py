"""Questions to a run that was replayed once: levers, grids, goals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ingest.errors import UsageError
from ingest.units import Nanos
from replay.calls.replayed import Replayed
from replay.calls.window import UNCHANGED
from whatif.levers import lever_table
from whatif.many import Ranges
from whatif.report.levers import LeversAnswer, levers_answer
from whatif.report.run_facts import ReplayedRun, run_facts
from whatif.report.solve import SolveAnswer, solve_answer
from whatif.report.sweep import SweepAnswer, sweep_answer
from whatif.scenario import Scenario
from whatif.solve import Knob
from whatif.solve import solve as solved
from whatif.sweep import Point
from whatif.sweep import sweep as swept

LEAST_GOAL, MOST_GOAL = 1e-6, 1e6
"""Speedups that may be asked for: 10 ms is 3 hours with the least, 10 ns with the most."""
MOST_STEP_NS = 24 * 3600 * 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A step that shall be met; exactly one of the two is given."""

    speedup: float | None = None
    """Against the replayed run."""
    step_ns: Nanos | None = None

    def __post_init__(self) -> None:
        """Refuse none, both, and what is no speed."""
        if (self.speedup is None) == (self.step_ns is None):
            raise UsageError("a goal is --speedup or --step, one of them", hint="--speedup 1.3")
        if self.speedup is not None and not LEAST_GOAL <= self.speedup <= MOST_GOAL:
            raise UsageError(
                f"`{self.speedup:g}` is no speedup to be had",
                hint=f"from {LEAST_GOAL:g} to {MOST_GOAL:,.0f}, for example --speedup 1.3",
            )
        if self.step_ns is not None and self.step_ns < 1:
            raise UsageError(f"{self.step_ns} ns is no step", hint="for example --step 30ms")
        if self.step_ns is not None and self.step_ns > MOST_STEP_NS:
            raise UsageError("a goal of more than a day is no step", hint="for example --step 30ms")

    def in_ns(self, replayed_ns: Nanos) -> Nanos:
        """The longest step that meets it, at least 1 ns."""
        if self.speedup is not None:
            return Nanos(max(int(replayed_ns / self.speedup), 1))
        assert self.step_ns is not None, "one of the two is given"
        return self.step_ns


def levers(run: ReplayedRun, scenario: Scenario = UNCHANGED) -> LeversAnswer:
    """What every lever of the run would give, on top of a scenario.

    Raises:
        ScenarioError: the scenario does not fit the run.
    """
    return levers_answer(run_facts(run), lever_table(run.graph, run.baseline, scenario))


def sweep(
    run: Replayed,
    points: Sequence[Point],
    *,
    ranges: Ranges | None = None,
    progress: Callable[[float], None] = lambda _share: None,
) -> SweepAnswer:
    """The run under every scenario of a grid, as `whatif.sweep.grid` makes it.

    Raises:
        ScenarioError: no point fits the run.
    """
    found = swept(run.on, points, ranges=ranges, progress=progress)
    return sweep_answer(run_facts(run), found)


def solve(
    run: Replayed, knob: Knob, goal: Goal, *, flag: Callable[[float], str] = "{:g}".format
) -> SolveAnswer:
    """How much of one what-if the goal needs.

    Args:
        run: read and replayed.
        knob: the what-if, with a number.
        goal: a speedup or a step.
        flag: the knob with a value, as it is typed.

    Raises:
        ScenarioError: no value of the knob fits the run.
    """
    goal_ns = goal.in_ns(run.baseline.replayed.mean_ns)
    found = solved(run.graph, run.baseline, knob, goal_ns)
    return solve_answer(run_facts(run), found, knob.name, flag)
