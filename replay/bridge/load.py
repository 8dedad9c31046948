"""A run -> HTA's `Trace`, as if its parser had read the files."""

import json
import re
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from hta.common.trace import Trace, transform_correlation_to_index
from hta.common.trace_symbol_table import TraceSymbolTable
from numpy.typing import NDArray

from ingest.errors import UsageError
from ingest.pipeline import Run
from replay.bridge.columns import FileRows, file_rows, specs_of
from replay.bridge.raw import raw_trace
from replay.bridge.times import FileClock

_FILES = """
    SELECT trace_id, rank, base_time_ns, ts_origin_ns, clock_offset_ns, device_clock_offset_ns,
        path, metadata
    FROM trace ORDER BY rank
"""
_STEP = re.compile(r"ProfilerStep\s*#\s*(\d+)")


def load(run: Run, *, include_last_profiler_step: bool, round_like_hta: bool) -> Any:  # noqa: ANN401  (hta has no types)
    """All ranks, aligned and filtered by HTA's own methods.

    Raises:
        UsageError: no row of the run is one that HTA looks at.
    """
    trace = Trace(trace_files={}, trace_dir="")
    files: dict[int, FileClock] = {}
    for *described, path, metadata in run.store.rows(_FILES):
        clock = FileClock.of_row(tuple(described))
        specs = specs_of(run.store, clock.trace_id, trace.parser_config)
        rows = file_rows(run.store, clock, specs, round_like_hta=round_like_hta)
        if not len(rows.frame):
            continue
        files[clock.rank] = clock
        trace.trace_files[clock.rank] = path
        trace.meta_data[clock.rank] = json.loads(metadata)
        trace.traces[clock.rank] = _linked(rows, trace.symbol_table, round_like_hta=round_like_hta)
    if not files:
        raise UsageError("no rank has an event that HTA analyses")
    trace.align_and_filter_trace(include_last_profiler_step)
    for rank, frame in trace.traces.items():
        trace.traces[rank] = frame.set_axis(frame["index"].to_numpy(), axis=0)
        if not round_like_hta:
            trace.traces[rank]["end"] = trace.traces[rank]["ts"] + trace.traces[rank]["dur"]
    if not round_like_hta:
        first = files[min(files)]
        trace.min_ts += (first.origin_ns - first.base_ns) / 1000
    trace.is_parsed = True
    trace.get_raw_trace_for_one_rank = _RawTraces(run, files, round_like_hta)
    return trace


@dataclass(frozen=True, slots=True)
class _RawTraces:
    """In place of the method that reads a file again."""

    run: Run
    files: dict[int, FileClock]
    recorded_clock: bool

    def __call__(self, rank: int = 0) -> dict[str, Any]:
        if rank not in self.files:
            raise ValueError(f"no trace of rank {rank}")  # as HTA's method does
        return raw_trace(self.run.store, self.files[rank], recorded_clock=self.recorded_clock)

    def __deepcopy__(self, _: object) -> Self:
        """HTA copies its trace for the critical path; an open store has no copies."""
        return self


def _linked(rows: FileRows, symbols: TraceSymbolTable, *, round_like_hta: bool) -> pd.DataFrame:
    """Symbols as numbers, calls and kernels linked, iterations told."""
    frame = rows.frame
    for column in ("cat", "name"):
        codes, unique = pd.factorize(frame[column])
        symbols.add_symbols(unique)
        number = symbols.get_sym_id_map()
        frame[column] = np.array([number[word] for word in unique], np.int64)[codes]
    frame = transform_correlation_to_index(frame, symbols)
    iterations = _iterations(frame, rows.on_host, symbols, round_like_hta=round_like_hta)
    frame["iteration"] = pd.to_numeric(iterations, downcast="integer")
    return frame


def _iterations(
    frame: pd.DataFrame,
    on_host: NDArray[np.bool_],
    symbols: TraceSymbolTable,
    *,
    round_like_hta: bool,
) -> NDArray[np.float64]:
    """Step of each row: on the host by time, on streams that of the launching call.

    As HTA has it, a step's copy on the device counts as a step for the host, and rows of stream 0
    have none; both are mended unless its results are wanted to the letter.
    """
    number_of = {
        symbol: int(told[1])
        for symbol, word in enumerate(symbols.get_sym_table())
        if (told := _STEP.match(word))
    }
    names, ts, dur = (frame[column].to_numpy() for column in ("name", "ts", "dur"))
    stream = frame["stream"].to_numpy()
    steps = np.flatnonzero(np.isin(names, list(number_of)) & (on_host | round_like_hta))
    steps = steps[np.argsort(~on_host[steps], kind="stable")]
    order = np.argsort(ts, kind="stable")
    in_order = ts[order]
    found = np.full(len(frame), -1.0)
    for row in steps.tolist():
        first, last = np.searchsorted(in_order, [ts[row], ts[row] + dur[row]])
        found[order[first:last]] = number_of[names[row]]
    index, launched = frame["index"].to_numpy(), frame["index_correlation"].to_numpy()
    place = np.zeros(int(index.max()) + 1, np.int64)
    place[index] = np.arange(len(frame))
    of_launch = np.where(launched > 0, found[place[np.maximum(launched, 0)]], -1.0)
    on_stream = stream > 0 if round_like_hta else stream >= 0
    unknown = np.nan if round_like_hta else -1.0
    return np.where(stream < 0, found, np.where(on_stream, of_launch, unknown))
