"""`replay report`: the post-mortem of a run as one HTML page, Markdown or JSON."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from replay.cli import console, options
from replay.cli.parts import parse_ranks, parse_step_time, parse_steps
from replay.cli.reading import reading_options
from replay.cli.stack import typed


def report(
    ctx: typer.Context,
    traces: options.Traces,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write to .html, .md or .json; else to stdout."
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
    """
    from replay import api
    from replay.cli.what_ifs import scenario_in
    from whatif.report.answer import to_json

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
            command=shlex.join(["replay", *sys.argv[1:]]),
            window=api.Window(ranks=parse_ranks(ranks), steps=parse_steps(steps)),
            unprofiled_step_ns=parse_step_time(unprofiled_step),
            options=reading,
        )
    text = to_json(made)
    if output is None:
        console.show(text.decode())
    else:
        output.write_bytes(text)
