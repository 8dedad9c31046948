"""Files -> one set of columns: ids, threads, nesting; times still those of each file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ingest.lexicon.words import Words
from ingest.normalise.nesting import Nesting, nest
from ingest.parsed import Parsed
from ingest.vocab import DEVICE_CATEGORIES, FIRMWARE_COPY

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Bool = NDArray[np.bool_]

_EVIDENCE = ("cuda_sync", "gpu_user_annotation")
"""Categories of device lanes that are no work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFile:
    """One file that was read, with the rank it stands for."""

    path: Path
    parsed: Parsed
    rank: int
    rank_source: str
    """distributedInfo | file name | order."""
    world_size: int | None

    @property
    def base_ns(self) -> int:
        """What the times of the file are relative to; 0 when not recorded."""
        return self.parsed.base_ns


class OfRows(NamedTuple):
    """A column that few slices have."""

    ids: Int64
    """The slices, in order."""
    values: NDArray[np.integer]

    def of(self, rows: NDArray[np.integer]) -> NDArray[np.integer]:
        """Values of some of these slices."""
        found: NDArray[np.integer] = self.values[np.searchsorted(self.ids, rows)]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """All rows of a run by (file, start, longest first); the row number is the slice id."""

    files: tuple[TraceFile, ...]
    words: Words
    trace: Int32
    category: NDArray[np.int16]
    """Number of a category of the words."""
    name: Int32
    """Number of a name of the words."""
    utid: Int32
    ts: Int64
    dur: Int64
    args_id: Int32
    repair: NDArray[np.int8]
    on_device: Bool
    correlation: tuple[Int32, NDArray[np.uint64]]
    """Slices that have one, in order, and what it is."""
    external_id: tuple[Int32, NDArray[np.uint64]]
    id_of: tuple[Int32, ...]
    """Per file: slice of each of its rows."""
    origin_ns: int
    threads: pl.DataFrame
    """utid, upid, trace_id, pid, tid."""
    utid_of: tuple[Int32, ...]
    """Per file: thread of each thread number of the words; -1 where the file has none."""
    parent: Int32
    depth: NDArray[np.int16]
    self_dur: Int64
    crossing: Int64
    """Per file."""

    def __len__(self) -> int:
        return len(self.ts)

    def ids(self, side: str) -> pl.DataFrame:
        """Rows of a side table of all files, with `id` and `trace_id` in place of `row`."""
        frames = []
        for trace_id, file in enumerate(self.files):
            frame: pl.DataFrame = getattr(file.parsed, side)
            ids = self.id_of[trace_id][frame["row"].to_numpy()]
            frames.append(
                frame.drop("row").with_columns(
                    id=pl.Series(ids, dtype=pl.Int64),
                    trace_id=pl.lit(trace_id, dtype=pl.Int32),
                )
            )
        return pl.concat(frames).sort("id")

    def is_category(self, *wanted: str) -> Bool:
        """Rows of some categories."""
        texts = self.words.categories.texts
        table = np.fromiter((text in wanted for text in texts), np.bool_, len(texts))
        found: Bool = table[self.category]
        return found

    def category_matches(self, pattern: str) -> Bool:
        """Rows whose category a regular expression finds something in."""
        found: Bool = self.words.categories.matching(pattern)[self.category]
        return found

    def name_matches(self, pattern: str) -> Bool:
        """Rows whose name a regular expression finds something in."""
        found: Bool = self.words.names.matching(pattern)[self.name]
        return found

    def name_text(self, row: int) -> str:
        """Name of one row."""
        return self.words.names.texts[int(self.name[row])]


def gather(files: Sequence[TraceFile], words: Words) -> Gathered:
    """Number the rows and threads of all files and nest the host rows."""
    threads, utid_of = _threads(files, words)
    sizes = [len(file.parsed.slices) for file in files]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    n = int(starts[-1])
    trace = np.repeat(np.arange(len(files), dtype=np.int32), sizes)
    orders = [_order(file.parsed.slices.ts, file.parsed.slices.dur) for file in files]
    id_of = []
    for order, start in zip(orders, starts.tolist(), strict=False):
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(start, start + len(order), dtype=np.int32)
        id_of.append(place)
    ts, dur, category, name, args_id, repair, utid = (
        _in_order(files, orders, column)
        for column in ("ts", "dur", "category", "name", "args_id", "repair", "thread")
    )
    for trace_id, file in enumerate(files):
        mine = slice(int(starts[trace_id]), int(starts[trace_id + 1]))
        ts[mine] += file.base_ns
        utid[mine] = utid_of[trace_id][utid[mine]]
    orders.clear()
    origin_ns = int(ts.min()) if n else 0
    ts -= origin_ns
    lanes = np.array([text in {*DEVICE_CATEGORIES, *_EVIDENCE} for text in words.categories.texts])
    work = np.array([text in DEVICE_CATEGORIES for text in words.categories.texts])
    nested = _nested(utid, ts, dur, ~lanes[category])
    return Gathered(
        files=tuple(files),
        words=words,
        trace=trace,
        category=category,
        name=name,
        utid=utid,
        ts=ts,
        dur=dur,
        args_id=args_id,
        repair=repair,
        on_device=work[category] & ~words.names.matching(FIRMWARE_COPY)[name],
        correlation=_sparse(files, id_of, "correlation"),
        external_id=_sparse(files, id_of, "external_id"),
        id_of=tuple(id_of),
        origin_ns=origin_ns,
        threads=threads,
        utid_of=utid_of,
        parent=nested.parent,
        depth=nested.depth,
        self_dur=nested.self_dur,
        crossing=np.bincount(trace[nested.crossing], minlength=len(files)),
    )


def last_started(gathered: Gathered, utid: Int32, at_ns: Int64) -> Int64:
    """Row of a thread that started last at or before a moment, the innermost; -1 for none."""
    wanted = np.zeros(len(gathered.threads) + 1, np.bool_)
    wanted[utid] = True
    wanted[-1] = False
    rows = np.flatnonzero(wanted[gathered.utid])
    rows = rows[_stable_order(gathered.utid[rows])]
    borders = np.searchsorted(gathered.utid[rows], np.arange(len(gathered.threads) + 1))
    found = np.full(len(at_ns), -1, np.int64)
    for thread in np.flatnonzero(wanted).tolist():
        mine = rows[borders[thread] : borders[thread + 1]]
        if not len(mine):
            continue
        moments = np.flatnonzero(utid == thread)
        place = np.searchsorted(gathered.ts[mine], at_ns[moments], "right") - 1
        found[moments] = np.where(place >= 0, mine[place], -1)
    return found


def innermost_at(gathered: Gathered, utid: Int32, at_ns: Int64) -> Int64:
    """Host row that runs at a moment on a thread, the innermost of them; -1 for none."""
    found = last_started(gathered, utid, at_ns)
    while True:
        over = np.flatnonzero(found >= 0)
        over = over[(gathered.ts + gathered.dur)[found[over]] <= at_ns[over]]
        if not len(over):
            return found
        found[over] = gathered.parent[found[over]]


def innermost_of(gathered: Gathered, rows: Int64, wanted: Bool) -> Int64:
    """Per row: itself where wanted, else the nearest wanted row around it; -1 for none."""
    found = rows.copy()
    while True:
        at = np.flatnonzero(found >= 0)
        at = at[~wanted[found[at]]]
        if not len(at):
            return found
        found[at] = gathered.parent[found[at]]


def _in_order(files: Sequence[TraceFile], orders: Sequence[Int32], column: str) -> NDArray[Any]:
    """One column of all files; the files give theirs up, so that it is in memory once."""
    parts = [
        file.parsed.slices.release(column)[order] for file, order in zip(files, orders, strict=True)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _order(ts: Int64, dur: Int64) -> Int32:
    """Rows by start, longest first, then as in the file; few starts are shared."""
    order = np.argsort(ts, kind="stable")
    starts = ts[order]
    again = np.flatnonzero(starts[1:] == starts[:-1])
    del starts
    if len(again):
        tied = np.unique(np.concatenate([again, again + 1]))
        rows = order[tied]
        order[tied] = rows[np.lexsort((rows, -dur[rows], ts[rows]))]
    return order.astype(np.int32)


def _stable_order(threads: Int32) -> Int64:
    """Rows by thread, else as they are; numpy sorts short numbers by digits, which is faster."""
    few = len(threads) == 0 or int(threads.max()) < np.iinfo(np.int16).max
    return np.argsort(threads.astype(np.int16) if few else threads, kind="stable")


def _sparse(
    files: Sequence[TraceFile], id_of: Sequence[Int32], side: str
) -> tuple[Int32, NDArray[np.uint64]]:
    found = [getattr(file.parsed, side) for file in files]
    ids = np.concatenate([place[one.row] for place, one in zip(id_of, found, strict=True)])
    values = np.concatenate([one.value for one in found])
    order = np.argsort(ids, kind="stable")
    return ids[order], values[order]


def _nested(utid: Int32, ts: Int64, dur: Int64, on_host: Bool) -> Nesting:
    host = np.flatnonzero(on_host).astype(np.int32)
    return nest(host[_stable_order(utid[host])], utid, ts, dur)


def _threads(files: Sequence[TraceFile], words: Words) -> tuple[pl.DataFrame, tuple[Int32, ...]]:
    """Threads of all files, in the order in which they appear in each.

    Two ways of writing the same pid and tid (as a number, as text) are one thread.
    """
    found: list[tuple[int, int, int, str, str]] = []
    utid_of = []
    processes: dict[tuple[int, str], int] = {}
    for trace_id, file in enumerate(files):
        numbers, first = np.unique(file.parsed.slices.thread, return_index=True)
        mine: dict[tuple[str, str], int] = {}
        for number in numbers[np.argsort(first)].tolist():
            pid, tid = words.threads[number]
            if (pid, tid) not in mine:
                upid = processes.setdefault((trace_id, pid), len(processes))
                mine[pid, tid] = len(found)
                found.append((len(found), upid, trace_id, pid, tid))
        table = [mine.get(thread, -1) for thread in words.threads]
        utid_of.append(np.array(table, np.int32))
    schema = {
        "utid": pl.Int32, "upid": pl.Int32, "trace_id": pl.Int32, "pid": pl.String,
        "tid": pl.String,
    }  # fmt: skip
    return pl.DataFrame(found, schema=schema, orient="row"), tuple(utid_of)
