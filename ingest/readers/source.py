"""A trace file as bytes: plain or gzip, told by content, and its hash for the cache."""

import hashlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from isal import igzip

from ingest.errors import TraceError
from ingest.issues import IssueLog

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_GZIP_WINDOW = 31
"""zlib's word for: expect the header and trailer of gzip."""
_BLOCK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Source:
    """A file on disk."""

    path: Path

    def sha256(self) -> str:
        """Hash of the stored bytes.

        Raises:
            TraceError: the file cannot be opened.
        """
        try:
            with self.path.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise self._unreadable(error) from error

    def read(self, log: IssueLog) -> bytes:
        """All bytes, decompressed; a damaged gzip stream is kept as far as it goes, and counted.

        Raises:
            TraceError: the file cannot be opened, is empty, or is compressed in another way.
        """
        try:
            stored = self.path.read_bytes()
        except OSError as error:
            raise self._unreadable(error) from error
        if stored.startswith(_ZSTD):
            raise TraceError(
                f"`{self.path.name}` is compressed with zstd",
                hint="decompress it first: plain JSON and gzip are read",
            )
        data = _gunzip(stored, log) if stored.startswith(_GZIP) else stored
        data = data.removeprefix(b"\xef\xbb\xbf")
        if not data.strip():
            raise TraceError(
                f"`{self.path.name}`: file is empty",
                hint="the run probably ended before the profiler wrote its trace",
            )
        return data

    def _unreadable(self, error: OSError) -> TraceError:
        return TraceError(f"cannot read `{self.path}`: {error.strerror}")


def _gunzip(stored: bytes, log: IssueLog) -> bytes:
    """All members of a gzip file; where one is damaged, what precedes the damage."""
    try:
        return bytes(igzip.decompress(stored))
    except (OSError, EOFError):
        pass
    kept, cause = _before_damage(stored)
    log.at(
        "gzip_damaged",
        byte_offset=len(kept),
        excerpt=cause,
        action=f"kept the first {len(kept)} decompressed bytes",
    )
    return kept


def _before_damage(stored: bytes) -> tuple[bytes, str]:
    """What can be decompressed, and why no more can be."""
    parts: list[bytes] = []
    rest = stored
    while rest:
        member = zlib.decompressobj(_GZIP_WINDOW)
        for start in range(0, len(rest), _BLOCK_BYTES):
            before, block = member.copy(), rest[start : start + _BLOCK_BYTES]
            try:
                parts.append(member.decompress(block))
            except zlib.error as error:
                parts += _byte_by_byte(before.decompress, block)
                return b"".join(parts), str(error)
            if member.eof:
                rest = member.unused_data + rest[start + _BLOCK_BYTES :]
                break
        else:
            break
    return b"".join(parts), "the stream ends before its trailer"


def _byte_by_byte(decompress: Callable[[bytes], bytes], block: bytes) -> Iterator[bytes]:
    """A block that is damaged somewhere, up to there."""
    for value in block:
        try:
            yield decompress(bytes((value,)))
        except zlib.error:
            return
