"""Files -> store: which files, which ranks, the passes in order, the cache."""

import fcntl
import glob
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingest.errors import TraceError, UserError
from ingest.lexicon.words import Words
from ingest.normalise.correlate import link
from ingest.normalise.device_repairs import device_rows, repair_device_times
from ingest.normalise.device_times import to_host_clock
from ingest.normalise.gather import Gathered, TraceFile, gather
from ingest.normalise.meetings import find_collectives
from ingest.normalise.ranks import ranks_in_names
from ingest.normalise.tables import Rows, failure_stat, frames
from ingest.parsed import Parsed
from ingest.readers.kineto import ArgumentRows, read_kineto
from ingest.readers.source import Source
from ingest.store import FORMAT_NAME, SCHEMA_VERSION, Store

Int64 = NDArray[np.int64]
Progress = Callable[[str], None]

_SKIPPED_SUFFIXES = (".duckdb", ".wal", ".md", ".py", ".txt", ".csv", ".tsv", ".yaml", ".yml")
_MOST_RANKS = 1 << 31
_ROW_GROUP = 122_880
"""Rows that DuckDB packs together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOptions:
    """How to read and where to keep the store."""

    cache: bool = True
    cache_dir: Path | None = None
    """None: `trace-replay` in the user's cache folder."""
    strict: bool = False
    output: Path | None = None
    """Write the store here instead of the cache."""
    progress: Progress = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFile:
    """A file that could not be read, and why in one line."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An open store of a run; close it (or use it as a context manager)."""

    store: Store
    failed: tuple[FailedFile, ...]
    cached: bool
    """The store was there already."""
    path: Path
    bytes_on_disk: int

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()


def open_run(paths: Sequence[Path | str], *, options: IngestOptions) -> Run:
    """Open the store of these traces, making it first where it is not in the cache.

    Args:
        paths: files, directories, globs, or one `.duckdb` store.
        options: how to read and where to keep the store.

    Raises:
        TraceError: nothing to read, or (strict) something that had to be repaired.
    """
    files = find_files(paths)
    if len(files) == 1 and _is_store(files[0]):
        store = Store.open(files[0])
        size = files[0].stat().st_size
        return Run(store=store, failed=(), cached=True, path=files[0], bytes_on_disk=size)
    digests, failed = _digests(files, options)
    if options.output is not None:
        failed += _write(options.output, digests, options)
        return _opened(options.output, failed, cached=False)
    if not options.cache:
        return _uncached(digests, failed, options)
    folder = options.cache_dir or default_cache_dir()
    target = folder / f"{_key(digests, options)}.duckdb"
    if kept := _kept(target, failed):
        return kept
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(target):
        if kept := _kept(target, failed):
            return kept
        failed += _write(target, digests, options)
    return _opened(target, failed, cached=False)


def default_cache_dir() -> Path:
    """`$XDG_CACHE_HOME/trace-replay`, else `~/.cache/trace-replay`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "trace-replay"


def find_files(paths: Sequence[Path | str]) -> list[Path]:
    """Files behind paths, folders and globs, without repeats, in a stable order.

    Raises:
        TraceError: a path that does not exist, a pattern or a folder without files.
    """
    found: list[Path] = []
    for given in paths:
        path = Path(given)
        if path.is_dir():
            inside = _in_folder(path)
            if not inside:
                raise TraceError(f"`{path}` holds no trace files")
            found += inside
        elif path.exists():
            found.append(path)
        elif matches := sorted(glob.glob(str(given), recursive=True)):  # noqa: PTH207  (absolute patterns)
            found += [Path(match) for match in matches if Path(match).is_file()]
        else:
            raise TraceError(f"no such file: `{given}`")
    return list(dict.fromkeys(found))


def _in_folder(folder: Path) -> list[Path]:
    """Files of a folder that may be traces; of its sub-folders when it has none itself."""
    for pattern in ("*", "*/*"):
        files = sorted(path for path in folder.glob(pattern) if path.is_file())
        traces = [
            path
            for path in files
            if path.suffix not in _SKIPPED_SUFFIXES and not path.name.startswith(".")
        ]
        if traces:
            return sorted(traces, key=_natural)
    return []


def _natural(path: Path) -> list[tuple[int, str]]:
    return [
        (int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(path))
    ]


def _is_store(path: Path) -> bool:
    if path.suffix == ".duckdb":
        return True
    with path.open("rb") as stream:
        return stream.read(12)[8:] == b"DUCK"


def _digests(
    files: Sequence[Path], options: IngestOptions
) -> tuple[list[tuple[Path, str]], tuple[FailedFile, ...]]:
    """Fingerprint of each file; an unreadable one fails alone, unless it is the only one."""
    found: list[tuple[Path, str]] = []
    failed: list[FailedFile] = []
    for path in files:
        try:
            found.append((path, Source(path).fingerprint()))
        except TraceError as error:
            _fail(path, error, failed, alone=len(files) == 1 or options.strict)
    return found, tuple(failed)


def _fail(path: Path, error: UserError, failed: list[FailedFile], *, alone: bool) -> None:
    if alone:
        raise error
    failed.append(FailedFile(path=path, reason=str(error)))


def _key(digests: Sequence[tuple[Path, str]], options: IngestOptions) -> str:
    digest = hashlib.blake2b(digest_size=12)
    digest.update(f"{FORMAT_NAME} {SCHEMA_VERSION} strict={options.strict}".encode())
    for path, content in digests:
        digest.update(f"\n{path.name} {content}".encode())
    return digest.hexdigest()


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """One writer at a time per store; the system frees the lock of a process that died."""
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _opened(path: Path, failed: tuple[FailedFile, ...], *, cached: bool) -> Run:
    store = Store.open(path)
    return Run(
        store=store,
        failed=failed,
        cached=cached,
        path=path,
        bytes_on_disk=path.stat().st_size,
    )


def _uncached(
    digests: Sequence[tuple[Path, str]], failed: tuple[FailedFile, ...], options: IngestOptions
) -> Run:
    """A store that is gone with the process: its folder is removed while it is open."""
    with tempfile.TemporaryDirectory(prefix="trace-replay-") as folder:
        target = Path(folder) / "run.duckdb"
        failed += _write(target, digests, options)
        return _opened(target, failed, cached=False)


def _kept(target: Path, failed: tuple[FailedFile, ...]) -> Run | None:
    """The store in the cache; None where there is none, or a damaged one."""
    try:
        return _opened(target, failed + _recorded_failures(target), cached=True)
    except TraceError:
        return None


def _recorded_failures(path: Path) -> tuple[FailedFile, ...]:
    with Store.open(path) as store:
        rows = store.rows(
            "SELECT key, value FROM store.meta WHERE key LIKE 'failed:%' ORDER BY key"
        )
    return tuple(FailedFile(path=Path(key[7:]), reason=value) for key, value in rows)


def _write(
    target: Path, digests: Sequence[tuple[Path, str]], options: IngestOptions
) -> tuple[FailedFile, ...]:
    """Read the files and write the store under a temporary name, then rename it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    Path(temporary).unlink()
    try:
        failed = _fill(Path(temporary), digests, options)
        Path(temporary).replace(target)
    except OSError as error:
        raise TraceError(
            f"cannot write the store `{target}`: {error.strerror or error}",
            hint="choose another place with --cache-dir, or use --no-cache",
        ) from error
    finally:
        for leftover in (Path(temporary), Path(f"{temporary}.wal")):
            leftover.unlink(missing_ok=True)
    return failed


def _fill(
    path: Path, digests: Sequence[tuple[Path, str]], options: IngestOptions
) -> tuple[FailedFile, ...]:
    words = Words()
    with Store.create(path) as store:
        with store.filling():
            files, failed = _read(digests, words, store, options)
            rows = normalise(files, words, options.progress)
            options.progress("writing the store")
            for table, frame in frames(rows):
                store.insert(table, frame)
            store.insert("import_stat", failure_stat(len(failed)))
            store.make_views()
            store.set_meta(
                {
                    "schema_version": SCHEMA_VERSION,
                    "format": FORMAT_NAME,
                    **{f"failed:{failure.path}": failure.reason for failure in failed},
                }
            )
        store.flush()
    return failed


def _read(
    digests: Sequence[tuple[Path, str]], words: Words, store: Store, options: IngestOptions
) -> tuple[list[TraceFile], tuple[FailedFile, ...]]:
    parsed: list[tuple[Path, Parsed]] = []
    failed: list[FailedFile] = []
    sink = _Sink(store)
    for number, (path, _) in enumerate(digests):
        options.progress(f"reading {path.name} ({number + 1} of {len(digests)})")
        if (twin := _twin(path, parsed)) is not None:
            twin.log.count("duplicate_file")
            continue
        try:
            one = read_kineto(Source(path), words, sink, strict=options.strict)
        except TraceError as error:
            _fail(path, error, failed, alone=len(digests) == 1 or options.strict)
            continue
        parsed.append((path, one))
    sink.flush()
    if not parsed:
        raise TraceError("no trace could be read: " + "; ".join(f.reason for f in failed))
    return _with_ranks(parsed), tuple(failed)


def _twin(path: Path, parsed: Sequence[tuple[Path, Parsed]]) -> Parsed | None:
    """A file that was read and has the very content of this one."""
    size = path.stat().st_size
    same_size = [one for other, one in parsed if other.stat().st_size == size]
    if not same_size:
        return None
    digest = Source(path).sha256()
    return next((one for one in same_size if one.digest == digest), None)


class _Sink:
    """Writes arguments to the store in batches of about a row group."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[ArgumentRows] = []
        self.count = 0

    def write(self, rows: ArgumentRows) -> None:
        """Take rows; their numbers go on from `count`."""
        self._waiting.append(rows)
        self.count += len(rows.args_id)
        if sum(len(one.args_id) for one in self._waiting) >= _ROW_GROUP:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        if self._waiting:
            counts = np.concatenate([np.diff(one.first) for one in self._waiting])
            self._store.insert_arguments(
                np.concatenate([one.args_id for one in self._waiting]),
                np.concatenate([one.shape for one in self._waiting]),
                np.concatenate([[0], np.cumsum(counts)]),
                np.concatenate([one.numbers for one in self._waiting]),
            )
            self._waiting.clear()


def _with_ranks(parsed: Sequence[tuple[Path, Parsed]]) -> list[TraceFile]:
    """Rank of each file: recorded, else from its name, else by order (never one that is taken)."""
    infos = [_distributed_info(one) for _, one in parsed]
    ranks: list[int | None] = [_whole(info.get("rank")) for info in infos]
    sources = ["distributedInfo" if rank is not None else "" for rank in ranks]
    missing = [index for index, rank in enumerate(ranks) if rank is None]
    names = ranks_in_names([parsed[index][0].name for index in missing])
    named = dict(zip(missing, names, strict=True))
    taken = {rank for rank in ranks if rank is not None}
    usable = list(named.values())
    if None not in usable and len(set(usable)) == len(usable) and not taken & set(usable):
        for index in missing:
            ranks[index], sources[index] = named[index], "file name"
            parsed[index][1].log.count("rank_from_name")
    else:
        free = (rank for rank in range(len(parsed) + len(taken)) if rank not in taken)
        for index in missing:
            ranks[index], sources[index] = next(free), "order"
            parsed[index][1].log.count("rank_from_order")
    files = [
        TraceFile(
            path=path,
            parsed=one,
            rank=rank if rank is not None else 0,
            rank_source=source,
            world_size=_whole(info.get("world_size")),
        )
        for (path, one), rank, source, info in zip(parsed, ranks, sources, infos, strict=True)
    ]
    _refuse_two_files_of_one_rank(files)
    return sorted(files, key=lambda file: file.rank)


def _distributed_info(parsed: Parsed) -> dict[str, object]:
    info = parsed.header.get("distributedInfo")
    return info if isinstance(info, dict) else {}


def _whole(value: object) -> int | None:
    """A rank or number of ranks; None for what no job can have."""
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return int(str(value)) if whole and 0 <= int(str(value)) < _MOST_RANKS else None


def _refuse_two_files_of_one_rank(files: Sequence[TraceFile]) -> None:
    by_rank: dict[int, TraceFile] = {}
    for file in files:
        other = by_rank.setdefault(file.rank, file)
        if other is not file:
            raise TraceError(
                f"`{other.path.name}` and `{file.path.name}` are both of rank {file.rank}",
                hint="give the files of one run, one per rank",
            )


def normalise(files: Sequence[TraceFile], words: Words, progress: Progress) -> Rows:
    """The passes in order: gather, link, device clock, collectives, rank clocks."""
    progress("linking")
    gathered = gather(files, words)
    links = link(gathered)
    logs = [file.parsed.log for file in files]
    for trace_id, log in enumerate(logs):
        log.count("zero_correlation", int(links.zero_correlation[trace_id]))
        log.count("unlinked", int(links.unlinked[trace_id]))
        log.count("crossing_slices", int(gathered.crossing[trace_id]))
    device = device_rows(gathered)
    ids = device["id"].to_numpy()
    device_of, stream_of = np.full(len(gathered.ts), -1), np.full(len(gathered.ts), -1)
    device_of[ids] = device["device"].fill_null(-1).to_numpy()
    stream_of[ids] = device["stream"].fill_null(-1).to_numpy()
    gathered = repair_device_times(gathered, links, logs)
    times = to_host_clock(gathered, links, device_of, logs)
    progress("matching collectives")
    collectives = find_collectives(gathered, links, times.ts, stream_of)
    for unmatched in collectives.matched.unmatched:
        name = _UNMATCHED_ISSUE[unmatched.state.name]
        position = next(i for i, file in enumerate(files) if file.rank == unmatched.rank)
        logs[position].count(name, unmatched.members)
    clocks = collectives.matched.clocks
    ts = clocks.corrected(times.ts, gathered.trace)
    moved_ns = int(ts.min()) if len(ts) else 0
    return Rows(
        gathered=replace_origin(gathered, moved_ns),
        links=links,
        times=times,
        collectives=collectives,
        ts=ts - moved_ns,
        origin_moved_ns=moved_ns,
        device=device,
    )


_UNMATCHED_ISSUE = {
    "ABSENT": "collective_partner_absent",
    "UNCOVERED": "collective_unmatched",
    "DESYNC": "collective_desync",
}


def replace_origin(gathered: Gathered, moved_ns: int) -> Gathered:
    """The same rows with an origin that is `moved_ns` later."""
    return replace(gathered, origin_ns=gathered.origin_ns + moved_ns, ts=gathered.ts - moved_ns)
