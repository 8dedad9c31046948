"""`replay solve`: what a goal needs."""

from typing import Annotated

import typer

from replay.cli import console, options
from replay.cli.parts import parse_step_time
from replay.cli.reading import reading, replayed
from replay.cli.stack import typed


def solve(
    ctx: typer.Context,
    traces: options.Traces,
    vary: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What-if to be found: nvlink, network-scale, scale:class:gemm. Those with a "
            "number can be varied.",
        ),
    ],
    speedup: Annotated[
        float | None,
        typer.Option(metavar="X", help="Goal: so many times as fast as the run was replayed."),
    ] = None,
    step: Annotated[
        str | None, typer.Option(metavar="TIME", help="Goal: a mean step of 30ms or less.")
    ] = None,
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
    """Find how much of one what-if a goal needs.

    Or tell that it cannot be reached. Other what-ifs on the line are made before.

    \b
    replay solve traces/ --speedup 1.3 --vary nvlink
    replay solve traces/ --speedup 0.95 --vary network-scale     how slow may it be
    replay solve traces/ --step 30ms --vary scale:class:host --nvlink 1800GBps
    """
    from replay import api
    from replay.cli.knobs import dial_of
    from replay.cli.what_ifs import require_use_of_base
    from whatif.report.answer import to_json
    from whatif.report.solve import render_solve

    goal = api.Goal(speedup=speedup, step_ns=parse_step_time(step))
    dial = dial_of(vary, typed(ctx))
    require_use_of_base(typed(ctx), [dial.knob.scenario(1)])
    with reading(strict=strict, no_cache=no_cache, cache_dir=cache_dir, window=window) as how:
        run = replayed(
            traces,
            dial.knob.scenario(1).base,
            ranks=ranks,
            steps=steps,
            unprofiled_step=unprofiled_step,
            how=how,
        )
        answer = api.solve(run, dial.knob, goal, flag=dial.flag)
    console.report_failed(run.reading.failed)
    if json or format_ is options.AnswerFormat.JSON:
        console.show(to_json(answer).decode())
    else:
        console.show(render_solve(answer, width=console.width()))
