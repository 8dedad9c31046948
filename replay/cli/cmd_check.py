"""`replay check`: how far the replay of a run can be trusted, and why."""

from replay.cli import console, options
from replay.cli.parts import parse_ranks, parse_steps


def check(
    traces: options.Traces,
    steps: options.Steps = None,
    ranks: options.Ranks = None,
    format_: options.AnswerForm = options.AnswerFormat.TABLE,
    json: options.Json = False,
    strict: options.Strict = False,
    no_cache: options.NoCache = False,
    cache_dir: options.CacheDir = None,
) -> None:
    """Tell what the trust in a replay rests on.

    The answer without a what-if, then files, clocks, edges, lags and the oddities of the data.
    """
    from ingest.pipeline import IngestOptions
    from replay.api import Window, examine
    from whatif.report.answer import to_json
    from whatif.report.check import render_check
    from whatif.report.view import answer_of

    as_json = json or format_ is options.AnswerFormat.JSON
    window = Window(ranks=parse_ranks(ranks), steps=parse_steps(steps))
    with console.progress() as progress:
        reading = IngestOptions(
            cache=not no_cache, cache_dir=cache_dir, strict=strict, progress=progress
        )
        findings = examine(traces, window=window, options=reading, with_levers=not as_json)
    console.report_failed(findings.reading.failed)
    if as_json:
        console.show(to_json(answer_of(findings)).decode())
    else:
        console.show(render_check(findings))
