"""A sweep as one page that needs no network: chart, map of two axes, and the table of points."""

from collections.abc import Iterator
from itertools import pairwise

from ingest.units import format_ms
from whatif.report.blocks import (
    Block,
    Cell,
    Column,
    DataTable,
    Lines,
    Part,
    RangeBar,
    Ranges,
    Unit,
)
from whatif.report.page.single import SinglePage, single_page
from whatif.report.plot import is_geometric
from whatif.report.run_facts import head
from whatif.report.sweep import (
    PointFacts,
    SweepAnswer,
    best,
    lines_over,
    numbers_of,
    plotted_axis,
)

AS_RECORDED = "replayed as recorded"
MOST_BARS = 60
"""Points that are still drawn where no axis has numbers."""
MOST_LINES = 16


def sweep_page(answer: SweepAnswer, title: str) -> str:
    """The page."""
    return single_page(
        SinglePage(
            program="trace-replay",
            what="One run under many what-ifs",
            title=title,
            facts=(f"{head(answer.run)}, measured {format_ms(answer.run.measured_ns)}",),
            verdict=_verdict(answer),
            shown=(*_chart(answer), *_map(answer), _table(answer)),
            assumptions=answer.assumptions,
        )
    )


def _verdict(answer: SweepAnswer) -> str:
    recorded = f"The replayed step is {format_ms(answer.run.replayed_ns)}"
    shortest = best(answer)
    if shortest is None:
        return f"{recorded}; no point of the grid fits the run."
    at = ", ".join(f"{name} {value}" for name, value in shortest.at.items())
    return f"{recorded}; the shortest of the grid is {format_ms(shortest.step_ns)}, at {at}."


def _chart(answer: SweepAnswer) -> Iterator[Block]:
    """Lines over the longest numeric axis, else a bar with its range for each point."""
    axis = plotted_axis(answer)
    if axis is None:
        yield from _bars(answer)
        return
    lines = lines_over(answer, axis)
    numbers = {
        value: number
        for one in answer.axes
        if one.name == axis
        for value, number in zip(one.values, numbers_of(one.values) or (), strict=True)
    }
    xs = tuple(sorted(set(numbers.values())))
    if not lines:
        return
    shown = dict(list(lines.items())[:MOST_LINES])
    parts = [
        part
        for name, points in shown.items()
        for part in _parts(
            name, {numbers[p.at[axis]]: p for p in points}, xs, alone=len(lines) == 1
        )
    ]
    recorded = Part(
        name=AS_RECORDED, role="other", values=tuple(float(answer.run.replayed_ns) for _ in xs)
    )
    left_out = len(lines) - len(shown)
    yield Lines(
        key="sweep.lines",
        title=f"Step over {axis}",
        about=f"Predicted step for {len(xs)} values of {axis}."
        + (f" {left_out} more lines are in the table." if left_out else ""),
        x_name=axis,
        x_unit=Unit.COUNT,
        x=xs,
        y_unit=Unit.NS,
        lines=(*parts, recorded),
        is_log_x=is_geometric(xs) and all(after > before for before, after in pairwise(xs)),
    )


def _parts(
    name: str, points: dict[float, PointFacts], xs: tuple[float, ...], *, alone: bool
) -> Iterator[Part]:
    """The line, and the ends of its range where it is the only one."""
    found = [points.get(x) for x in xs]
    if alone:
        yield _part("low", "host", [p.low_ns if p else None for p in found])
        yield _part("high", "comm", [p.high_ns if p else None for p in found])
    role = "compute" if alone else name
    yield _part(name or "step", role, [p.step_ns if p else None for p in found])


def _part(name: str, role: str, values: list[int | None]) -> Part:
    return Part(name=name, role=role, values=tuple(values))


def _bars(answer: SweepAnswer) -> Iterator[Block]:
    points = [point for point in answer.points if point.step_ns is not None]
    if not points:
        return
    yield Ranges(
        key="sweep.points",
        title="Steps of the grid",
        about=f"Predicted steps with their ranges; the first {MOST_BARS} at most.",
        unit=Unit.NS,
        baseline=answer.run.replayed_ns,
        baseline_name=AS_RECORDED,
        bars=tuple(
            RangeBar(
                name=", ".join(f"{name} {value}" for name, value in point.at.items()),
                value=point.step_ns or 0,
                low=point.low_ns or 0,
                high=point.high_ns or 0,
            )
            for point in points[:MOST_BARS]
        ),
    )


def _map(answer: SweepAnswer) -> Iterator[Block]:
    """Step over two axes, shaded; nothing where the sweep has not exactly two."""
    if len(answer.axes) != 2:  # noqa: PLR2004  (a map is flat)
        return
    across, down = answer.axes
    steps: dict[tuple[str, str], Cell] = {
        (point.at[across.name], point.at[down.name]): point.step_ns for point in answer.points
    }
    yield DataTable(
        key="sweep.map",
        title=f"Step by {down.name} (down) and {across.name} (across)",
        about="The darker, the longer.",
        columns=(
            Column(name=down.name, unit=Unit.CODE),
            *(Column(name=value, unit=Unit.NS) for value in across.values),
        ),
        rows=tuple((y, *(steps[x, y] for x in across.values)) for y in down.values),
        is_map=True,
    )


def _table(answer: SweepAnswer) -> DataTable:
    times = tuple(Column(name=name, unit=Unit.NS) for name in ("step", "low", "high"))
    return DataTable(
        key="sweep.all",
        title="All points",
        columns=(
            *(Column(name=axis.name, unit=Unit.CODE) for axis in answer.axes),
            *times,
            Column(name="speedup", unit=Unit.FACTOR),
            Column(name="remark", unit=Unit.TEXT),
            Column(name="to type", unit=Unit.CODE),
        ),
        rows=tuple(
            (
                *point.at.values(),
                point.step_ns,
                point.low_ns,
                point.high_ns,
                point.speedup,
                point.error or "; ".join(point.no_effect),
                point.flags,
            )
            for point in answer.points
        ),
    )
