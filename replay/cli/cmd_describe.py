"""`replay describe`: what a run is, and how that is known."""

from pathlib import Path
from typing import Annotated

import typer

from replay.cli import console, options
from replay.cli.reading import part_of, reading


def describe(
    traces: options.Traces,
    said: Annotated[
        Path | None,
        typer.Option(
            "--describe", metavar="FILE", help="What overrules the findings, from a YAML file."
        ),
    ] = None,
    yaml: Annotated[
        bool, typer.Option("--yaml", help="Print a description to edit and to give back.")
    ] = False,
    steps: options.Steps = None,
    ranks: options.Ranks = None,
    format_: options.AnswerForm = options.AnswerFormat.TABLE,
    json: options.Json = False,
    strict: options.Strict = False,
    no_cache: options.NoCache = False,
    cache_dir: options.CacheDir = None,
    window: options.Window = None,
) -> None:
    """Tell how a run is made parallel, and its model.

    Degrees of each axis, pipeline stages and schedule, micro-batches, layers and element types,
    each with what it rests on. A description overrules what is misread, here and for what-ifs.

    \b
    replay describe traces/
    replay describe traces/ --yaml > run.yaml
    replay describe traces/ --describe run.yaml
    """
    from ingest.errors import UsageError
    from replay.api import describe as understood
    from whatif.report.answer import to_json
    from whatif.report.description import render_description

    as_json = json or format_ is options.AnswerFormat.JSON
    if yaml and as_json:
        raise UsageError("--yaml and --json both say how to print", hint="give one of them")
    part = part_of(ranks, steps)
    with reading(strict=strict, no_cache=no_cache, cache_dir=cache_dir, window=window) as how:
        found = understood(traces, said=said, window=part, options=how)
    console.report_failed(found.failed)
    if yaml:
        console.show(found.yaml)
    elif as_json:
        console.show(to_json(found.answer).decode())
    else:
        console.show(render_description(found.answer, width=console.width()))
