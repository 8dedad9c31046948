"""Reading a big trace beside `json.load` and HTA, side by side in one run; off by default.

Run with: pytest tests/bench/test_ingest_speed.py --benchmark-only -s
The trace is a small one grown by `tests.bench.big_trace`: `TRACE_REPLAY_BENCH_TRACE` names it, and
`TRACE_REPLAY_BENCH_MB` the size (700; with 60 all is done in a minute or two). Every line is
measured in a process of its own, the lines in turn, so that a busy machine slows all of them.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tests.bench.big_trace import grow

ROOT = Path(__file__).resolve().parents[2]
SMALL_TRACES = (
    ROOT.parent / "shared" / "traces" / "single" / "xdit_sd35_rank0.json.gz",
    ROOT / "sample_traces" / "ddp8_h100" / "rank0.json.gz",
)
WANTED_BYTES = int(float(os.environ.get("TRACE_REPLAY_BENCH_MB", "700")) * 1e6)
ROUNDS = 2
LIST_BEGINS = b', "traceEvents": [\n'


@dataclass(frozen=True, slots=True)
class Way:
    """A line of the table: what is read, and in which way."""

    title: str
    way: str
    traces: tuple[Path, ...]
    json_bytes: int
    seconds: list[float] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)

    def measure(self, folder: Path) -> None:
        """Once more, in a process of its own."""
        if self.way == "ingest":
            shutil.rmtree(folder, ignore_errors=True)
        found = _measured(self.way, folder, *self.traces)
        self.seconds.append(found["seconds"])
        self.peaks.append(int(found["peak_bytes"]))

    @property
    def best_s(self) -> float:
        """The shortest."""
        return min(self.seconds)

    def line(self, beside: "Way") -> str:
        """Seconds, rate and memory, and rate and memory as a part of those of another way."""
        rate = self.json_bytes / self.best_s
        quicker = rate / (beside.json_bytes / beside.best_s)
        memory = min(self.peaks) / min(beside.peaks)
        return (
            f"{self.title:18} {self.best_s:8.2f} s {rate / 1e6:8.1f} MB/s {quicker:7.2f}x"
            f" {min(self.peaks) / 1e6:8.0f} MB {memory:6.2f}x"
        )


def _measured(way: str, folder: Path, *traces: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.one_reading", way, folder, *traces],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-600:]
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _small_trace() -> Path:
    named = os.environ.get("TRACE_REPLAY_BENCH_TRACE")
    return Path(named) if named else next(path for path in SMALL_TRACES if path.exists())


def _as_rank(grown: Path, target: Path, rank: int) -> Path:
    """The grown trace with another rank in its header."""
    with grown.open("rb") as source, target.open("wb") as out:
        header = json.loads(source.readline().removesuffix(LIST_BEGINS) + b"}")
        header["distributedInfo"] = header.get("distributedInfo", {}) | {
            "rank": rank,
            "world_size": 2,
        }
        out.write(json.dumps(header).encode()[:-1] + LIST_BEGINS)
        shutil.copyfileobj(source, out, 1 << 24)
    return target


def test_reading_beside_a_json_load(
    tmp_path: Path, benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    small = _small_trace()
    plain = tmp_path / "grown.json"
    events = grow(small, plain, at_least_bytes=WANTED_BYTES)
    packed = plain.with_name("packed.json.gz")
    with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as out:
        shutil.copyfileobj(source, out, 1 << 24)
    ranks = tuple(_as_rank(plain, tmp_path / f"rank{rank}.json", rank) for rank in range(2))
    size = plain.stat().st_size
    load = Way("json.load", "json.load", (plain,), size)
    one = Way("ingest, plain", "ingest", (plain,), size)
    kept = Way("  store there", "reopen", (plain,), size)
    gz = Way("ingest, gzip", "ingest", (packed,), size)
    two = Way("ingest, 2 ranks", "ingest", ranks, 2 * size)
    _measured("ingest", tmp_path / "compiles", SMALL_TRACES[-1])
    for _ in range(ROUNDS):
        for way in (load, one, kept, gz, two):
            way.measure(tmp_path / "cache" / way.traces[0].stem)
    stored = sum(path.stat().st_size for path in (tmp_path / "cache" / plain.stem).glob("*.duckdb"))
    ways = [load, one, kept, gz, two]
    if find_spec("hta"):
        ways.append(Way("HTA's parser", "hta", (plain,), size))
        ways[-1].measure(tmp_path)
    benchmark.pedantic(lambda: kept.measure(tmp_path / "cache" / plain.stem), rounds=ROUNDS)
    with capsys.disabled():
        print(  # noqa: T201  (a benchmark reports)
            f"\n{small.name} grown to {size / 1e6:.0f} MB, {events:,} events; a store of "
            f"{stored / 1e6:.0f} MB; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n"
            f"{'best of ' + str(ROUNDS):18} {'':10} {'of JSON':>13} {'json.load':>8} {'peak':>11}"
        )
        for way in ways:
            print(way.line(load))  # noqa: T201  (the same)
        print(f"2 ranks take {two.best_s / one.best_s:.2f}x the time of 1")  # noqa: T201  (the same)
        if ways[-1].way == "hta":
            slower, more = ways[-1].best_s / one.best_s, ways[-1].peaks[0] / min(one.peaks)
            print(f"HTA's parser takes {slower:.1f}x the time, {more:.1f}x the memory")  # noqa: T201  (the same)
