"""Speed of the replay alone, of one graph and of many at once; off by default.

Run with: pytest tests/bench/test_engine_speed.py -s
The growth table goes up to 10^8 tasks where 20 GB of memory are free, else to 10^7.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.pipeline import IngestOptions, open_run
from replay.engine.batch import replay_batch
from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from replay.graph.build import build

ROOT = Path(__file__).resolve().parents[2]
RUNS = (
    ROOT.parent / "shared" / "traces" / "h100x8_nanogpt_12-11",
    ROOT / "sample_traces" / "ddp8_h100",
)
SCENARIOS = 64
ROUNDS = 15
BIGGEST_BYTES = 20 << 30
SIZES = (10**5, 10**6, 10**7, 10**8)


def _best_s(task: Callable[[], object], rounds: int = ROUNDS) -> float:
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        task()
        found.append(time.perf_counter() - began)
    return min(found)


def _scaled(graph: TaskGraph, percent: int) -> TaskGraph:
    dur_ns = graph.tasks.dur_ns * percent // 100
    return replace(graph, tasks=replace(graph.tasks, dur_ns=dur_ns))


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> TaskGraph:
    """The biggest real run at hand, else the sample."""
    paths = sorted(next(run for run in RUNS if run.exists()).glob("*.json.gz"))
    options = IngestOptions(cache_dir=tmp_path_factory.mktemp("cache"))
    with open_run(paths, options=options) as run:
        return build(run.store).graph


def test_one_replay_and_many_at_once(graph: TaskGraph, capsys: pytest.CaptureFixture[str]) -> None:
    """In turn, so that a busy machine slows both; answers are the ends at the step boundaries."""
    closing = graph.boundaries.task
    variants = [_scaled(graph, 60 + percent) for percent in range(SCENARIOS)]

    def each() -> np.ndarray:
        return np.array([replay(variant).end_ns[closing] for variant in variants])

    assert (replay_batch(variants, closing) == each()).all()
    one_s, singles, batches = float("inf"), [], []
    for _ in range(ROUNDS):
        one_s = min(one_s, _best_s(lambda: replay(graph)))
        singles.append(_best_s(each, 1))
        batches.append(_best_s(lambda: replay_batch(variants, closing), 1))
    edges = len(graph.edges.src)
    faster, usual = min(singles) / min(batches), np.median(np.divide(singles, batches))
    with capsys.disabled():
        print(  # noqa: T201  (a benchmark reports)
            f"\n{graph.n_tasks:,} tasks, {edges:,} edges: {one_s * 1e3:.2f} ms, "
            f"{graph.n_tasks / one_s / 1e6:.0f} M tasks/s, {edges / one_s / 1e6:.0f} M edges/s\n"
            f"{SCENARIOS} scenarios: one by one {min(singles) * 1e3:.1f} ms, "
            f"as a batch {min(batches) * 1e3:.1f} ms: {faster:.1f}x (median of the rounds "
            f"{usual:.1f}x); load {os.getloadavg()[0]:.1f}"
        )


def test_growth_with_the_number_of_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    lines = []
    for size in SIZES:
        if size == SIZES[-1] and _free_bytes() < BIGGEST_BYTES:
            lines.append(f"{size:>11,} left out: needs {BIGGEST_BYTES >> 30} GiB of free memory")
            continue
        done = subprocess.run(
            [sys.executable, "-m", "tests.bench.synthetic_graph", str(size)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-600:]
        found = json.loads(done.stdout)
        lines.append(
            f"{found['tasks']:>11,} {found['edges']:>13,} {found['replay_s'] * 1e3:>11.1f} ms"
            f" {found['tasks'] / found['replay_s'] / 1e6:>8.0f} M/s"
            f" {found['order_s'] * 1e3:>11.1f} ms {found['peak_bytes'] / 1e9:>8.2f} GB"
        )
    with capsys.disabled():
        head = (
            f"{'tasks':>11} {'edges':>13} {'replay':>14} {'tasks':>12} {'order':>14} {'peak':>11}"
        )
        print("\n" + "\n".join([head, *lines]))  # noqa: T201  (a benchmark reports)


def _free_bytes() -> int:
    status = Path("/proc/meminfo").read_text(encoding="ascii")
    return int(status.split("MemAvailable:")[1].split()[0]) * 1024
