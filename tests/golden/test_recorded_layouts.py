"""The layout of every real trace set is recovered; the sets lie in `shared/` beside the checkout.

`MANIFEST.tsv` says which layout each set has (column `layout`); where it says `by all signs`, or
nothing but a rank, the evidence of the finding is what the answer rests on.
"""

import csv
from pathlib import Path

import pytest

from ingest.pipeline import IngestOptions
from replay.api import describe
from whatif.description.described import Described, Kind
from whatif.models.shape import Degrees, Schedule

SHARED = Path(__file__).resolve().parents[3] / "shared"
TRACES, TRUTH = SHARED / "traces", SHARED / "groundtruth"
pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="no folder shared/ beside the checkout")

SETS = {
    "h100x8_nanogpt_12-11": Degrees(dp=8, zero=1),
    "h100x4_torchtitan_fsdp_A": Degrees(dp=4, zero=3),
    "a100x8_megatron_tp8": Degrees(tp=8),
    "v100x8_dlrm": Degrees(dp=8, ep=8),
    "v100x4_torchrec_fp32": Degrees(dp=4, ep=4),
    "v100x4_torchrec_qcomm": Degrees(dp=4, ep=4),
    "h200x8_lightllm_decode_static": Degrees(tp=8),
}
"""Sets with all ranks."""
FILES = {
    "pair_nanogpt_gradsync_h100x8": Degrees(dp=8, zero=1),
    "b200_vllm_eager": Degrees(tp=8),
    "mi300_resnet_ddp": Degrees(dp=8),
    "a100_nccl_metadata_rank0": Degrees(dp=2),
    "a100_graphs_rank0": Degrees(dp=16, ep=16),
    "a100_rank3of8": Degrees(dp=8, ep=8),
    "v100_rank1of2": Degrees(dp=2),
    "cpu_only_rank34of300": Degrees(dp=300),
}
"""Sets of one rank of several."""
NOT_TOLD = {
    "hta_meta_128gpu_sampled": "2 of 128 ranks, sampled: only the replicas can be told",
    "mi300_resnet18_ddp": "no rank and no world size recorded, no collective in the steps",
}


def _first_files() -> dict[str, tuple[str, str, str]]:
    """File, world size and layout of each set (of single files, of each file)."""
    found: dict[str, tuple[str, str, str]] = {}
    with (TRACES / "MANIFEST.tsv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            found.setdefault(row["set"], (row["file"], row["world_size"], row["layout"]))
    return found


def _described(*paths: Path | str) -> Described:
    found = describe([str(path) for path in paths], options=IngestOptions(cache=False))
    return found.described


@pytest.mark.parametrize("name", [*SETS, *FILES])
def test_the_layout_of_a_set_is_recovered(name: str) -> None:
    file = _first_files()[name][0] if name in FILES else name
    described = _described(TRACES / file)
    expected = SETS.get(name) or FILES[name]
    assert described.shape.degrees == expected
    for degree in ("tp", "dp", "zero", "ep"):
        if getattr(expected, degree) > 1:
            (why,) = [one for one in described.findings if one.what == f"degrees.{degree}"]
            assert why.evidence


def test_every_set_with_several_ranks_is_expected_above_or_said_not_to_be_told() -> None:
    several = {
        name
        for name, (_, world, layout) in _first_files().items()
        if world not in ("", "1") or layout == "dp"
    }
    assert several == {*SETS, *FILES, *NOT_TOLD}


def test_by_all_signs_is_argued_inference_has_only_activations_to_reduce() -> None:
    described = _described(TRACES / "h200x8_lightllm_decode_static")
    assert described.kind is Kind.INFERENCE
    (why,) = [one for one in described.findings if one.what == "degrees.tp"]
    assert "nothing but activations is there to reduce without backward" in why.evidence


@pytest.mark.parametrize(
    ("run", "degrees", "schedule", "micro_batches"),
    [
        ("ddp/1g", Degrees(dp=2), Schedule.NONE, 1),
        ("ddp/one-rank", Degrees(), Schedule.NONE, 1),
        ("ddp/nosync", Degrees(dp=2), Schedule.NONE, 1),
        ("fsdp/1g", Degrees(dp=2, zero=3), Schedule.NONE, 1),
        ("tp/1g", Degrees(tp=2), Schedule.NONE, 1),
        ("pp/1g", Degrees(pp=2), Schedule.ONE_F_ONE_B, 4),
        ("pp-gpipe/1g", Degrees(pp=2), Schedule.GPIPE, 4),
        ("paced1/one-rank", Degrees(), Schedule.NONE, 1),
        ("paced2/1g", Degrees(dp=2), Schedule.NONE, 1),
        ("paced4/1g", Degrees(dp=4), Schedule.NONE, 1),
    ],
)
def test_the_layout_of_a_measured_run_is_recovered(
    run: str, degrees: Degrees, schedule: Schedule, micro_batches: int
) -> None:
    described = _described(*sorted((TRUTH / run).glob("rank?.json.gz")))
    assert described.kind is Kind.TRAINING
    assert described.shape.degrees == degrees
    assert described.shape.options.schedule is schedule
    assert described.shape.batch.micro_batches == micro_batches
