"""A trace file as bytes: plain or gzip, told by content; hash for the cache."""

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

from isal import igzip

from ingest.errors import TraceError
from ingest.issues import IssueLog

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """A file on disk."""

    path: Path

    def digest(self) -> str:
        """Hash of the stored bytes, 128 bits as hex.

        Raises:
            TraceError: the file cannot be opened.
        """
        digest = hashlib.blake2b(digest_size=16)
        try:
            with self.path.open("rb") as stream:
                while block := stream.read(_BLOCK_BYTES):
                    digest.update(block)
        except OSError as error:
            raise TraceError(f"cannot read `{self.path}`: {error.strerror}") from error
        return digest.hexdigest()

    def head(self) -> bytes:
        """The first bytes, decompressed; empty when there are none."""
        try:
            with self.path.open("rb") as stream:
                start = stream.read(1 << 16)
        except OSError as error:
            raise TraceError(f"cannot read `{self.path}`: {error.strerror}") from error
        if not start.startswith(_GZIP):
            return start
        try:
            return igzip.GzipFile(fileobj=io.BytesIO(start)).read1(4096)
        except (OSError, EOFError, igzip.BadGzipFile):
            return b""

    def read(self, log: IssueLog) -> bytes:
        """All bytes, decompressed; a damaged gzip stream is kept as far as it goes, and counted.

        Raises:
            TraceError: the file cannot be opened, is empty, or is compressed in another way.
        """
        try:
            stored = self.path.read_bytes()
        except OSError as error:
            raise TraceError(f"cannot read `{self.path}`: {error.strerror}") from error
        if not stored:
            raise TraceError(f"`{self.path.name}`: file is empty")
        if stored.startswith(_ZSTD):
            raise TraceError(
                f"`{self.path.name}` is compressed with zstd",
                hint="decompress it first: plain JSON and gzip are read",
            )
        return _gunzip(stored, log) if stored.startswith(_GZIP) else stored


def _gunzip(stored: bytes, log: IssueLog) -> bytes:
    try:
        return bytes(igzip.decompress(stored))
    except (OSError, EOFError, igzip.BadGzipFile):
        return _gunzip_as_far_as_possible(stored, log)


def _gunzip_as_far_as_possible(stored: bytes, log: IssueLog) -> bytes:
    parts = io.BytesIO()
    reader = igzip.GzipFile(fileobj=io.BytesIO(stored))
    try:
        while block := reader.read1(1 << 14):
            parts.write(block)
    except (OSError, EOFError, igzip.BadGzipFile) as error:
        log.at(
            "gzip_damaged",
            byte_offset=None,
            excerpt=f"{type(error).__name__}: {error}",
            action=f"kept the first {parts.tell()} decompressed bytes",
        )
    return parts.getvalue()
