"""HolisticTraceAnalysis on the store: notebooks keep their calls, its parser is not needed."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ingest.errors import UsageError
from ingest.pipeline import IngestOptions, Run, open_run

DEFAULTS = IngestOptions()


def trace_analysis(
    paths: Path | str | Sequence[Path | str],
    *,
    options: IngestOptions = DEFAULTS,
    include_last_profiler_step: bool = False,
    round_like_hta: bool = False,
) -> Any:  # noqa: ANN401  (hta has no types, and may be absent)
    """An `hta.trace_analysis.TraceAnalysis` of these traces (or of a store).

    Args:
        paths: files, directories, globs, or one `.duckdb` store.
        options: how to read and where to keep the store.
        include_last_profiler_step: as in HTA, which leaves the last step out by default.
        round_like_hta: times as HTA's parser makes them: whole microseconds on the clocks of the
            files. Without it they keep their nanoseconds, on the common clock of the run.

    Raises:
        UsageError: HolisticTraceAnalysis is not installed.
        TraceError: nothing to read.
    """
    _require_hta()
    given = [paths] if isinstance(paths, Path | str) else paths
    run = open_run(given, options=options)
    for failure in run.failed:
        warnings.warn(f"left out: {failure.path}: {failure.reason}", stacklevel=2)
    return analysis_of(
        run,
        include_last_profiler_step=include_last_profiler_step,
        round_like_hta=round_like_hta,
    )


def analysis_of(
    run: Run, *, include_last_profiler_step: bool = False, round_like_hta: bool = False
) -> Any:  # noqa: ANN401  (the same)
    """The same of an open run, which has to stay open for methods that write a trace file.

    Raises:
        UsageError: HolisticTraceAnalysis is not installed, or the run holds no events for it.
    """
    _require_hta()
    from hta.trace_analysis import TraceAnalysis

    from replay.bridge.load import load

    analysis = TraceAnalysis.__new__(TraceAnalysis)  # its constructor would parse files
    analysis.t = load(
        run,
        include_last_profiler_step=include_last_profiler_step,
        round_like_hta=round_like_hta,
    )
    return analysis


def _require_hta() -> None:
    try:
        import hta.trace_analysis  # noqa: F401  (only whether it is there)
    except ImportError as error:
        raise UsageError(
            f"HolisticTraceAnalysis cannot be imported: {error}",
            hint="pip install 'trace-replay[hta]'",
        ) from error
