"""A thousand scenarios over a graph of a million tasks, in seconds and memory; off by default.

Run with: pytest tests/bench/test_sweep_speed.py -s
Each is run in a process of its own, so that its peak memory is its own.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.vocab import KernelClass, LaneKind, TaskKind
from replay.graph.arrays import NEVER_RELEASED_NS, Boundaries, Lane, RankInfo, TaskGraph
from tests.bench.one_reading import peak_bytes
from tests.bench.synthetic_graph import RANKS, synthetic_graph
from tests.builders import baseline_of
from whatif.many import Ranges
from whatif.sweep import grid, sweep
from whatif.transforms.host_scale import HostScale
from whatif.transforms.scale import Scale

ROOT = Path(__file__).resolve().parents[2]
TASKS = 1_000_000
SIDES = (10, 10, 10)
"""Values on the axes: two classes of kernels and the host."""
LIMIT_S = 60.0
LIMIT_BYTES = 3 << 30


def job(n_tasks: int) -> TaskGraph:
    """The synthetic graph as one step of eight ranks, with two classes of kernels."""
    graph = synthetic_graph(n_tasks)
    per_lane = graph.n_tasks // (2 * RANKS)
    lanes = np.arange(2 * RANKS, dtype=np.int32)
    task = np.arange(graph.n_tasks)
    kinds = np.array([TaskKind.HOST_CALL, TaskKind.KERNEL], np.int8)
    classes = np.array([KernelClass.GEMM, KernelClass.ELEMENTWISE], np.int8)
    tasks = replace(
        graph.tasks,
        kind=np.tile(np.repeat(kinds, per_lane), RANKS),
        rank=np.repeat(lanes // 2, per_lane),
        lane=np.repeat(lanes, per_lane),
        step=np.zeros(graph.n_tasks, np.int32),
        kernel_class=classes[task % 3 % 2],
    )
    return replace(
        graph,
        tasks=tasks,
        boundaries=Boundaries(
            n_steps=1,
            ranks=tuple(range(RANKS)),
            start=np.repeat(np.arange(RANKS + 1), 2)[:-1].astype(np.int64),
            task=(2 * per_lane * np.arange(1, RANKS + 1) - 1).astype(np.int32),
            floor_ns=np.tile(np.array([0, NEVER_RELEASED_NS]), RANKS),
        ),
        lanes=tuple(
            Lane(kind=kind, rank=rank, device=rank, stream=7, role=kind.name, steps=False)
            for rank in range(RANKS)
            for kind in (LaneKind.THREAD, LaneKind.STREAM)
        ),
        ranks=tuple(
            RankInfo(rank=rank, gpu=None, devices_seen=RANKS, host=None) for rank in range(RANKS)
        ),
    )


def main(ranges: str) -> None:
    """Sweep, then print one line of JSON."""
    graph = job(TASKS)
    baseline = baseline_of(graph)
    before_bytes = peak_bytes()
    gemm, elementwise, host = (np.linspace(0.2, 1.0, side).tolist() for side in SIDES)
    points = grid(
        {
            "gemm": [Scale(where="class:gemm", factor=factor) for factor in gemm],
            "elementwise": [
                Scale(where="class:elementwise", factor=factor) for factor in elementwise
            ],
            "host": [HostScale(factor=1 / factor) for factor in host],
        }
    )
    began = time.perf_counter()
    found = sweep(lambda _: (graph, baseline), points, ranges=Ranges(ranges))
    steps = {answer.step_ns for answer in found.answers if not isinstance(answer, Exception)}
    answer = {
        "tasks": graph.n_tasks,
        "points": len(points),
        "different_steps": len(steps),
        "seconds": time.perf_counter() - began,
        "before_bytes": before_bytes,
        "peak_bytes": peak_bytes(),
        "load": os.getloadavg()[0],
    }
    print(json.dumps(answer))  # noqa: T201  (its answer)


@pytest.mark.parametrize("ranges", ["steps", "full"])
def test_a_thousand_scenarios_over_a_million_tasks(
    ranges: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.test_sweep_speed", ranges],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-600:]
    found = json.loads(done.stdout)
    with capsys.disabled():
        print(  # noqa: T201  (a benchmark reports)
            f"\n{found['points']:,} scenarios x {found['tasks']:,} tasks, range {ranges}: "
            f"{found['seconds']:.1f} s, {found['different_steps']} different steps, peak "
            f"{found['peak_bytes'] / 1e9:.2f} GB (of it {found['before_bytes'] / 1e9:.2f} before), "
            f"load {found['load']:.1f}"
        )
    assert found["different_steps"] > found["points"] / 2
    assert found["peak_bytes"] < LIMIT_BYTES
    if ranges == "steps":
        assert found["seconds"] < LIMIT_S


if __name__ == "__main__":
    main(*sys.argv[1:])
