"""How a command reads traces: the options that all of them share."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.errors import UsageError
from replay.cli import console
from replay.cli.parts import parse_ranks, parse_step_time, parse_steps

if TYPE_CHECKING:
    from ingest.pipeline import IngestOptions
    from replay.api import Replayed
    from whatif.recorded import Recorded


def reading_options(  # noqa: PLR0913  (one per option)
    *,
    window: int | None,
    progress: Callable[[str, float], None],
    strict: bool = False,
    no_cache: bool = False,
    cache_dir: Path | None = None,
    output: Path | None = None,
    redact: bool = False,
) -> "IngestOptions":
    """How a command reads traces.

    Raises:
        UsageError: a store without private words, and no place for it.
    """
    from ingest.pipeline import IngestOptions

    if redact and output is None:
        raise UsageError("--redact makes a store to give away", hint="say where: -o run.duckdb")
    return IngestOptions(
        cache=not no_cache,
        cache_dir=cache_dir,
        strict=strict,
        window=window,
        redact=redact,
        output=output,
        progress=progress,
        announce=console.talk,
    )


def replayed(  # noqa: PLR0913  (one per option)
    traces: list[str],
    recorded: "Recorded",
    *,
    ranks: str | None,
    steps: str | None,
    unprofiled_step: str | None,
    strict: bool,
    no_cache: bool,
    cache_dir: Path | None,
    window: int | None,
    progress: Callable[[str, float], None],
) -> "Replayed":
    """The run of the traces, replayed as it was.

    Raises:
        UsageError: a part of the run or a time that is written otherwise.
        TraceError: nothing can be read.
    """
    from replay import api

    part = api.Window(ranks=parse_ranks(ranks), steps=parse_steps(steps))
    return api.replay_run(
        traces,
        recorded=recorded,
        window=part,
        unprofiled_step_ns=parse_step_time(unprofiled_step),
        options=reading_options(
            strict=strict,
            no_cache=no_cache,
            cache_dir=cache_dir,
            window=window,
            progress=progress,
        ),
    )
