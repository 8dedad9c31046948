"""`replay report`: the post-mortem of a run as one HTML page, Markdown or JSON."""

from pathlib import Path
from typing import Annotated

import typer

from ingest.errors import UsageError
from replay.cli import console, options
from replay.cli.parts import parse_ranks, parse_step_time, parse_steps
from replay.cli.reading import reading_options
from replay.cli.stack import command_line, typed
from replay.cli.writing import refuse_traces, require_folder, write_whole

HTML, MARKDOWN, JSON = ".html", ".md", ".json"
OWN_HEAD = b'"schema_version"'
"""Stands near the start of JSON that this program wrote."""
HEAD_BYTES = 64


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
    """
    form = _form(output, traces)
    if open_ and form != HTML:
        raise UsageError("--open shows a page", hint="write one: -o report.html")
    from replay import api
    from replay.cli.what_ifs import scenario_in
    from whatif.postmortem.render.forms import FORMS

    with console.progress() as progress:
        reading = reading_options(
            strict=strict,
            no_cache=no_cache,
            cache_dir=cache_dir,
            window=window,
            progress=progress,
        )
        made = api.report(
            traces,
            scenario_in(typed(ctx)),
            command=command_line(ctx),
            window=api.Window(ranks=parse_ranks(ranks), steps=parse_steps(steps)),
            unprofiled_step_ns=parse_step_time(unprofiled_step),
            options=reading,
        )
    console.report_failed(made.failed)
    content = FORMS[form](made)
    if output is None:
        console.show(content.decode())
        return
    write_whole(output, content)
    console.talk(f"written: {output}, {len(content) / 1e3:,.0f} kB")
    if open_:
        _open(output)


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
    require_folder(output)
    refuse_traces(output, traces)
    if form == JSON and output.exists() and not _is_own(output):
        raise UsageError(
            f"`{output}` is there already and is no report: not overwritten",
            hint="give -o another name, or delete that file first",
        )
    return form


def _is_own(path: Path) -> bool:
    with path.open("rb") as file:
        return OWN_HEAD in file.read(HEAD_BYTES)


def _open(page: Path) -> None:
    import webbrowser

    if not webbrowser.open(page.resolve().as_uri()):
        console.talk("no browser was found here")
