"""The critical path beside HTA's, of the same file in the same process; off by default.

Run with: pytest tests/bench/test_hta_path.py -s
Both begin with what they have read (a frame there, a store here) and build their graph: HTA that of
all steps that it keeps (all but the last), here that of the whole file. Ours is replayed, too.
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest.pipeline import IngestOptions, open_run
from ingest.store import Store
from replay.engine.run import replay
from replay.graph.build import build
from replay.results.critical_path import CriticalPath, critical_path

pytest.importorskip("hta", reason="comes with the extra `hta`")
pytestmark = pytest.mark.filterwarnings("ignore")  # of pandas, about what HTA does

SHARED = Path(__file__).resolve().parents[3] / "shared" / "traces" / "single"
TRACES = ("v100_rank1of2.json.gz", "a100_rank3of8.json.gz")
ROUNDS = 3


def _seconds(task: Callable[[], object]) -> tuple[float, float]:
    """On the wall and of the processor (all threads)."""
    began, used = time.perf_counter(), time.process_time()
    task()
    return time.perf_counter() - began, time.process_time() - used


def _path(store: Store) -> CriticalPath:
    graph = build(store).graph
    return critical_path(graph, replay(graph))


@pytest.mark.parametrize("name", TRACES)
def test_critical_path_beside_that_of_hta(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from hta.trace_analysis import TraceAnalysis

    trace = SHARED / name
    if not trace.exists():
        pytest.skip("no folder shared/ beside the checkout")
    began = time.perf_counter()
    analysis = TraceAnalysis(trace_files={0: str(trace)})
    hta_read_s = time.perf_counter() - began
    symbols = analysis.t.symbol_table.sym_table
    kept = set(analysis.t.get_trace(0)["name"].unique().tolist())
    steps = [name for place, name in enumerate(symbols) if "ProfilerStep" in name and place in kept]

    def hta_path() -> bool:
        last = len(steps) - 1
        _, found = analysis.critical_path_analysis(0, "ProfilerStep", (0, last))
        return bool(found)

    theirs, ours = [], []
    with open_run([trace], options=IngestOptions(cache_dir=tmp_path)) as run:
        assert hta_path()
        assert len(_path(run.store).task)
        for _ in range(ROUNDS):
            theirs.append(_seconds(hta_path))
            ours.append(_seconds(lambda: _path(run.store)))
    began = time.perf_counter()
    with open_run([trace], options=IngestOptions(cache_dir=tmp_path / "new")):
        read_s = time.perf_counter() - began
    (their_wall, their_cpu), (our_wall, our_cpu) = (
        tuple(map(min, zip(*times, strict=True))) for times in (theirs, ours)
    )
    with capsys.disabled():
        print(  # noqa: T201  (a benchmark reports)
            f"\n{name}: HTA {their_wall:.2f} s for {len(steps)} steps "
            f"(reading {hta_read_s:.1f} s), here {our_wall * 1e3:.0f} ms for the file "
            f"(reading {read_s:.2f} s): "
            f"{their_wall / our_wall:.0f}x, {their_cpu / our_cpu:.0f}x by processor time"
        )
