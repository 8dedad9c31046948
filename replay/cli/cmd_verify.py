"""`replay verify`: a prediction made earlier against the run made since."""

from pathlib import Path
from typing import Annotated

import typer

from ingest.errors import GateError
from replay.cli import console, options
from replay.cli.reading import part_of, reading


def verify(
    prediction: Annotated[
        Path,
        typer.Argument(
            metavar="PREDICTION", help="Answer of a what-if, saved with --json.", show_default=False
        ),
    ],
    traces: options.Traces,
    max_error: Annotated[
        str | None,
        typer.Option(
            metavar="LIMIT",
            help="How far off the prediction may be, 10% of the measured step or 12ms: exit 5 "
            "when it is off by more, and by more than steps vary by chance.",
        ),
    ] = None,
    steps: options.Steps = None,
    ranks: options.Ranks = None,
    format_: options.AnswerForm = options.AnswerFormat.TABLE,
    json: options.Json = False,
    strict: options.Strict = False,
    no_cache: options.NoCache = False,
    cache_dir: options.CacheDir = None,
    window: options.Window = None,
) -> None:
    """Tell how good a prediction was, part by part of the step.

    \b
    replay before/ --nvlink 900GBps --json > prediction.json
    replay verify prediction.json after/
    replay verify prediction.json after/ --max-error 10%       exit 5 when it is off by more

    PREDICTION is the answer of a what-if alone: points of `sweep` and `solve` hold no breakdown.
    """
    from replay import api
    from whatif.compare.gate import parse_limit
    from whatif.compare.verify_text import render_verification
    from whatif.report.answer import to_json

    limit = None if max_error is None else parse_limit(max_error, "--max-error")
    answer = api.read_prediction(prediction.read_bytes(), str(prediction))
    part = part_of(ranks, steps)
    with reading(strict=strict, no_cache=no_cache, cache_dir=cache_dir, window=window) as how:
        run = api.side(traces, window=part, options=how)
        found = api.verify(answer, run, name=str(prediction), limit=limit)
    console.report_failed(run.failed)
    if json or format_ is options.AnswerFormat.JSON:
        console.show(to_json(found).decode())
    else:
        console.show(render_verification(found, width=console.width()))
    if found.gate is not None and not found.gate.is_passed:
        raise GateError(f"the prediction is off: {found.gate.reason}", hint=found.sentence)
