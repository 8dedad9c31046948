"""`replay report`: the post-mortem of a run as one HTML page, Markdown or JSON."""

from pathlib import Path
from typing import Annotated

import typer

from ingest.errors import UsageError
from replay.cli import console, options
from replay.cli.browser import open_page
from replay.cli.parts import parse_step_time
from replay.cli.reading import part_of, reading
from replay.cli.stack import command_line, typed
from replay.cli.writing import refuse_other_json, require_place, write_whole

HTML, MARKDOWN, JSON = ".html", ".md", ".json"


def report(
    ctx: typer.Context,
    traces: options.Traces,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write to .html, .md or .json; else Markdown."
        ),
    ] = None,
    open_: Annotated[
        bool, typer.Option("--open", help="Show the page in the browser (with -o FILE.html).")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="BASELINE",
            help="An earlier run to compare this one with: all of its steps and ranks.",
        ),
    ] = None,
    max_regression: Annotated[
        str | None,
        typer.Option(
            metavar="LIMIT",
            help="How much slower than --against it may be, 5% or 12ms: the report says so. "
            "(`replay diff` has the exit code.)",
        ),
    ] = None,
    steps: options.Steps = None,
    ranks: options.Ranks = None,
    unprofiled_step: options.UnprofiledStep = None,
    strict: options.Strict = False,
    no_cache: options.NoCache = False,
    cache_dir: options.CacheDir = None,
    window: options.Window = None,
) -> None:
    """Write the post-mortem of a run.

    What costs time, how it is known, what would help.

    \b
    replay report traces/ -o report.html                   one page to look at and to mail
    replay report traces/ -o report.md                     the same for a pull request
    replay report traces/ --nvlink 1800GBps -o report.json with a what-if, for programs
    replay report after/ --against before/ -o report.html  with what changed since
    """
    form = _form(output, traces)
    if open_ and form != HTML:
        raise UsageError("--open shows a page", hint="write one: -o report.html")
    from replay import api
    from replay.cli.what_ifs import scenario_in
    from whatif.compare.gate import parse_limit
    from whatif.postmortem.render.forms import FORMS

    if max_regression is not None and against is None:
        raise UsageError("--max-regression needs a baseline", hint="--against BASELINE")
    limit = None if max_regression is None else parse_limit(max_regression, "--max-regression")
    with reading(strict=strict, no_cache=no_cache, cache_dir=cache_dir, window=window) as how:
        made = api.report(
            traces,
            scenario_in(typed(ctx)),
            command=command_line(ctx),
            window=part_of(ranks, steps),
            unprofiled_step_ns=parse_step_time(unprofiled_step),
            options=how,
            against=None if against is None else [against],
            limit=limit,
        )
    console.report_failed(made.failed)
    content = FORMS[form](made)
    if output is None:
        console.show(content.decode())
        return
    write_whole(output, content)
    console.talk(f"written: {output}, {len(content) / 1e3:,.0f} kB")
    if open_ and not open_page(output.resolve().as_uri()):
        console.talk("no browser was found here")


def _form(output: Path | None, traces: list[str]) -> str:
    """The suffix that says what is written; all that can be refused is refused before reading.

    Raises:
        UsageError: another suffix, no folder, or what lies there is not ours to overwrite.
    """
    if output is None:
        return MARKDOWN
    form = output.suffix.lower()
    if form not in {HTML, MARKDOWN, JSON}:
        raise UsageError(f"`{output}`: which form?", hint=f"end it in {HTML}, {MARKDOWN} or {JSON}")
    require_place(output, traces)
    refuse_other_json(output)
    return form
