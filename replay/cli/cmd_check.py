"""`replay check`: how far the replay of a run can be trusted, and why."""

from replay.cli import console, options
from replay.cli.parts import parse_step_time
from replay.cli.reading import part_of, reading


def check(
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
    """Tell what the trust in a replay rests on.

    The answer without a what-if, then files, clocks, edges, lags and the oddities of the data.

    \b
    replay check traces/
    replay check traces/ --ranks 0 --json
    """
    from replay.api import examine
    from whatif.report.answer import to_json
    from whatif.report.check import render_check
    from whatif.report.view import answer_of

    as_json = json or format_ is options.AnswerFormat.JSON
    part = part_of(ranks, steps)
    step_ns = parse_step_time(unprofiled_step)
    with reading(strict=strict, no_cache=no_cache, cache_dir=cache_dir, window=window) as how:
        findings = examine(
            traces,
            window=part,
            unprofiled_step_ns=step_ns,
            options=how,
        )
    console.report_failed(findings.reading.failed)
    if as_json:
        console.show(to_json(answer_of(findings)).decode())
    else:
        console.show(render_check(findings))
