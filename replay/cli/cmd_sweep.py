"""`replay sweep`: a grid of what-ifs."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli import console, options
from replay.cli.reading import reading, replayed
from replay.cli.stack import typed
from replay.cli.writing import require_place, write_whole

if TYPE_CHECKING:
    from whatif.report.sweep import SweepAnswer


class SweepFormat(StrEnum):
    """Forms of a sweep."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


class RangeChoice(StrEnum):
    """How much is replayed for the range of each point."""

    AUTO = "auto"
    FULL = "full"
    STEPS = "steps"


def sweep(
    ctx: typer.Context,
    traces: options.Traces,
    most: Annotated[
        int, typer.Option("--most", metavar="N", min=1, help="Points that a grid may have.")
    ] = 10_000,
    range_: Annotated[
        RangeChoice,
        typer.Option(
            "--range",
            help="Range of each point: full as of a single answer, or steps only; auto takes full "
            "up to 1e9 tasks x points.",
        ),
    ] = RangeChoice.AUTO,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also a page with charts, which needs no network."),
    ] = None,
    steps: options.Steps = None,
    ranks: options.Ranks = None,
    unprofiled_step: options.UnprofiledStep = None,
    format_: Annotated[
        SweepFormat, typer.Option("--format", help="How to print the points.")
    ] = SweepFormat.TABLE,
    json: options.Json = False,
    strict: options.Strict = False,
    no_cache: options.NoCache = False,
    cache_dir: options.CacheDir = None,
    window: options.Window = None,
) -> None:
    """Replay a run under many what-ifs at once.

    Every combination of their values is replayed.

    \b
    replay sweep traces/ --nvlink 450:1800:4 --network-scale 1,2
    replay sweep traces/ --scale class:gemm=1:0.25:4 --html sweep.html

    Each what-if takes a list (a,b,c) or a range (FROM:TO:COUNT, or FROM:TO:COUNT:log); `none` is
    the run without it. Selectors and other values with commas of their own are separated by |.
    """
    from replay import api
    from replay.cli.points import axes_of, points_of
    from replay.cli.what_ifs import require_use_of_base
    from whatif.many import Ranges

    if html is not None:
        require_place(html, traces)
    points = points_of(axes_of(typed(ctx)), most)
    require_use_of_base(typed(ctx), (point.scenario for point in points))
    ranges = None if range_ is RangeChoice.AUTO else Ranges(str(range_))
    with reading(strict=strict, no_cache=no_cache, cache_dir=cache_dir, window=window) as how:
        run = replayed(
            traces,
            points[0].scenario.base,
            ranks=ranks,
            steps=steps,
            unprofiled_step=unprofiled_step,
            how=how,
        )
        answer = api.sweep(
            run,
            points,
            ranges=ranges,
            progress=lambda share: how.progress(f"replaying {len(points):,} scenarios", share),
        )
    console.report_failed(run.reading.failed)
    if html is not None:
        _write_page(answer, html, title=f"What if: {', '.join(traces)}")
    form = SweepFormat.JSON if json else format_
    _show(answer, form)


def _show(answer: "SweepAnswer", form: SweepFormat) -> None:
    from replay.cli.rows import write_rows
    from replay.table import Table
    from whatif.report.answer import to_json
    from whatif.report.sweep import columns, rows
    from whatif.report.sweep_text import render_sweep

    if form is SweepFormat.JSON:
        console.show(to_json(answer).decode())
    elif form is SweepFormat.CSV:
        table = Table(names=columns(answer), rows=tuple(rows(answer)))
        console.show(write_rows(table, options.RowsFormat.CSV))
    else:
        console.show(render_sweep(answer, width=console.width()))


def _write_page(answer: "SweepAnswer", path: Path, *, title: str) -> None:
    from whatif.report.sweep_html import sweep_page

    write_whole(path, sweep_page(answer, title).encode())
    console.talk(f"written: {path}")
