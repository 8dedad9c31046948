"""`replay levers`: what every lever of a run would give."""

import typer

from replay.cli import console, options
from replay.cli.reading import reading, replayed
from replay.cli.stack import typed


def levers(
    ctx: typer.Context,
    traces: options.Traces,
    steps: options.Steps = None,
    ranks: options.Ranks = None,
    unprofiled_step: options.UnprofiledStep = None,
    format_: options.AnswerForm = options.AnswerFormat.TABLE,
    json: options.Json = False,
    strict: options.Strict = False,
    no_cache: options.NoCache = False,
    cache_dir: options.CacheDir = None,
    window: options.Window = None,
) -> None:
    """Rank what would save most.

    Each kind of work is made 10 % faster, twice as fast, and without limit.

    \b
    replay levers traces/                      of the run as it was
    replay levers traces/ --network-scale 2    of the run after a what-if
    """
    from replay import api
    from replay.cli.what_ifs import scenario_in
    from whatif.report.answer import to_json
    from whatif.report.levers import render_levers

    asked = scenario_in(typed(ctx))
    with reading(strict=strict, no_cache=no_cache, cache_dir=cache_dir, window=window) as how:
        run = replayed(
            traces,
            asked.base,
            ranks=ranks,
            steps=steps,
            unprofiled_step=unprofiled_step,
            how=how,
        )
        answer = api.levers(run, asked)
    console.report_failed(run.reading.failed)
    if json or format_ is options.AnswerFormat.JSON:
        console.show(to_json(answer).decode())
    else:
        console.show(render_levers(answer, width=console.width()))
