"""What reading some files will take, told from their sizes."""

import gzip
import json
import random
from pathlib import Path

import pytest

from ingest.errors import TraceError
from ingest.estimate import COSTS, Costs, Estimate, estimate, words
from ingest.units import Bytes, BytesPerSecond


def trace(events: int, seed: int = 0) -> bytes:
    """Text of about the size and variety of a trace."""
    chance = random.Random(seed)
    rows = [
        {"name": f"op{chance.randrange(50)}", "ts": chance.random() * 1e6, "args": {"id": number}}
        for number in range(events)
    ]
    return json.dumps({"traceEvents": rows}).encode()


def test_plain_files_count_as_they_are(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.json").write_bytes(b"x" * 1000)
    found = estimate(sorted(tmp_path.iterdir()))
    assert (found.files, found.json_bytes) == (3, 3000)


@pytest.mark.parametrize("events", [1, 3_000, 150_000])
def test_gzip_is_told_by_content_and_its_ratio_by_its_beginning(
    tmp_path: Path, events: int
) -> None:
    data = trace(events)
    path = tmp_path / "named_like_plain.json"
    path.write_bytes(gzip.compress(data, 5))
    assert estimate([path]).json_bytes == pytest.approx(len(data), rel=0.05)


def test_many_members_of_one_file_count_together(tmp_path: Path) -> None:
    parts = [trace(500, seed) for seed in range(5)]
    path = tmp_path / "a.json.gz"
    path.write_bytes(b"".join(gzip.compress(part) for part in parts))
    assert estimate([path]).json_bytes == pytest.approx(sum(map(len, parts)), rel=0.02)


def test_the_small_files_of_a_large_folder_share_the_ratio_of_the_large_ones(
    tmp_path: Path,
) -> None:
    sizes = []
    for number in range(40):
        data = trace(500 + 20 * number, number)
        (tmp_path / f"{number}.json.gz").write_bytes(gzip.compress(data))
        sizes.append(len(data))
    found = estimate(sorted(tmp_path.iterdir()))
    assert found.json_bytes == pytest.approx(sum(sizes), rel=0.05)


@pytest.mark.parametrize("content", [b"", b"\x1f", b"\x1f\x8b", b"\x1f\x8bnot gzip at all" * 99])
def test_a_damaged_file_still_has_an_estimate(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "damaged"
    path.write_bytes(content)
    found = estimate([path])
    assert found.json_bytes <= len(content)
    assert found.seconds_low >= COSTS.start_s


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="absent"):
        estimate([tmp_path / "absent.json"])


def test_costs_can_be_tuned_and_memory_holds_the_largest_files_only(tmp_path: Path) -> None:
    for number, size in enumerate((400, 800, 1200)):
        (tmp_path / f"{number}.json").write_bytes(b"x" * size)
    costs = Costs(
        start_s=1,
        slow_bytes_per_s=BytesPerSecond(100),
        fast_bytes_per_s=BytesPerSecond(200),
        json_bytes_per_event=Bytes(40),
        store_base_bytes=Bytes(7),
        store_bytes_per_event=Bytes(2),
        memory_base_bytes=Bytes(5),
        memory_bytes_per_event=Bytes(3),
        files_at_once=2,
    )
    assert estimate(sorted(tmp_path.iterdir()), costs=costs) == Estimate(
        files=3,
        json_bytes=Bytes(2400),
        seconds_low=13,
        seconds_high=25,
        store_bytes=Bytes(7 + 60 * 2),
        memory_bytes=Bytes(5 + 50 * 3),
    )


@pytest.mark.parametrize(
    ("numbers", "line"),
    [
        (
            (64, 23.2e9, 121, 182, 5.04e9, 0.9e9),
            "64 files, about 23 GB of JSON: 2-3 minutes, 5 GB of disk, under 1 GB of memory",
        ),
        (
            (1, 2_000, 0.1, 0.4, 5.2e6, 0.3e9),
            "1 file, about 1 MB of JSON: 1 second, 5.2 MB of disk, under 1 GB of memory",
        ),
        (
            (4096, 1.23e12, 40_000, 90_000, 351e9, 5e9),
            "4,096 files, about 1.2 TB of JSON: 11-25 hours, 350 GB of disk, under 8 GB of memory",
        ),
        (
            (8, 996e6, 98.6, 101, 99.6e6, 1e9),
            "8 files, about 1 GB of JSON: 2 minutes, 100 MB of disk, under 1 GB of memory",
        ),
    ],
)
def test_the_estimate_is_one_line(
    numbers: tuple[int, float, float, float, float, float], line: str
) -> None:
    files, json_bytes, low, high, store, memory = numbers
    found = Estimate(
        files=files,
        json_bytes=Bytes(int(json_bytes)),
        seconds_low=low,
        seconds_high=high,
        store_bytes=Bytes(int(store)),
        memory_bytes=Bytes(int(memory)),
    )
    assert words(found) == line


def test_nothing_to_read_takes_next_to_nothing() -> None:
    assert words(estimate([])).startswith("0 files, about 1 MB of JSON: 1 second")
