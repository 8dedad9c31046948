"""`replay sweep` as data: the JSON contract (`schema/sweep.schema.json`), and rows for CSV."""

import re
from collections.abc import Sequence

import msgspec

from ingest.errors import ScenarioError
from whatif.many import Answer
from whatif.report.run_facts import RunFacts
from whatif.sweep import Point, Sweep

_NUMBER = re.compile(r"[xX+]?(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)(?P<unit>[A-Za-zµ/]*)")
"""A value that has a place on a numeric axis."""


class AxisFacts(msgspec.Struct, frozen=True, kw_only=True):
    """An option that takes several values."""

    name: str
    values: tuple[str, ...]


class PointFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the grid; null where its scenario does not fit the run, and `error` says why."""

    at: dict[str, str]
    """Value on each axis."""
    flags: str
    """The options that reproduce it."""
    step_ns: int | None
    low_ns: int | None
    high_ns: int | None
    speedup: float | None
    """Replayed / predicted."""
    no_effect: tuple[str, ...]
    error: str | None


class SweepAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What `replay sweep TRACE ... --json` prints."""

    schema_version: int = 1
    run: RunFacts
    axes: tuple[AxisFacts, ...]
    range: str
    """`full`: as wide as that of a single answer; `steps`: only how far the steps are apart."""
    assumptions: tuple[str, ...]
    """Of all points."""
    points: tuple[PointFacts, ...]


def sweep_answer(run: RunFacts, found: Sweep) -> SweepAnswer:
    """The contract's object."""
    answers = zip(found.points, found.answers, strict=True)
    points = tuple(_point(point, answer, run.replayed_ns) for point, answer in answers)
    assumptions = dict.fromkeys(
        text
        for answer in found.answers
        if not isinstance(answer, ScenarioError)
        for text in answer.told
    )
    names = dict.fromkeys(name for point in found.points for name in point.at)
    return SweepAnswer(
        run=run,
        axes=tuple(
            AxisFacts(
                name=name, values=tuple(dict.fromkeys(point.at[name] for point in found.points))
            )
            for name in names
        ),
        range=str(found.ranges),
        assumptions=tuple(assumptions),
        points=points,
    )


def _point(point: Point, answer: Answer, replayed_ns: int) -> PointFacts:
    changes = [change.flag for change in point.scenario.transforms]
    flags = " ".join(filter(None, (*changes, point.scenario.base.flags)))
    if isinstance(answer, ScenarioError):
        return PointFacts(
            at=dict(point.at),
            flags=flags,
            step_ns=None,
            low_ns=None,
            high_ns=None,
            speedup=None,
            no_effect=(),
            error=str(answer),
        )
    return PointFacts(
        at=dict(point.at),
        flags=flags,
        step_ns=answer.step_ns,
        low_ns=answer.low_ns,
        high_ns=answer.high_ns,
        speedup=replayed_ns / answer.step_ns if answer.step_ns else None,
        no_effect=answer.no_effect,
        error=None,
    )


def columns(answer: SweepAnswer) -> tuple[str, ...]:
    """Names of the columns of `rows`."""
    axes = tuple(axis.name for axis in answer.axes)
    return (*axes, "step_ns", "low_ns", "high_ns", "speedup", "no_effect", "error")


def rows(answer: SweepAnswer) -> list[tuple[object, ...]]:
    """One row per point, for CSV."""
    return [
        (
            *point.at.values(),
            point.step_ns,
            point.low_ns,
            point.high_ns,
            point.speedup,
            "; ".join(point.no_effect),
            point.error,
        )
        for point in answer.points
    ]


def numbers_of(values: Sequence[str]) -> list[float] | None:
    """The values of an axis as numbers of one unit; None where they are none."""
    found = [_NUMBER.fullmatch(value) for value in values]
    if not all(found) or len({match["unit"] for match in found if match}) > 1:
        return None
    return [float(match["number"]) for match in found if match]


def best(answer: SweepAnswer) -> PointFacts | None:
    """The point with the shortest step, the first of equals; None where no point has a step."""
    fitting = [point for point in answer.points if point.step_ns is not None]
    return min(fitting, key=lambda point: point.step_ns or 0) if fitting else None


def idle_lines(answer: SweepAnswer) -> dict[str, list[str]]:
    """By axis: where, on the other axes, all its values give one step."""
    idle: dict[str, list[str]] = {}
    for axis in answer.axes:
        for where, points in lines_over(answer, axis.name).items():
            if len(points) > 1 and len({point.step_ns for point in points}) == 1:
                idle.setdefault(axis.name, []).append(where)
    return idle


def plotted_axis(answer: SweepAnswer) -> str | None:
    """The numeric axis with most values, which charts have below; None where there is none."""
    numeric = [axis for axis in answer.axes if numbers_of(axis.values) is not None]
    return max(numeric, key=lambda axis: len(axis.values)).name if numeric else None


def lines_over(answer: SweepAnswer, axis: str) -> dict[str, list[PointFacts]]:
    """Points that have a step, by their values on the other axes, in the order of the grid."""
    lines: dict[str, list[PointFacts]] = {}
    for point in answer.points:
        if point.step_ns is not None:
            others = [f"{name} {value}" for name, value in point.at.items() if name != axis]
            lines.setdefault(", ".join(others), []).append(point)
    return lines
