"""How a command reads traces: the options that all of them share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.errors import UsageError
from replay.cli import console
from replay.cli.parts import parse_ranks, parse_step_time, parse_steps

if TYPE_CHECKING:
    from ingest.pipeline import IngestOptions
    from replay.api import Replayed, Window
    from whatif.recorded import Recorded


@contextmanager
def reading(
    *,
    window: int | None,
    strict: bool = False,
    no_cache: bool = False,
    cache_dir: Path | None = None,
    output: Path | None = None,
    redact: bool = False,
) -> Iterator["IngestOptions"]:
    """How traces are read; while it is open, a bar shows how far that is.

    Raises:
        UsageError: a store without private words, and no place for it.
    """
    from ingest.pipeline import IngestOptions

    if redact and output is None:
        raise UsageError("--redact makes a store to give away", hint="say where: -o run.duckdb")
    with console.progress() as progress:
        yield IngestOptions(
            cache=not no_cache,
            cache_dir=cache_dir,
            strict=strict,
            window=window,
            redact=redact,
            output=output,
            progress=progress,
            announce=console.talk,
        )


def part_of(ranks: str | None, steps: str | None) -> "Window":
    """The part of a run that counts, as typed.

    Raises:
        UsageError: not of that form.
    """
    from replay.api import Window

    return Window(ranks=parse_ranks(ranks), steps=parse_steps(steps))


def replayed(
    traces: list[str],
    recorded: "Recorded",
    *,
    ranks: str | None,
    steps: str | None,
    unprofiled_step: str | None,
    how: "IngestOptions",
) -> "Replayed":
    """The run of the traces, replayed as it was.

    Raises:
        UsageError: a part of the run or a time that is written otherwise.
        TraceError: nothing can be read.
    """
    from replay.api import replay_run

    return replay_run(
        traces,
        recorded=recorded,
        window=part_of(ranks, steps),
        unprofiled_step_ns=parse_step_time(unprofiled_step),
        options=how,
    )
