"""How a command reads traces: the options that all of them share."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.errors import UsageError
from replay.cli import console

if TYPE_CHECKING:
    from ingest.pipeline import IngestOptions


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
