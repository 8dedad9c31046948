"""How much of one what-if a goal needs: the weakest value with which the replay meets a step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ingest.errors import ScenarioError, UsageError
from ingest.units import Nanos
from replay.graph.arrays import TaskGraph
from replay.results.fidelity import Baseline
from whatif.many import Outcome, outcomes
from whatif.scenario import Scenario
from whatif.stacking import Stacking
from whatif.study import readings_of
from whatif.transforms.machine import Link

COARSE = 25
"""Values that are tried first, over the whole range of the knob."""
FINE = 15
"""Values between two neighbours, a round."""
CLOSE = 1.001
"""Ratio of neighbours between which nobody tells apart."""
ROUNDS = 12
"""More than the widest range needs; whole numbers may need all."""
ROUNDING_NS = 1_000
"""Steps this far apart are equal: durations are rounded to whole nanoseconds, task by task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """A what-if with a number."""

    name: str
    least: float
    most: float
    """Both above 0; values are tried by equal ratios between them."""
    with_zero: bool = False
    """0 is a value too, below `least`."""
    is_whole: bool = False
    scenario: Callable[[float], Scenario]
    """The whole stack with the knob at a value."""
    link: Link | None = None
    """The link whose rate it multiplies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The run with the knob at one value."""

    value: float
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What a goal needs."""

    goal_ns: Nanos
    needed: Tried | None
    """The weakest value from which on the prediction meets the goal; where the answer turns back
    before its end, the value with the shortest step. None where none meets it."""
    needed_bytes_per_s: float | None
    """Rate of the link there, as vendors print it; None where it is not known or no link."""
    at_best: float | None
    """The same for the low end of the range of each answer: less may do."""
    at_worst: float | None
    """The same for the high end: None where it may not be reached at all."""
    bound: Tried
    """The value with the shortest step: the strongest, unless the answer turns back."""
    weakest: Tried
    also: Tried | None
    """The weakest value tried that meets the goal too, though values between it and the needed one
    do not; None where there is none."""
    refused: str
    """Why the knob has values that do not fit the run; empty where all do."""
    detour: tuple[Tried, Tried] | None
    """Two neighbours of which the stronger has the longer step; None where it only falls."""

    @property
    def moves(self) -> bool:
        """The knob changes the step at all."""
        return self.weakest.outcome.step_ns - self.bound.outcome.step_ns > ROUNDING_NS

    @property
    def ends_the_search(self) -> bool:
        """Even the weakest value tried meets the goal: still weaker ones may."""
        return self.needed is self.weakest


def solve(graph: TaskGraph, baseline: Baseline, knob: Knob, goal_ns: Nanos) -> Solution:
    """Find the weakest value of the knob from which on the step is `goal_ns` or less.

    Values are tried over the whole range first, which also tells whether the answer falls all the
    way, then between the neighbours on both sides of the goal, for the prediction and for both ends
    of its range.

    Raises:
        ScenarioError: no value of the knob fits the run.
    """
    search = _Search(graph, baseline, knob)
    search.try_all(_ladder(knob))
    tried = search.by_strength()
    for _ in range(ROUNDS):
        missing = {
            value for step in (_step, _low, _high) for value in _between(tried, goal_ns, step, knob)
        }
        if not search.try_all(sorted(missing)):
            break
        tried = search.by_strength()
    needed = _weakest_that_meets(tried, goal_ns, _step)
    best, worst = (_weakest_that_meets(tried, goal_ns, end) for end in (_low, _high))
    bound = min(tried[::-1], key=_step)
    if needed is None and _step(bound) <= goal_ns:
        needed = bound
    return Solution(
        goal_ns=goal_ns,
        needed=needed,
        needed_bytes_per_s=None if needed is None else _rate(graph, knob, needed.value),
        at_best=None if best is None else best.value,
        at_worst=None if worst is None else worst.value,
        bound=bound,
        weakest=tried[0],
        also=_meets_before(tried, needed, goal_ns),
        refused=search.refused,
        detour=_detour(tried),
    )


def _rate(graph: TaskGraph, knob: Knob, value: float) -> float | None:
    """Rate of the knob's link with the knob at a value."""
    fabric = Stacking(graph).made(knob.scenario(value)).context.fabric
    if knob.link is None or fabric is None:
        return None
    one_way: float | None = getattr(fabric, knob.link.field)
    return None if one_way is None else one_way * knob.link.vendor_factor


def _step(tried: Tried) -> int:
    return tried.outcome.step_ns


def _low(tried: Tried) -> int:
    return tried.outcome.low_ns


def _high(tried: Tried) -> int:
    return tried.outcome.high_ns


class _Search:
    """What was tried so far."""

    def __init__(self, graph: TaskGraph, baseline: Baseline, knob: Knob) -> None:
        self._readings = readings_of(graph)
        self._baseline, self._knob = baseline, knob
        self._tried: dict[float, Tried | None] = {}
        self.refused = ""

    def try_all(self, values: Sequence[float]) -> bool:
        """Replay those that were not yet tried, all at once; False where there are none."""
        new = [value for value in values if value not in self._tried]
        self._tried.update(dict.fromkeys(new))
        made = {value: scenario for value in new if (scenario := self._made(value)) is not None}
        answers = outcomes(self._readings, self._baseline, list(made.values()))
        for value, answer in zip(made, answers, strict=True):
            if isinstance(answer, ScenarioError):
                self.refused = str(answer)
            else:
                self._tried[value] = Tried(value=value, outcome=answer)
        if new and not any(self._tried.values()):
            raise ScenarioError(
                f"no value of {self._knob.name} fits this run: {self.refused}",
                hint="try one by itself: replay TRACE with that option",
            )
        return bool(new)

    def _made(self, value: float) -> Scenario | None:
        """None where the what-if takes no such value, whatever the run."""
        try:
            return self._knob.scenario(value)
        except UsageError:
            return None

    def by_strength(self) -> list[Tried]:
        """From the end with the longer step to the end with the shorter one."""
        found = [tried for _, tried in sorted(self._tried.items()) if tried is not None]
        return found if _step(found[-1]) <= _step(found[0]) else found[::-1]


def _ladder(knob: Knob) -> list[float]:
    """Values over the whole range, by equal ratios; 1 is among them, where nothing changes."""
    ratio = knob.most / knob.least
    values = {knob.least * ratio ** (place / (COARSE - 1)) for place in range(COARSE)}
    values |= {1.0} if knob.least <= 1 <= knob.most else set()
    values |= {0.0} if knob.with_zero else set()
    return sorted({_whole(value, knob) for value in values})


def _whole(value: float, knob: Knob) -> float:
    return float(round(value)) if knob.is_whole else float(f"{value:.4g}")


def _weakest_that_meets(
    tried: Sequence[Tried], goal_ns: int, step: Callable[[Tried], int]
) -> Tried | None:
    """The weakest value of which all stronger ones meet the goal as well."""
    found = None
    for one in reversed(tried):
        if step(one) > goal_ns:
            break
        found = one
    return found


def _meets_before(tried: Sequence[Tried], needed: Tried | None, goal_ns: int) -> Tried | None:
    """The weakest value before the needed one that meets the goal by itself."""
    if needed is None:
        return None
    weaker = tried[: tried.index(needed)]
    return next((one for one in weaker if _step(one) <= goal_ns), None)


def _between(
    tried: Sequence[Tried], goal_ns: int, step: Callable[[Tried], int], knob: Knob
) -> list[float]:
    """Values between the last that misses the goal and the first that meets it."""
    meets = _weakest_that_meets(tried, goal_ns, step)
    if meets is None or meets is tried[0]:
        return []
    low, high = sorted((tried[tried.index(meets) - 1].value, meets.value))
    if low > 0 and high / low < CLOSE:
        return []
    start = max(low, high / 1e3)
    if low == 0 and high <= 1 / 1e9:
        return []
    ratio = high / start
    return [_whole(start * ratio ** (place / (FINE + 1)), knob) for place in range(FINE + 1)]


def _detour(tried: Sequence[Tried]) -> tuple[Tried, Tried] | None:
    """The neighbours between which the step grows most, though the knob gets stronger."""
    grown = [(_step(after) - _step(before), (before, after)) for before, after in pairwise(tried)]
    most, pair = max(grown, key=lambda one: one[0], default=(0, None))
    return pair if most > ROUNDING_NS else None
