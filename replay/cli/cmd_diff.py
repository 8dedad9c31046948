"""`replay diff`: what accounts for the difference of two runs, and a gate for CI."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ingest.errors import GateError, UsageError
from replay.cli import console, options
from replay.cli.parts import parse_steps
from replay.cli.reading import part_of, reading
from replay.cli.writing import refuse_other_json, require_place, write_whole

if TYPE_CHECKING:
    from whatif.compare.contract import Diff


class DiffFormat(StrEnum):
    """Forms of a comparison."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


BY_SUFFIX = {
    ".html": DiffFormat.HTML,
    ".json": DiffFormat.JSON,
    ".md": DiffFormat.MARKDOWN,
    ".txt": DiffFormat.TABLE,
}


def diff(
    a: Annotated[
        str, typer.Argument(metavar="A", help="The baseline: trace file, folder, glob or store.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The run that is judged, likewise.")],
    max_regression: Annotated[
        str | None,
        typer.Option(
            metavar="LIMIT",
            help="How much slower B may be, 5% or 12ms: exit 5 when its mean step is slower by "
            "more, and by more than steps vary by chance.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write to .html, .md, .json or .txt."),
    ] = None,
    steps: options.Steps = None,
    steps_b: Annotated[
        str | None,
        typer.Option(metavar="A:B", help="Those of B, where its numbers are others."),
    ] = None,
    ranks: options.Ranks = None,
    format_: Annotated[
        DiffFormat, typer.Option("--format", help="How to print the comparison.")
    ] = DiffFormat.TABLE,
    json: options.Json = False,
    strict: options.Strict = False,
    no_cache: options.NoCache = False,
    cache_dir: options.CacheDir = None,
    window: options.Window = None,
) -> None:
    """Tell why the steps of one run are slower than another's.

    \b
    replay diff before/ after/                             one screen, the verdict first
    replay diff before/ after/ --max-regression 5%         exit 5 when it is too slow
    replay diff before/ after/ -o diff.md                  for a pull request
    replay diff before/ after/ -o diff.html                a page with the waterfall

    Kernels, collectives, copies, idle time by cause and host work, in exposed time: the rows add
    up to the difference of the mean steps. --steps and --ranks are of both runs.
    """
    from replay import api
    from whatif.compare.gate import parse_limit

    form = _form(output, DiffFormat.JSON if json else format_, [a, b])
    limit = None if max_regression is None else parse_limit(max_regression, "--max-regression")
    part = part_of(ranks, steps)
    part_b = part if steps_b is None else replace(part, steps=parse_steps(steps_b))
    with reading(strict=strict, no_cache=no_cache, cache_dir=cache_dir, window=window) as how:
        baseline = api.side([a], window=part, options=how)
        run = api.side([b], window=part_b, options=how)
        found = api.diff(baseline, run, limit)
    console.report_failed((*baseline.failed, *run.failed))
    text = _text(found, form)
    if output is None:
        console.show(text)
    else:
        write_whole(output, text.encode())
        console.show(f"{found.sentence}\n")
        console.talk(f"written: {output}")
    if found.gate is not None and not found.gate.is_passed:
        raise GateError(f"too slow: {found.gate.reason}", hint=found.sentence)


def _form(output: Path | None, asked: DiffFormat, traces: list[str]) -> DiffFormat:
    """By the name of the file, where there is one, which must not be one of the traces."""
    if output is None:
        return asked
    if output.suffix.lower() not in BY_SUFFIX:
        raise UsageError(
            f"`{output}`: a comparison is written as {', '.join(BY_SUFFIX)}",
            hint="give -o another name",
        )
    require_place(output, traces)
    refuse_other_json(output)
    return BY_SUFFIX[output.suffix.lower()]


def _text(found: "Diff", form: DiffFormat) -> str:
    from whatif.compare.markdown import render_markdown
    from whatif.compare.page import render_page
    from whatif.compare.text import render
    from whatif.report.answer import to_json

    if form is DiffFormat.JSON:
        return to_json(found).decode()
    if form is DiffFormat.MARKDOWN:
        return render_markdown(found)
    if form is DiffFormat.HTML:
        return render_page(found)
    return render(found, width=console.width())
