"""A trace file as blocks of bytes: plain or gzip, told by content."""

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from typing import TypeAlias

from isal import isal_zlib
from isal.isal_zlib import IsalError

from ingest.errors import TraceError
from ingest.issues import IssueLog

_GZIP = b"\x1f\x8b"
_FOREIGN = (
    (0, b"\x28\xb5\x2f\xfd", "is compressed with zstd", "decompress it first"),
    (0, b"BZh", "is compressed with bzip2", "decompress it first"),
    (0, b"\xfd7zXZ\x00", "is compressed with xz", "decompress it first"),
    (0, b"PK\x03\x04", "is a zip archive", "unpack it and give the traces inside"),
    (257, b"ustar", "is a tar archive", "unpack it and give the traces inside"),
    (0, b"\x1f\x8b", "is compressed with gzip twice", "decompress it once"),
    (0, b"\xff\xfe", "is UTF-16 text", "convert it to UTF-8"),
    (0, b"\xfe\xff", "is UTF-16 text", "convert it to UTF-8"),
    (0, b"{\x00", "is UTF-16 text", "convert it to UTF-8"),
    (0, b"[\x00", "is UTF-16 text", "convert it to UTF-8"),
    (0, b"\x00{", "is UTF-16 text", "convert it to UTF-8"),
    (0, b"\x00[", "is UTF-16 text", "convert it to UTF-8"),
)
"""Place and bytes that tell other formats, what they are, what to do."""
_TELLING_BYTES = 512
_BOM = b"\xef\xbb\xbf"
_GZIP_WINDOW = 31
"""zlib's word for: expect the header and trailer of gzip."""
_STORED_BYTES = 1 << 20
_RETRIED_BYTES = 1 << 12
_FINGERPRINT_BYTES = 1 << 16
BLOCK_BYTES = 1 << 23
Block: TypeAlias = bytes | memoryview
"""Bytes that may be gone with the next block."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file on disk."""

    path: Path
    watch: Callable[[int], None] = lambda _: None
    """Told how many stored bytes were read, each time."""

    def fingerprint(self) -> str:
        """What tells this content from another without reading all of it: for the cache.

        Size, time of the last change, and a hash of the first and the last 64 KiB.

        Raises:
            TraceError: the file cannot be opened.
        """
        try:
            with self.path.open("rb") as stream:
                status = os.fstat(stream.fileno())
                digest = hashlib.sha256(f"{status.st_size} {status.st_mtime_ns}".encode())
                digest.update(stream.read(_FINGERPRINT_BYTES))
                if status.st_size > _FINGERPRINT_BYTES:
                    stream.seek(-_FINGERPRINT_BYTES, os.SEEK_END)
                    digest.update(stream.read(_FINGERPRINT_BYTES))
        except OSError as error:
            raise self._unreadable(error) from error
        return digest.hexdigest()

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

    def blocks(self, log: IssueLog, digest: Callable[[Block], None]) -> Iterator[Block]:
        """The bytes, decompressed, in blocks; a damaged gzip stream goes as far as it can.

        Args:
            log: takes a count of the damage.
            digest: is shown the stored bytes, all of them and in order.

        Raises:
            TraceError: the file cannot be opened, is empty, or is compressed in another way.
        """
        blocks = self._decompressed(log, digest)
        head = b""
        for block in blocks:
            head += block
            if len(head) >= _TELLING_BYTES:
                break
        self._refuse_foreign(head)
        text = head.removeprefix(_BOM)
        empty = not text.strip()
        yield text
        for block in blocks:
            empty = empty and not bytes(block).strip()
            yield block
        if empty:
            raise TraceError(
                f"`{self.path.name}`: file is empty",
                hint="the run probably ended before the profiler wrote its trace",
            )

    def _decompressed(self, log: IssueLog, digest: Callable[[Block], None]) -> Iterator[Block]:
        kept = 0
        try:
            with self.path.open("rb", buffering=0) as stream:
                head = stream.read(len(_GZIP))
                stream.seek(0)
                if head != _GZIP:
                    yield from self._stored(stream, BLOCK_BYTES, digest)
                    return
                for block in _gunzip(self._stored(stream, _STORED_BYTES, digest)):
                    kept += len(block)
                    yield block
        except (IsalError, EOFError) as error:  # type: ignore[misc]  # its stubs lack the base
            for block in self._before_damage(kept):
                kept += len(block)
                yield block
            log.at(
                "gzip_damaged",
                byte_offset=kept,
                excerpt=str(error),
                action=f"kept the first {kept} decompressed bytes",
            )
        except OSError as error:
            raise self._unreadable(error) from error

    def _refuse_foreign(self, head: bytes) -> None:
        for place, mark, what, hint in _FOREIGN:
            if head.startswith(mark, place):
                raise TraceError(
                    f"`{self.path.name}` {what}", hint=f"{hint}: plain JSON and gzip are read"
                )

    def _stored(
        self, stream: RawIOBase, size: int, digest: Callable[[Block], None]
    ) -> Iterator[Block]:
        """Blocks of one buffer: each is gone with the next."""
        buffer = bytearray(size)
        whole = memoryview(buffer)
        while n := stream.readinto(buffer):
            digest(whole[:n])
            self.watch(n)
            yield whole[:n]

    def _before_damage(self, skipped: int) -> Iterator[bytes]:
        """What can be decompressed in front of the damage, but for the first bytes of it.

        The fast decompressor gives up a whole block where the slow one can go byte by byte.
        """
        with self.path.open("rb") as stream:
            for block in _to_damage(iter(lambda: stream.read(_RETRIED_BYTES), b"")):
                yield block[skipped:]
                skipped = max(skipped - len(block), 0)

    def _unreadable(self, error: OSError) -> TraceError:
        return TraceError(f"cannot read `{self.path}`: {error.strerror}")


def _gunzip(stored: Iterator[Block]) -> Iterator[Block]:
    """All members of a gzip file, one behind the other.

    Raises:
        IsalError: the stream is damaged.
        EOFError: it ends early.
    """
    member = isal_zlib.decompressobj(_GZIP_WINDOW)
    for block in stored:
        rest = bytes(block)
        while rest:
            if member.eof:
                rest = rest.lstrip(b"\0")  # padding behind a member
                if not rest:
                    break
                member = isal_zlib.decompressobj(_GZIP_WINDOW)
            yield member.decompress(rest, BLOCK_BYTES)
            rest = member.unused_data if member.eof else member.unconsumed_tail
    if not member.eof:
        raise EOFError("the stream ends before its trailer")


def _to_damage(stored: Iterator[bytes]) -> Iterator[bytes]:
    """As `_gunzip`, up to the very byte that is damaged."""
    member = zlib.decompressobj(_GZIP_WINDOW)
    for block in stored:
        rest = block
        while rest:
            if member.eof:
                member = zlib.decompressobj(_GZIP_WINDOW)
            before = member.copy()
            try:
                yield member.decompress(rest)
            except zlib.error:
                yield from _byte_by_byte(before.decompress, rest)
                return
            rest = member.unused_data if member.eof else b""


def _byte_by_byte(decompress: Callable[[bytes], bytes], block: bytes) -> Iterator[bytes]:
    """A block that is damaged somewhere, up to there."""
    for value in block:
        try:
            yield decompress(bytes((value,)))
        except zlib.error:
            return
