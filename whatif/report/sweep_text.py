"""A sweep for people: a table of all points, and a chart over the longest numeric axis."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ingest.units import format_ms
from whatif.report.columns import aligned
from whatif.report.plot import LETTERS, Series, chart
from whatif.report.run_facts import head
from whatif.report.sweep import (
    PointFacts,
    SweepAnswer,
    best,
    idle_lines,
    lines_over,
    numbers_of,
    plotted_axis,
)

ROWS_SHOWN = 60
NOTES_SHOWN = 8
IDLE_SHOWN = 3
LEAST_FOR_CHART = 3
"""Values of an axis that make a curve."""
CHART_WIDTH = 100
NUMBERS = ("step", "change", "speedup", "low", "high")


def render_sweep(answer: SweepAnswer, width: int) -> str:
    """The whole sweep; rows beyond `ROWS_SHOWN` are left to CSV and JSON."""
    parts = [
        list(_head(answer, width)),
        list(_table(answer)),
        list(_chart(answer, min(width, CHART_WIDTH))),
        list(_notes(answer, width)),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _head(answer: SweepAnswer, width: int) -> Iterator[str]:
    run = answer.run
    yield from wrap(f"run    {head(run)}", width, subsequent_indent=" " * 7)
    yield f"step   replayed {format_ms(run.replayed_ns)}, measured {format_ms(run.measured_ns)}"
    shortest = best(answer)
    if shortest is not None:
        at = ", ".join(f"{name} {value}" for name, value in shortest.at.items())
        yield f"best   {format_ms(shortest.step_ns)} at {at}"


def _table(answer: SweepAnswer) -> Iterator[str]:
    names = [axis.name for axis in answer.axes]
    shown = answer.points[:ROWS_SHOWN]
    cells = [_cells(point, answer) for point in shown]
    sides = "<" * len(names) + ">" * len(NUMBERS) + "<"
    yield from aligned([[*names, *NUMBERS, ""], *cells], sides)
    left = len(answer.points) - len(shown)
    if left:
        yield f"({left:,} of {len(answer.points):,} points left out; --format csv has all)"


def _cells(point: PointFacts, answer: SweepAnswer) -> list[str]:
    values = list(point.at.values())
    if point.step_ns is None:
        return [*values, *("-" for _ in NUMBERS), f"does not fit: {point.error}"]
    change = point.step_ns / answer.run.replayed_ns - 1
    return [
        *values,
        format_ms(point.step_ns),
        f"{change:+.1%}",
        "-" if point.speedup is None else f"{point.speedup:.3f}x",
        format_ms(point.low_ns),
        format_ms(point.high_ns),
        "no effect" if point.step_ns == answer.run.replayed_ns else "",
    ]


def _chart(answer: SweepAnswer, width: int) -> Iterator[str]:
    axis = plotted_axis(answer)
    if axis is None:
        return
    lines = {
        name: points
        for name, points in lines_over(answer, axis).items()
        if len(points) >= LEAST_FOR_CHART
    }
    shown = list(lines.items())[: len(LETTERS)]
    if not shown:
        return
    series = [_series(name, points, axis) for name, points in shown]
    unit = shown[0][1][0].at[axis].lstrip("xX+0123456789.")
    yield from chart(series, f"{axis} {unit}".strip(), answer.run.replayed_ns, width)
    if len(lines) > len(shown):
        yield f"  {len(lines) - len(shown)} more lines: --html draws all"


def _series(name: str, points: list[PointFacts], axis: str) -> Series:
    xs = numbers_of([point.at[axis] for point in points]) or []
    return Series(
        name=name,
        x=tuple(xs),
        y_ns=tuple(point.step_ns or 0 for point in points),
        low_ns=tuple(point.low_ns or 0 for point in points),
        high_ns=tuple(point.high_ns or 0 for point in points),
    )


def _idle(answer: SweepAnswer) -> Iterator[str]:
    for name, places in idle_lines(answer).items():
        some = "; ".join(places[:IDLE_SHOWN]) + ("; …" if len(places) > IDLE_SHOWN else "")
        where = f" at {some}" if some else ""
        yield f"{name} makes no difference{where} (what-ifs stack in the order typed)"


OF_GPUS = ("tp", "cp", "pp", "dp")
"""Options that change how many GPUs the job has."""
OF_SAMPLES = ("dp", "grad-accum", "batch-scale")
"""Options that change how many samples a step has."""


def not_alike(axes: Sequence[str]) -> Iterator[str]:
    """What the steps of a grid do not have in common, so that the shortest need not be the best."""
    for names, what in ((OF_GPUS, "GPUs"), (OF_SAMPLES, "samples of a step")):
        if found := [name for name in axes if name in names]:
            yield f"{what} differ along {' and '.join(found)}: steps alone do not rank points"


def _notes(answer: SweepAnswer, width: int) -> Iterator[str]:
    reasons = dict.fromkeys(
        reason.split(": ", 1)[-1] for point in answer.points for reason in point.no_effect
    )
    ranges = {
        "full": "low and high: the range of each answer, as `replay whatif` has it",
        "steps": "low and high: only how far the steps are apart; --range full replays four times "
        "as much for the whole range",
    }
    notes = [
        ranges[answer.range],
        *not_alike([axis.name for axis in answer.axes]),
        *_idle(answer),
        *(f"no effect: {reason}" for reason in reasons),
        *answer.assumptions,
    ]
    for note in notes[:NOTES_SHOWN]:
        yield from wrap(f"- {note}", width, subsequent_indent="  ", break_on_hyphens=False)
    if len(notes) > NOTES_SHOWN:
        yield f"- {len(notes) - NOTES_SHOWN} more: --json has all"
