"""A sweep as one page that needs no network: chart, map of two axes, and the table of points."""

from html import escape
from typing import Any

from plotly import graph_objects, io

from ingest.units import format_ms
from whatif.report.run_facts import head
from whatif.report.sweep import (
    PointFacts,
    SweepAnswer,
    best,
    lines_over,
    numbers_of,
    plotted_axis,
)

MS = 1e6
STYLE = """
body { font-family: system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .2em .7em; text-align: right; border-bottom: 1px solid #ddd; }
td.text, th.text { text-align: left; }
li { margin: .2em 0; }
"""


def sweep_page(answer: SweepAnswer, title: str) -> str:
    """The page; plotly's own code is in it."""
    figures = [_figure(answer)]
    surface = _map(answer)
    if surface is not None:
        figures.append(surface)
    drawn = [
        io.to_html(figure, full_html=False, include_plotlyjs=at == 0)
        for at, figure in enumerate(figures)
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        f"</title><style>{STYLE}</style></head><body>\n<h1>{escape(title)}</h1>\n"
        f"{_head(answer)}\n{''.join(drawn)}\n{_table(answer)}\n{_notes(answer)}\n</body></html>\n"
    )


def _head(answer: SweepAnswer) -> str:
    run, shortest = answer.run, best(answer)
    lines = [
        head(run),
        f"replayed step {format_ms(run.replayed_ns)}, measured {format_ms(run.measured_ns)}",
    ]
    if shortest is not None:
        at = ", ".join(f"{name} {value}" for name, value in shortest.at.items())
        lines.append(f"shortest: {format_ms(shortest.step_ns)} at {at}")
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def _figure(answer: SweepAnswer) -> Any:  # noqa: ANN401  (plotly's own type)
    """Lines over the longest numeric axis, else one bar per point; whiskers are the range."""
    axis = plotted_axis(answer)
    figure = graph_objects.Figure()
    if axis is None:
        points = [point for point in answer.points if point.step_ns is not None]
        names = [", ".join(point.at.values()) for point in points]
        figure.add_trace(graph_objects.Bar(x=names, y=_ms(points), error_y=_whiskers(points)))
    else:
        for name, points in lines_over(answer, axis).items():
            xs = numbers_of([point.at[axis] for point in points])
            figure.add_trace(
                graph_objects.Scatter(
                    x=xs, y=_ms(points), error_y=_whiskers(points), mode="lines+markers", name=name
                )
            )
    figure.add_hline(
        y=answer.run.replayed_ns / MS, line_dash="dot", annotation_text="replayed as recorded"
    )
    figure.update_layout(xaxis_title=axis, yaxis_title="step, ms", template="plotly_white")
    return figure


def _ms(points: list[PointFacts]) -> list[float]:
    return [(point.step_ns or 0) / MS for point in points]


def _whiskers(points: list[PointFacts]) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [((point.high_ns or 0) - (point.step_ns or 0)) / MS for point in points],
        "arrayminus": [((point.step_ns or 0) - (point.low_ns or 0)) / MS for point in points],
    }


def _map(answer: SweepAnswer) -> Any | None:  # noqa: ANN401  (plotly's own type)
    """Step over two axes as colours; None where the sweep has not exactly two."""
    if len(answer.axes) != 2:  # noqa: PLR2004  (a map is flat)
        return None
    across, down = answer.axes
    step_ms = {
        (point.at[across.name], point.at[down.name]): (point.step_ns or 0) / MS or None
        for point in answer.points
    }
    figure = graph_objects.Figure(
        graph_objects.Heatmap(
            x=[str(value) for value in across.values],
            y=[str(value) for value in down.values],
            z=[[step_ms[x, y] for x in across.values] for y in down.values],
            colorbar={"title": "step, ms"},
            colorscale="Viridis",
        )
    )
    figure.update_layout(
        xaxis={"title": across.name, "type": "category"},
        yaxis={"title": down.name, "type": "category"},
        template="plotly_white",
    )
    return figure


def _table(answer: SweepAnswer) -> str:
    texts = [axis.name for axis in answer.axes]
    heads = [
        *(f'<th class="text">{escape(title)}</th>' for title in texts),
        *(f"<th>{title}</th>" for title in ("step", "low", "high", "speedup")),
        *(f'<th class="text">{title}</th>' for title in ("remark", "to type")),
    ]
    return f"<table><tr>{''.join(heads)}</tr>{''.join(map(_row, answer.points))}</table>"


def _row(point: PointFacts) -> str:
    speed = "-" if point.speedup is None else f"{point.speedup:.3f}x"
    texts = list(point.at.values())
    numbers = [*map(format_ms, (point.step_ns, point.low_ns, point.high_ns)), speed]
    remarks = [point.error or "; ".join(point.no_effect), point.flags]
    cells = [
        *(f'<td class="text">{escape(text)}</td>' for text in texts),
        *(f"<td>{escape(text)}</td>" for text in numbers),
        *(f'<td class="text">{escape(text)}</td>' for text in remarks),
    ]
    return f"<tr>{''.join(cells)}</tr>\n"


def _notes(answer: SweepAnswer) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in answer.assumptions)
    return f"<h2>Assumptions</h2><ul>{items}</ul>" if items else ""
