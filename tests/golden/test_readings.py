"""How traces read whose slow rank, cause or bound is known."""

from functools import cache
from pathlib import Path

import pytest

from ingest.pipeline import IngestOptions
from replay import api
from replay.results.bound import BoundBy
from replay.results.causes import Cause
from whatif.report.findings import Findings

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_traces"
SHARED = ROOT.parent / "shared"
TRACES = SHARED / "traces"
SLOW_RANKS = {
    "cases/B121-waiting-is-not-transfer": (1, Cause.COMPUTE),
    "traces/v100x4_torchrec_fp32": (2, Cause.HOST),
    "traces/v100x4_torchrec_qcomm": (2, Cause.HOST),
    "traces/h100x4_torchtitan_fsdp_A": (2, Cause.HOST),
}
"""As the manifest and the cases tell them."""
BOUND = {
    "a100x8_megatron_tp8": BoundBy.HOST,
    "h100x8_nanogpt_12-11": BoundBy.HOST,
    "single/resnet50_workers0.json.gz": BoundBy.INPUT,
    "single/resnet50_workers4.json.gz": BoundBy.HOST,
    "pair_nanogpt_gradsync_h100x8/current_final_rank0.json.gz": BoundBy.DEVICE,
    "pair_nanogpt_gradsync_h100x8/hook_final_rank0.json.gz": BoundBy.DEVICE,
}
WITHOUT_CACHE = IngestOptions(cache=False)

with_shared = pytest.mark.skipif(not TRACES.is_dir(), reason="shared/ is not beside the checkout")


@cache
def _read(path: Path) -> Findings:
    return api.examine([path], options=WITHOUT_CACHE, with_levers=False)


def test_the_slow_rank_of_the_sample_is_late_by_compute() -> None:
    findings = _read(SAMPLES / "ddp8_h100")
    worst = findings.run.late.worst
    assert worst is not None
    assert worst.rank == 3
    assert next(iter(worst.causes)) is Cause.COMPUTE
    assert worst.causes[Cause.COMPUTE] > 0.95 * sum(worst.causes.values())
    assert findings.run.bound.by is BoundBy.DEVICE
    assert findings.run.bound.ahead_steps == pytest.approx(1.06, abs=0.01)


@with_shared
@pytest.mark.parametrize("name", SLOW_RANKS)
def test_the_rank_known_to_be_slow_is_named_with_its_cause(name: str) -> None:
    worst = _read(SHARED / name).run.late.worst
    assert worst is not None
    assert (worst.rank, next(iter(worst.causes))) == SLOW_RANKS[name]


@with_shared
@pytest.mark.parametrize("name", BOUND)
def test_a_run_is_bound_by_what_its_manifest_says(name: str) -> None:
    assert _read(TRACES / name).run.bound.by is BOUND[name]


@with_shared
def test_the_long_step_of_torchrec_is_one_of_cuda_free() -> None:
    """`cudaFree` of rank 2: 25 calls and 158 ms in step 4, none in the others."""
    (long,) = _read(TRACES / "v100x4_torchrec_fp32").run.long_steps
    assert long.step == 4
    first = long.grown[0]
    assert (first.name, first.rank, first.usual_ns) == ("cudaFree", 2, 0)
    assert first.spent_ns == pytest.approx(158.2e6, rel=0.001)


@pytest.mark.parametrize("name", ["ddp8_h100", "gloo2_cpu", "tiny/clock_skew"])
def test_ranks_are_late_as_often_as_sql_says(name: str) -> None:
    _same_as_sql(SAMPLES / name)


@with_shared
@pytest.mark.parametrize(
    "name", ["traces/h100x8_nanogpt_12-11", "traces/v100x4_torchrec_fp32", "traces/v100x8_dlrm"]
)
def test_ranks_of_real_runs_are_late_as_often_as_sql_says(name: str) -> None:
    _same_as_sql(SHARED / name)


def _same_as_sql(path: Path) -> None:
    findings = _read(path)
    with api.open_run(path, options=WITHOUT_CACHE) as run:
        by_time = {row["rank"]: row for row in run.query("late_ranks").iter_rows(named=True)}
        resolved = {row["rank"]: row for row in run.sql("FROM straggler").iter_rows(named=True)}
    assert len(findings.run.late.ranks) == len(by_time) == len(resolved)
    for late in findings.run.late.ranks:
        query, view = by_time[late.rank], resolved[late.rank]
        assert (late.meetings, late.times_last) == (query["collectives"], query["times_last"])
        assert (late.times_resolved, late.caused_wait_ns) == (
            view["times_last"],
            view["caused_wait_dur"],
        )
        assert late.own_wait_ns == view["own_wait_dur"]
