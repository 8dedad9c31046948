"""Time, disk and memory of reading some files, told from their sizes before any is read."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isal import igzip_lib, isal_zlib

from ingest.errors import TraceError
from ingest.units import Bytes, BytesPerSecond

_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31
"""zlib's word for: expect the header and trailer of gzip."""
_DAMAGED = (igzip_lib.IsalError, zlib.error)
_SAMPLE_STORED = 1 << 21
_SAMPLE_JSON = 1 << 24
_MOST_SAMPLES = 16
"""Gzip files looked into; the largest ones, which weigh most. The rest share their ratio."""
_MINUTE_S = 60
_HOUR_S = 3600
_SECONDS_UP_TO = 100
_TEN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What reading costs; `dataclasses.replace(COSTS, ...)` tunes it."""

    start_s: float
    slow_bytes_per_s: BytesPerSecond
    fast_bytes_per_s: BytesPerSecond
    json_bytes_per_event: Bytes
    store_base_bytes: Bytes
    store_bytes_per_event: Bytes
    memory_base_bytes: Bytes
    memory_bytes_per_event: Bytes
    files_at_once: int | None
    """How many files are in memory together; None: all of them."""


COSTS = Costs(
    start_s=1.2,
    slow_bytes_per_s=BytesPerSecond(50e6),
    fast_bytes_per_s=BytesPerSecond(150e6),
    json_bytes_per_event=Bytes(300),
    store_base_bytes=Bytes(3_000_000),
    store_bytes_per_event=Bytes(50),
    memory_base_bytes=Bytes(500_000_000),
    memory_bytes_per_event=Bytes(150),
    files_at_once=None,
)
"""Measured on two cores, quiet and shared with other work: files of 60 MB to 3.1 GB of JSON, 250 to
400 bytes per event; 50 to 140 MB/s; stores of 40 to 60 bytes per event; memory of 0.5 GB and 140 to
160 bytes per event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What reading the files will take, roughly; sizes are of all files together."""

    files: int
    json_bytes: Bytes
    seconds_low: float
    seconds_high: float
    store_bytes: Bytes
    memory_bytes: Bytes


def estimate(paths: Sequence[Path | str], *, costs: Costs = COSTS) -> Estimate:
    """Foretell the reading of these trace files, plain or gzip, in a few milliseconds per file.

    Raises:
        TraceError: a file cannot be opened.
    """
    sizes = _json_sizes([Path(path) for path in paths])
    total = sum(sizes)
    at_once = sum(sorted(sizes, reverse=True)[: costs.files_at_once])
    events, events_at_once = (size / costs.json_bytes_per_event for size in (total, at_once))
    return Estimate(
        files=len(sizes),
        json_bytes=Bytes(total),
        seconds_low=costs.start_s + total / costs.fast_bytes_per_s,
        seconds_high=costs.start_s + total / costs.slow_bytes_per_s,
        store_bytes=Bytes(costs.store_base_bytes + round(events * costs.store_bytes_per_event)),
        memory_bytes=Bytes(
            costs.memory_base_bytes + round(events_at_once * costs.memory_bytes_per_event)
        ),
    )


def words(found: Estimate) -> str:
    """The estimate in one line for people."""
    files = "1 file" if found.files == 1 else f"{found.files:,} files"
    return (
        f"{files}, about {_size(found.json_bytes)} of JSON: "
        f"{_span(found.seconds_low, found.seconds_high)}, {_size(found.store_bytes)} of disk, "
        f"{_bound(found.memory_bytes)} of memory"
    )


def _json_sizes(paths: Sequence[Path]) -> list[int]:
    """Bytes of JSON of each file."""
    stored = [_stored(path) for path in paths]
    packed = sorted(
        (size, path) for path, (size, is_gzip) in zip(paths, stored, strict=True) if is_gzip
    )
    ratios = {path: _ratio(path) for _, path in packed[-_MOST_SAMPLES:]}
    unpacked = sum(size * ratios[path] for size, path in packed[-_MOST_SAMPLES:])
    sampled = sum(size for size, _ in packed[-_MOST_SAMPLES:])
    usual = unpacked / sampled if sampled else 1.0
    return [
        round(size * ratios.get(path, usual)) if is_gzip else size
        for path, (size, is_gzip) in zip(paths, stored, strict=True)
    ]


def _stored(path: Path) -> tuple[int, bool]:
    """Size on disk, and whether it is gzip."""
    is_gzip = _head(path, len(_GZIP)) == _GZIP
    return path.stat().st_size, is_gzip


def _ratio(path: Path) -> float:
    """Bytes of JSON per stored byte, from the beginning of a gzip file."""
    head = _head(path, _SAMPLE_STORED)
    consumed = produced = 0
    while consumed < len(head) and produced < _SAMPLE_JSON:
        member = isal_zlib.decompressobj(wbits=_GZIP_WINDOW)
        try:
            block = member.decompress(head[consumed:], _SAMPLE_JSON - produced)
        except _DAMAGED:  # type: ignore[misc]  # isal declares its class as an instance
            break
        used = len(head) - consumed - len(member.unconsumed_tail) - len(member.unused_data)
        if not used:
            break
        consumed, produced = consumed + used, produced + len(block)
        if not member.eof:
            break
    return produced / consumed if consumed else 1.0


def _head(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(size)
    except OSError as error:
        raise TraceError(f"cannot read `{path}`: {error.strerror}") from error


def _size(size: int) -> str:
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= 0.95 * factor:
            return f"{_short(size / factor)} {unit}"
    return "1 MB"


def _short(value: float) -> str:
    """Two digits: more would promise what an estimate cannot keep."""
    return f"{value:.1f}".removesuffix(".0") if value < _TEN else f"{float(f'{value:.2g}'):,.0f}"


def _bound(size: int) -> str:
    """The next power of two in GB."""
    gigabytes = 1
    while size > gigabytes * 1e9:
        gigabytes *= 2
    return f"under {gigabytes} GB"


def _span(low_s: float, high_s: float) -> str:
    """From low to high in one unit, or a single number where both round to it."""
    unit, factor = next(
        (name, factor)
        for name, factor, up_to_s in (
            ("second", 1, _SECONDS_UP_TO),
            ("minute", _MINUTE_S, _SECONDS_UP_TO * _MINUTE_S),
            ("hour", _HOUR_S, float("inf")),
        )
        if high_s < up_to_s
    )
    low, high = (max(1, round(seconds / factor)) for seconds in (low_s, high_s))
    number = str(high) if low == high else f"{low}-{high}"
    return f"{number} {unit}{'' if number == '1' else 's'}"
