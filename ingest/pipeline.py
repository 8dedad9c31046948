"""Files -> store: the cache, reading, the passes, writing."""

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ingest.cache import default_cache_dir, key_of, locked, usable
from ingest.errors import TraceError, UsageError
from ingest.estimate import estimate
from ingest.estimate import words as in_words
from ingest.inputs import find_files, is_store
from ingest.lexicon.words import Words
from ingest.memory import give_back
from ingest.normalise.tables import failure_stat, frames
from ingest.passes import normalise
from ingest.readers.source import Source
from ingest.reading import FailedFile, Progress, Reading, fail
from ingest.redact import Redactor
from ingest.redaction import Redaction
from ingest.store import FORMAT_NAME, ROW_GROUP, SCHEMA_VERSION, Store
from ingest.windows import OtherWindow, one_window
from ingest.writer import Writer

_WORTH_FORETELLING_S = 10.0
_SHARE_OF_READING, _SHARE_OF_PASSES = 0.6, 0.1
"""Of the time that all takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOptions:
    """How to read and where to keep the store."""

    cache: bool = True
    cache_dir: Path | None = None
    """None: `trace-replay` in the user's cache folder."""
    strict: bool = False
    window: int | None = None
    """Which capture counts, from 0, where the files hold several of one rank."""
    redact: bool = False
    """Take host names, user names and paths out of the store."""
    output: Path | None = None
    """Write the store here instead of the cache."""
    progress: Progress = lambda _text, _share: None
    announce: Callable[[str], None] = lambda _: None
    """Told what a person wants to know before it happens: time and room of a big folder."""


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
        UsageError: the store cannot be written there; several captures and none chosen.
    """
    files = find_files(paths)
    if len(files) == 1 and is_store(files[0]):
        if options.output is not None or options.redact:
            raise UsageError(
                f"`{files[0]}` is a store already", hint="give the traces that it was made of"
            )
        return _opened(files[0], (), options, cached=True)
    prints, failed = _fingerprints(files, options)
    if options.output is not None:
        failed += _write(options.output, prints, options)
        return _opened(options.output, failed, options, cached=False)
    folder = options.cache_dir or default_cache_dir()
    if options.cache and (options.cache_dir is not None or usable(folder)):
        return _in_cache(folder, prints, failed, options)
    if options.cache:
        options.announce(f"no store is kept: `{folder}` cannot be written")
    return _uncached(prints, failed, options)


def _in_cache(
    folder: Path,
    prints: Sequence[tuple[Path, str]],
    failed: tuple[FailedFile, ...],
    options: IngestOptions,
) -> Run:
    """The store in the cache, made where it is not there."""
    settings = f"{FORMAT_NAME} {SCHEMA_VERSION} strict={options.strict} window={options.window}"
    target = folder / f"{key_of(prints, settings)}.duckdb"
    if kept := _kept(target, failed, options):
        return kept
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(target):
            if kept := _kept(target, failed, options):
                return kept
            failed += _write(target, prints, options)
    except OSError as error:
        raise _unwritable(target, error, options) from error
    return _opened(target, failed, options, cached=False)


def _unwritable(target: Path, error: OSError, options: IngestOptions) -> UsageError:
    elsewhere = "-o" if options.output is not None else "--cache-dir, or use --no-cache"
    return UsageError(
        f"cannot write the store `{target}`: {error.strerror or error}",
        hint=f"choose another place with {elsewhere}",
    )


def _fingerprints(
    files: Sequence[Path], options: IngestOptions
) -> tuple[list[tuple[Path, str]], tuple[FailedFile, ...]]:
    """Fingerprint of each file; an unreadable one fails alone, unless it is the only one."""
    found: list[tuple[Path, str]] = []
    failed: list[FailedFile] = []
    for path in files:
        try:
            found.append((path, Source(path).fingerprint()))
        except TraceError as error:
            fail(path, error, failed, alone=len(files) == 1 or options.strict)
    return found, tuple(failed)


def _opened(
    path: Path, failed: tuple[FailedFile, ...], options: IngestOptions, *, cached: bool
) -> Run:
    """Open a store, and say what its files have lost."""
    store = Store.open(path)
    lost = store.rows(
        "SELECT name, sum(value)::BIGINT FROM import_stat WHERE severity = 'data_loss'"
        " GROUP BY name ORDER BY name"
    )
    if lost:
        told = ", ".join(f"{name} {value}" for name, value in lost)
        options.announce(f"data lost: {told}; the places are in import_log")
    return Run(
        store=store,
        failed=failed,
        cached=cached,
        path=path,
        bytes_on_disk=path.stat().st_size,
    )


def _uncached(
    prints: Sequence[tuple[Path, str]], failed: tuple[FailedFile, ...], options: IngestOptions
) -> Run:
    """A store that is gone with the process: its folder is removed while it is open."""
    with tempfile.TemporaryDirectory(prefix="trace-replay-") as folder:
        target = Path(folder) / "run.duckdb"
        failed += _write(target, prints, options)
        return _opened(target, failed, options, cached=False)


def _kept(target: Path, failed: tuple[FailedFile, ...], options: IngestOptions) -> Run | None:
    """The store in the cache; None where there is none, or a damaged one."""
    try:
        return _opened(target, failed + _recorded_failures(target), options, cached=True)
    except TraceError:
        return None


def _recorded_failures(path: Path) -> tuple[FailedFile, ...]:
    with Store.open(path) as store:
        rows = store.rows(
            "SELECT key, value FROM store.meta WHERE key LIKE 'failed:%' ORDER BY key"
        )
    return tuple(FailedFile(path=Path(key[7:]), reason=value) for key, value in rows)


def _write(
    target: Path, prints: Sequence[tuple[Path, str]], options: IngestOptions
) -> tuple[FailedFile, ...]:
    """Read the files and write the store under a temporary name, then rename it."""
    paths = [path for path, _ in prints]
    foretold = estimate(paths)
    if foretold.seconds_high > _WORTH_FORETELLING_S:
        options.announce(in_words(foretold))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            return _write_one(target, paths, options)
        except OtherWindow as other:
            return _write_one(target, other.paths, replace(options, window=None))
    except OSError as error:
        raise _unwritable(target, error, options) from error


def _write_one(
    target: Path, paths: Sequence[Path], options: IngestOptions
) -> tuple[FailedFile, ...]:
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    Path(temporary).unlink()
    try:
        failed = _fill(Path(temporary), paths, options)
        Path(temporary).replace(target)
    finally:
        for leftover in (Path(temporary), Path(f"{temporary}.wal")):
            leftover.unlink(missing_ok=True)
    return failed


def _fill(path: Path, paths: Sequence[Path], options: IngestOptions) -> tuple[FailedFile, ...]:
    words = Words()
    redaction = Redaction(words, Redactor.fresh()) if options.redact else None
    progress = options.progress
    with Store.create(path) as store:
        with Writer(store) as writer:
            reading = Reading(
                words=words,
                writer=writer,
                strict=options.strict,
                private=redaction.arguments if redaction else lambda rows: rows,
                progress=lambda text, share: progress(text, share * _SHARE_OF_READING),
            )
            files = reading.read(paths)
            one_window(files, options.window)
            give_back()
            progress("linking rows, matching collectives", _SHARE_OF_READING)
            rows = normalise(files, words)
            done = _SHARE_OF_READING + _SHARE_OF_PASSES
            for table, frame, share in frames(rows, ROW_GROUP):
                progress("writing the store", done + (1 - done) * share)
                writer.insert(table, redaction.frame(table, frame) if redaction else frame)
            writer.insert("import_stat", failure_stat(len(reading.failed)))
        store.make_views()
        store.set_meta(
            {
                "schema_version": SCHEMA_VERSION,
                "format": FORMAT_NAME,
                **{f"failed:{failure.path}": failure.reason for failure in reading.failed},
            }
        )
        store.flush()
    return tuple(reading.failed)
