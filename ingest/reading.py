"""Files of a run -> their columns, and their arguments straight to the store."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ingest.errors import TraceError, UserError
from ingest.lexicon.words import Words
from ingest.normalise.gather import TraceFile
from ingest.normalise.ranks import with_ranks
from ingest.parsed import ArgumentRows, Parsed
from ingest.readers.kineto import read_kineto
from ingest.readers.source import Source
from ingest.store import ROW_GROUP
from ingest.writer import Writer

Progress = Callable[[str, float], None]
"""Told what is being done, and which share of all is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFile:
    """A file that could not be read, and why in one line."""

    path: Path
    reason: str


@dataclass(slots=True, kw_only=True)
class Reading:
    """Reads the files of a run."""

    words: Words
    writer: Writer
    strict: bool
    private: Callable[[ArgumentRows], ArgumentRows]
    """What is done with arguments before they are written."""
    progress: Progress
    failed: list[FailedFile] = field(default_factory=list)

    def read(self, paths: Sequence[Path]) -> list[TraceFile]:
        """All files, each with its rank.

        Raises:
            TraceError: none can be read, or (strict) one cannot, or needs a repair.
        """
        sink = _Sink(self.writer, self.private)
        progress = _Counted(self.progress, sum(path.stat().st_size for path in paths))
        parsed: list[tuple[Path, Parsed]] = []
        for path in paths:
            progress.at(path)
            if (twin := _twin(path, parsed)) is not None:
                twin.log.count("duplicate_file")
                continue
            try:
                source = Source(path, progress.add)
                parsed.append((path, read_kineto(source, self.words, sink, strict=self.strict)))
            except TraceError as error:
                fail(path, error, self.failed, alone=len(paths) == 1 or self.strict)
        sink.flush()
        if not parsed:
            reasons = "; ".join(failure.reason for failure in self.failed)
            raise TraceError("no trace could be read: " + reasons)
        return with_ranks(parsed)


def fail(path: Path, error: UserError, failed: list[FailedFile], *, alone: bool) -> None:
    """Note a file that cannot be read.

    Raises:
        UserError: the error itself, where no other file can make up for it.
    """
    if alone:
        raise error
    failed.append(FailedFile(path=path, reason=str(error)))


class _Counted:
    """Turns bytes that were read into progress."""

    def __init__(self, progress: Progress, n_bytes: int) -> None:
        self._progress = progress
        self._total = max(n_bytes, 1)
        self._done = 0
        self._text = ""

    def at(self, path: Path) -> None:
        """A file begins."""
        self._text = f"reading {path.name}"
        self.add(0)

    def add(self, n_bytes: int) -> None:
        """Bytes were read."""
        self._done += n_bytes
        self._progress(self._text, min(self._done / self._total, 1.0))


def _twin(path: Path, parsed: Sequence[tuple[Path, Parsed]]) -> Parsed | None:
    """A file that was read and has the very content of this one."""
    size = path.stat().st_size
    same_size = [one for other, one in parsed if other.stat().st_size == size]
    if not same_size:
        return None
    digest = Source(path).sha256()
    return next((one for one in same_size if one.digest == digest), None)


class _Sink:
    """Writes arguments to the store in full row groups."""

    def __init__(self, writer: Writer, private: Callable[[ArgumentRows], ArgumentRows]) -> None:
        self._writer = writer
        self._private = private
        self._waiting: list[ArgumentRows] = []
        self._n_waiting = 0
        self.count = 0

    def write(self, rows: ArgumentRows) -> None:
        """Take rows; their numbers go on from `count`."""
        self._waiting.append(rows)
        self._n_waiting += len(rows.args_id)
        self.count += len(rows.args_id)
        if self._n_waiting >= ROW_GROUP:
            self._send(self._n_waiting // ROW_GROUP * ROW_GROUP)

    def flush(self) -> None:
        """Write what waits."""
        if self._n_waiting:
            self._send(self._n_waiting)

    def _send(self, n: int) -> None:
        counts = np.concatenate([np.diff(one.first) for one in self._waiting])
        first = np.concatenate([[0], np.cumsum(counts)])
        args_id = np.concatenate([one.args_id for one in self._waiting])
        shape = np.concatenate([one.shape for one in self._waiting])
        numbers = np.concatenate([one.numbers for one in self._waiting])
        cut = int(first[n])
        sent = ArgumentRows(args_id[:n], shape[:n], first[: n + 1], numbers[:cut])
        self._writer.insert_arguments(self._private(sent))
        rest = ArgumentRows(args_id[n:], shape[n:], first[n:] - cut, numbers[cut:])
        self._waiting, self._n_waiting = [rest], len(rest.args_id)
