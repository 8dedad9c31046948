"""Time until HTA can be asked: its own parser beside the bridge, in one run; off by default.

Run with: pytest tests/bench/test_hta_load.py --benchmark-only -s
The first number of the bridge reads the files and makes the store, the second finds it there.
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ingest.pipeline import IngestOptions
from replay.bridge.hta import trace_analysis

pytest.importorskip("hta", reason="comes with the extra `hta`")
pytestmark = pytest.mark.filterwarnings("ignore")  # of pandas, about what HTA does

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "traces"
RUNS = {
    "sample ddp8_h100": ROOT / "sample_traces" / "ddp8_h100",
    "h100x4_torchtitan_fsdp_A": SHARED / "h100x4_torchtitan_fsdp_A",
    "v100x4_torchrec_fp32": SHARED / "v100x4_torchrec_fp32",
    "a100_nccl_metadata_rank0": SHARED / "single" / "a100_nccl_metadata_rank0.json.gz",
    "mi300_resnet_ddp": SHARED / "single" / "mi300_resnet_ddp.json.gz",
    "mtia_rank0": SHARED / "single" / "mtia_rank0.json.gz",
}
ROUNDS = 3


def _seconds(task: Callable[[], object]) -> float:
    began = time.perf_counter()
    task()
    return time.perf_counter() - began


def _own_parser(paths: list[Path]) -> None:
    """One process, as the bridge; HTA's default of one process per rank needs as many cores."""
    from hta.common.trace import Trace

    trace = Trace({rank: str(path) for rank, path in enumerate(paths)})
    trace.load_traces(use_multiprocessing=False)


@pytest.mark.parametrize("run", RUNS)
def test_load_beside_its_own_parser(
    run: str, tmp_path: Path, benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    place = RUNS[run]
    if not place.exists():
        pytest.skip("no folder shared/ beside the checkout")
    paths = sorted(place.glob("*.json.gz")) if place.is_dir() else [place]
    trace_analysis(paths, options=IngestOptions(cache_dir=tmp_path / "compile"))
    own, cold = [], []
    for number in range(ROUNDS):
        own.append(_seconds(lambda: _own_parser(paths)))
        options = IngestOptions(cache_dir=tmp_path / str(number))
        cold.append(_seconds(lambda: trace_analysis(paths, options=options)))  # noqa: B023  (called at once)
    benchmark.pedantic(lambda: trace_analysis(paths, options=options), rounds=ROUNDS)
    kept = benchmark.stats.stats.min
    with capsys.disabled():
        print(  # noqa: T201  (a benchmark reports)
            f"\n{run}: HTA's parser {min(own):.2f} s, bridge {min(cold):.2f} s "
            f"({min(own) / min(cold):.1f}x), store there {kept:.2f} s ({min(own) / kept:.1f}x)"
        )
