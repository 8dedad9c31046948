"""Files -> one set of columns: ids, threads, nesting; times still those of each file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ingest.lexicon.words import Words
from ingest.normalise.nesting import nest
from ingest.parsed import Parsed
from ingest.vocab import DEVICE_CATEGORIES, FIRMWARE_COPY

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Bool = NDArray[np.bool_]

_LATEST_NS = 1 << 61
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
        """`baseTimeNanoseconds`; 0 when not recorded."""
        base = self.parsed.header.get("baseTimeNanoseconds")
        return base if isinstance(base, int) and abs(base) < _LATEST_NS else 0


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

    def category_text(self, row: int) -> str:
        """Category of one row."""
        return self.words.categories.texts[int(self.category[row])]


def gather(files: Sequence[TraceFile], words: Words) -> Gathered:
    """Number the rows and threads of all files and nest the host rows."""
    threads, utid_of = _threads(files, words)
    sizes = [len(file.parsed.slices) for file in files]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    n = int(starts[-1])
    trace = np.repeat(np.arange(len(files), dtype=np.int32), sizes)
    category, repair = np.empty(n, np.int16), np.empty(n, np.int8)
    name, utid, args_id = (np.empty(n, np.int32) for _ in range(3))
    ts, dur = np.empty(n, np.int64), np.empty(n, np.int64)
    id_of = []
    for trace_id, file in enumerate(files):
        slices = file.parsed.slices
        order = _order(slices.ts, slices.dur)
        mine = slice(int(starts[trace_id]), int(starts[trace_id + 1]))
        np.add(slices.ts[order], file.base_ns, out=ts[mine])
        dur[mine], category[mine] = slices.dur[order], slices.category[order]
        name[mine], args_id[mine] = slices.name[order], slices.args_id[order]
        repair[mine], utid[mine] = slices.repair[order], utid_of[trace_id][slices.thread[order]]
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(mine.start, mine.stop, dtype=np.int32)
        id_of.append(place)
    origin_ns = int(ts.min()) if n else 0
    ts -= origin_ns
    lanes = np.array([text in {*DEVICE_CATEGORIES, *_EVIDENCE} for text in words.categories.texts])
    work = np.array([text in DEVICE_CATEGORIES for text in words.categories.texts])
    nested, crosses = _nested(utid, ts, dur, ~lanes[category])
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
        parent=nested[0],
        depth=nested[1],
        self_dur=nested[2],
        crossing=np.bincount(trace[crosses], minlength=len(files)),
    )


def innermost_at(gathered: Gathered, utid: Int64, at_ns: Int64) -> Int64:
    """Host row that runs at a moment on a thread, the innermost of them; -1 for none."""
    host = np.flatnonzero(np.isin(gathered.utid, np.unique(utid)))
    order = host[np.argsort(gathered.utid[host], kind="stable")]
    threads, starts = gathered.utid[order], gathered.ts[order]
    found = np.full(len(at_ns), -1, np.int64)
    for thread in np.unique(utid).tolist() if len(host) else []:
        first, last = np.searchsorted(threads, [thread, thread + 1])
        moments = np.flatnonzero(utid == thread)
        place = first + np.searchsorted(starts[first:last], at_ns[moments], "right") - 1
        found[moments] = np.where(place >= first, order[np.maximum(place, 0)], -1)
    while True:
        over = np.flatnonzero(found >= 0)
        over = over[(gathered.ts + gathered.dur)[found[over]] <= at_ns[over]]
        if not len(over):
            return found
        found[over] = gathered.parent[found[over]]


def _order(ts: Int64, dur: Int64) -> Int64:
    """Rows by start, longest first, then as in the file; few starts are shared."""
    order = np.argsort(ts, kind="stable")
    starts = ts[order]
    again = np.flatnonzero(starts[1:] == starts[:-1])
    if len(again):
        tied = np.unique(np.concatenate([again, again + 1]))
        rows = order[tied]
        order[tied] = rows[np.lexsort((rows, -dur[rows], ts[rows]))]
    return order


def _sparse(
    files: Sequence[TraceFile], id_of: Sequence[Int32], side: str
) -> tuple[Int32, NDArray[np.uint64]]:
    found = [getattr(file.parsed, side) for file in files]
    ids = np.concatenate([place[one.row] for place, one in zip(id_of, found, strict=True)])
    values = np.concatenate([one.value for one in found])
    order = np.argsort(ids, kind="stable")
    return ids[order], values[order]


def _nested(
    utid: Int32, ts: Int64, dur: Int64, on_host: Bool
) -> tuple[tuple[Int32, NDArray[np.int16], Int64], Int64]:
    """Parent, depth and own time of every row, and the rows that cross the one around them."""
    host = np.flatnonzero(on_host)
    order = host[np.argsort(utid[host], kind="stable")]
    nested = nest(utid[order], ts[order], dur[order])
    n = len(ts)
    parent, depth, self_dur = np.full(n, -1, np.int32), np.zeros(n, np.int16), dur.copy()
    parent[order] = np.where(nested.parent >= 0, order[nested.parent], -1)
    depth[order], self_dur[order] = nested.depth, nested.self_dur
    return (parent, depth, self_dur), order[nested.crosses]


def _threads(files: Sequence[TraceFile], words: Words) -> tuple[pl.DataFrame, tuple[Int32, ...]]:
    """Threads of all files, in the order in which they appear in each.

    Two ways of writing the same pid and tid (as a number, as text) are one thread.
    """
    found: list[tuple[int, int, int, str, str]] = []
    utid_of = []
    processes: dict[tuple[int, str], int] = {}
    for trace_id, file in enumerate(files):
        table = np.full(len(words.threads), -1, np.int32)
        numbers, first = np.unique(file.parsed.slices.thread, return_index=True)
        mine: dict[tuple[str, str], int] = {}
        for number in numbers[np.argsort(first)].tolist():
            pid, tid = words.threads[number]
            if (pid, tid) not in mine:
                upid = processes.setdefault((trace_id, pid), len(processes))
                mine[pid, tid] = len(found)
                found.append((len(found), upid, trace_id, pid, tid))
            table[number] = mine[pid, tid]
        utid_of.append(table)
    schema = {
        "utid": pl.Int32, "upid": pl.Int32, "trace_id": pl.Int32, "pid": pl.String,
        "tid": pl.String,
    }  # fmt: skip
    return pl.DataFrame(found, schema=schema, orient="row"), tuple(utid_of)
