"""Times of the whole command beside a plain JSON load of the same file; off by default.

Run with: pytest tests/bench --benchmark-only -s
The trace is the synthetic sample repeated in time until it holds 50 MB.
"""

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "ddp8_h100" / "rank0.json.gz"
WANTED_BYTES = 50_000_000


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample, shifted in time and renumbered as often as 50 MB ask for."""
    content = json.loads(gzip.decompress(SAMPLE.read_bytes()))
    events = content["traceEvents"]
    timed = [event for event in events if "ts" in event]
    span = max(e["ts"] + e.get("dur", 0) for e in timed) - min(e["ts"] for e in timed) + 1000
    repeats = WANTED_BYTES // len(json.dumps(events)) + 1
    content["traceEvents"] = [
        _shifted(event, number, span) for number in range(repeats) for event in events
    ]
    path = tmp_path_factory.mktemp("bench") / "rank0.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def _shifted(event: dict[str, Any], number: int, span: float) -> dict[str, Any]:
    moved = dict(event)
    if "ts" in moved:
        moved["ts"] = round(moved["ts"] + number * span, 3)
    args = moved.get("args")
    if isinstance(args, dict) and "correlation" in args:
        moved["args"] = {**args, "correlation": args["correlation"] + number * 1_000_000}
    if isinstance(moved.get("id"), int):
        moved["id"] += number * 1_000_000
    name = moved.get("name")
    if isinstance(name, str) and name.startswith("ProfilerStep#"):
        moved["name"] = f"ProfilerStep#{int(name[13:]) + number * 100}"
    return moved


def _seconds(*command: str) -> float:
    began = time.perf_counter()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    elapsed = time.perf_counter() - began
    assert done.returncode == 0, done.stderr[-600:]
    return elapsed


def test_cold_and_warm_runs_beside_a_json_load(
    trace: Path, tmp_path: Path, benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cold = no store yet; warm = the store is there; both include starting Python."""
    run = (sys.executable, "-m", "replay", str(trace), "--nvlink", "x2")
    _seconds(*run, "--cache-dir", str(tmp_path / "compile"))
    cold = _seconds(*run, "--cache-dir", str(tmp_path / "cache"))
    load = _seconds(sys.executable, "-c", f"import json; json.load(open({str(trace)!r}))")
    warm = benchmark.pedantic(
        lambda: _seconds(*run, "--cache-dir", str(tmp_path / "cache")), rounds=5
    )
    with capsys.disabled():
        print(  # noqa: T201  (a benchmark reports)
            f"\n{trace.stat().st_size / 1e6:.0f} MB: json.load {load:.2f} s, "
            f"cold {cold:.2f} s ({cold / load:.1f}x), warm {warm:.2f} s ({warm / load:.1f}x)"
        )


def test_help_beside_an_empty_python(
    benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """The start of the program, which every command pays."""
    empty = min(_seconds(sys.executable, "-c", "pass") for _ in range(5))
    help_ = benchmark.pedantic(lambda: _seconds(sys.executable, "-m", "replay", "--help"), rounds=5)
    with capsys.disabled():
        print(f"\nempty Python {empty:.3f} s, replay --help {help_:.3f} s")  # noqa: T201  (a benchmark reports)
