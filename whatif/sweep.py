"""A grid of scenarios on one run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ingest.errors import ScenarioError
from replay.graph.arrays import TaskGraph
from replay.results.fidelity import Baseline
from whatif.answers import Answers
from whatif.many import Answer, Ranges, outcomes
from whatif.recorded import Recorded
from whatif.scenario import Scenario
from whatif.study import readings_of
from whatif.transforms.registry import Transform

Unchanged = tuple[TaskGraph, Baseline]
"""A run as it was, and its replay."""
FULL_RANGE_TASKS = 1_000_000_000
"""Tasks times points up to which each point gets its full range: about a minute on two cores."""
COUPLED_RANGE_TASKS = 100_000_000
"""The same where work slows what runs beside it: such points replay one by one, several times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One place of a grid."""

    at: Mapping[str, str]
    """Value on each axis, as typed."""
    scenario: Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A grid and its answers, in the same order."""

    points: tuple[Point, ...]
    answers: tuple[Answer, ...]
    ranges: Ranges


def grid(axes: Mapping[str, Sequence[Transform]]) -> list[Point]:
    """All combinations of what-ifs, one of each axis; they stack in the order of the axes."""
    return [
        Point(
            at={name: change.flag for name, change in zip(axes, stack, strict=True)},
            scenario=Scenario(transforms=stack),
        )
        for stack in product(*axes.values())
    ]


def ranges_for(graph: TaskGraph, baseline: Baseline, n_points: int) -> Ranges:
    """The full range of each point, where the grid is small enough for the graph."""
    is_coupled = bool(Answers.of(graph, baseline.schedule).couplings)
    most = COUPLED_RANGE_TASKS if is_coupled else FULL_RANGE_TASKS
    return Ranges.FULL if graph.n_tasks * n_points <= most else Ranges.STEPS


def sweep(
    run_on: Callable[[Recorded], Unchanged],
    points: Sequence[Point],
    *,
    ranges: Ranges | None = None,
    progress: Callable[[float], None] = lambda _share: None,
) -> Sweep:
    """Replay every point; one that does not fit the run says why and leaves the others alone.

    Args:
        run_on: the unchanged run, as what points say of the recorded machine lets it be read.
        points: at least one.
        ranges: how much is replayed for the range of each.
        progress: told the share that is done.

    Raises:
        ScenarioError: no point fits.
    """
    chosen = ranges or ranges_for(*run_on(points[0].scenario.base), len(points))
    places_of: dict[Recorded, list[int]] = {}
    for place, point in enumerate(points):
        places_of.setdefault(point.scenario.base, []).append(place)
    found: dict[int, Answer] = {}
    for recorded, places in places_of.items():
        graph, baseline = run_on(recorded)

        def so_far(share: float, done: int = len(found), new: int = len(places)) -> None:
            progress((done + share * new) / len(points))

        some = [points[place].scenario for place in places]
        answers = outcomes(readings_of(graph), baseline, some, ranges=chosen, progress=so_far)
        found.update(zip(places, answers, strict=True))
    refused = [answer for answer in found.values() if isinstance(answer, ScenarioError)]
    if refused and len(refused) == len(points):
        raise refused[0]
    return Sweep(
        points=tuple(points),
        answers=tuple(found[place] for place in range(len(points))),
        ranges=chosen,
    )
