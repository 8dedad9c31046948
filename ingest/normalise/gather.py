"""Files -> one set of columns: ids, threads, nesting; times still those of each file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ingest.normalise.nesting import nest
from ingest.parsed import Parsed
from ingest.vocab import DEVICE_CATEGORIES

Int64 = NDArray[np.int64]
_LATEST_NS = 1 << 61


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFile:
    """One file that was read, with the rank it stands for."""

    path: Path
    digest: str
    parsed: Parsed
    rank: int
    rank_source: str
    """distributedInfo | file name | order."""
    world_size: int | None

    @property
    def base_ns(self) -> int:
        """`baseTimeNanoseconds`; 0 when not recorded."""
        base = self.parsed.header.get("baseTimeNanoseconds")
        return base if isinstance(base, int) and abs(base) < _LATEST_NS else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """All rows of a run by (file, start, longest first); the row number is the slice id."""

    files: tuple[TraceFile, ...]
    slices: pl.DataFrame
    """trace_id, row, cat, name, pid, tid, correlation, external_id, args, repair, utid."""
    trace: Int64
    ts: Int64
    dur: Int64
    on_device: NDArray[np.bool_]
    origin_ns: int
    threads: pl.DataFrame
    """utid, upid, trace_id, pid, tid."""
    parent: Int64
    depth: Int64
    self_dur: Int64
    crossing: Int64
    """Per file."""

    def ids(self, side: str) -> pl.DataFrame:
        """Rows of a side table of all files, with `id` and `trace_id` in place of `row`."""
        frames = [
            getattr(file.parsed, side).with_columns(
                pl.lit(trace_id, dtype=pl.Int32).alias("trace_id")
            )
            for trace_id, file in enumerate(self.files)
        ]
        keys = self.slices.select("trace_id", "row", pl.int_range(pl.len()).alias("id"))
        joined: pl.DataFrame = pl.concat(frames).join(keys, on=["trace_id", "row"], how="inner")
        return joined.drop("row").sort("id")


def gather(files: Sequence[TraceFile]) -> Gathered:
    """Number the rows and threads of all files and nest the host rows."""
    frames = [
        file.parsed.slices.with_columns(
            pl.int_range(pl.len()).alias("row"),
            pl.lit(trace_id, dtype=pl.Int32).alias("trace_id"),
            pl.col("ts") + file.base_ns,
        )
        for trace_id, file in enumerate(files)
    ]
    slices = pl.concat(frames).sort(
        ["trace_id", "ts", "dur", "row"], descending=[False, False, True, False]
    )
    slices = slices.with_columns(pl.col("pid").fill_null(""), pl.col("tid").fill_null(""))
    threads = _threads(slices)
    slices = slices.join(
        threads.select("trace_id", "pid", "tid", "utid"),
        on=["trace_id", "pid", "tid"],
        how="left",
        maintain_order="left",
    )
    ts = slices["ts"].to_numpy()
    dur = slices["dur"].to_numpy()
    on_device = slices["cat"].is_in([*DEVICE_CATEGORIES, "cuda_sync", "gpu_user_annotation"])
    utid = slices["utid"].to_numpy().astype(np.int64)
    trace = slices["trace_id"].to_numpy().astype(np.int64)
    host = np.flatnonzero(~on_device.to_numpy())
    order = host[np.argsort(utid[host], kind="stable")]
    nested = nest(utid[order], ts[order], dur[order])
    n = len(slices)
    parent, depth, self_dur = np.full(n, -1, np.int64), np.zeros(n, np.int64), dur.copy()
    parent[order] = np.where(nested.parent >= 0, order[nested.parent], -1)
    depth[order], self_dur[order] = nested.depth, nested.self_dur
    origin_ns = int(ts.min()) if n else 0
    return Gathered(
        files=tuple(files),
        slices=slices.drop("ts", "dur"),
        trace=trace,
        ts=ts - origin_ns,
        dur=dur.copy(),
        on_device=slices["cat"].is_in(list(DEVICE_CATEGORIES)).to_numpy(),
        origin_ns=origin_ns,
        threads=threads,
        parent=parent,
        depth=depth,
        self_dur=self_dur,
        crossing=np.bincount(trace[order[nested.crosses]], minlength=len(files)),
    )


def _threads(slices: pl.DataFrame) -> pl.DataFrame:
    threads = slices.select("trace_id", "pid", "tid").unique(maintain_order=True)
    threads = threads.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).alias("utid"))
    processes = threads.select("trace_id", "pid").unique(maintain_order=True)
    processes = processes.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).alias("upid"))
    return threads.join(processes, on=["trace_id", "pid"], how="left", maintain_order="left")
