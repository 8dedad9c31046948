"""64 ranks of 100,000 events read, built, replayed and judged; off by default.

Run with: pytest tests/bench/test_many_ranks.py -s
`TRACE_REPLAY_BENCH_RANKS` and `TRACE_REPLAY_BENCH_EVENTS` (per rank) choose another size. The work
is done in a process of its own, twice: without a store, and with the one there.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.many_ranks import SAMPLE, write

ROOT = Path(__file__).resolve().parents[2]
RANKS = int(os.environ.get("TRACE_REPLAY_BENCH_RANKS", "64"))
EVENTS = int(os.environ.get("TRACE_REPLAY_BENCH_EVENTS", "100000"))


def _measured(folder: Path, traces: list[Path]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.one_replay", folder, *traces],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-600:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_many_ranks_from_files_to_judgement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "traces"
    written.mkdir()
    events = write(written, ranks=RANKS, events_per_rank=EVENTS)
    _measured(tmp_path / "compile", sorted(SAMPLE.glob("*.json.gz")))
    traces = sorted(written.glob("*.json.gz"))
    found = [_measured(tmp_path / "cache", traces) for _ in range(2)]
    assert found[0]["ranks"] == RANKS
    assert found[0]["members_complete"] > 0.9 * found[0]["members"]
    with capsys.disabled():
        print(  # noqa: T201  (a benchmark reports)
            f"\n{RANKS} ranks, {events:,} events, {found[0]['tasks']:,} tasks, "
            f"{found[0]['edges']:,} edges; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        )
        for title, run in zip(("from the files", "store there"), found, strict=True):
            stages = ", ".join(f"{name} {value:.2f}" for name, value in run["seconds"].items())
            rate = run["events"] / run["seconds"]["build"] / 1e6
            print(  # noqa: T201  (the same)
                f"{title}: {sum(run['seconds'].values()):.1f} s ({stages}; build {rate:.2f} M "
                f"events/s), processor {run['processor_s']:.1f} s, "
                f"peak {run['peak_bytes'] / 1e9:.2f} GB"
            )
