"""Public pairs of runs, where the folder `shared/` lies beside the checkout: causes are named."""

from functools import cache
from pathlib import Path

import pytest

from replay import api
from replay.api import IngestOptions
from whatif.compare.contract import Diff
from whatif.compare.side import Side

TRACES = Path(__file__).resolve().parents[4] / "shared" / "traces"

pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="no folder shared/ beside the checkout")

INFERENCE = "pair_hf_infer_h100_vs_mi300"
FALCON = f"{INFERENCE}/Falconsai_nsfw_image_detection"
QWEN = f"{INFERENCE}/Qwen_Qwen1.5-0.5B-Chat"
VIDEO = f"{INFERENCE}/facebook_timesformer-base-finetuned-k400"
BATCH = "sweep_particle_transformer_a100_batch"
GRADIENTS = "pair_nanogpt_gradsync_h100x8"
PAIRS = (
    (f"{FALCON}.h100.json.gz", f"{FALCON}.mi300.json.gz", "idle/host work"),
    (f"{QWEN}.h100.json.gz", f"{QWEN}.mi300.json.gz", "compute/elementwise"),
    (f"{VIDEO}.h100.json.gz", f"{VIDEO}.mi300.json.gz", "idle/host silent, place known"),
    (f"{BATCH}/bs002.json.gz", f"{BATCH}/bs016.json.gz", "idle/host work"),
    (f"{BATCH}/bs016.json.gz", f"{BATCH}/bs064.json.gz", "compute/elementwise"),
    (f"{BATCH}/bs064.json.gz", f"{BATCH}/bs256.json.gz", "idle/host silent, place known"),
    (
        f"{GRADIENTS}/current_early_rank0.json.gz",
        f"{GRADIENTS}/hook_early_rank0.json.gz",
        "exposed_transfer/reduce_scatter",
    ),
    (
        f"{GRADIENTS}/current_final_rank0.json.gz",
        f"{GRADIENTS}/hook_final_rank0.json.gz",
        "exposed_transfer/reduce_scatter",
    ),
    ("v100x4_torchrec_fp32", "v100x4_torchrec_qcomm", "compute/elementwise"),
    ("single/resnet50_workers0.json.gz", "single/resnet50_workers4.json.gz", "idle/data loader"),
)


@cache
def side(name: str) -> Side:
    return api.side([TRACES / name], options=IngestOptions(cache=False))


def compared(a: str, b: str) -> Diff:
    return api.diff(side(a), side(b))


@pytest.mark.parametrize(("a", "b", "first"), PAIRS)
def test_nearly_all_of_a_difference_has_a_named_cause(a: str, b: str, first: str) -> None:
    found = compared(a, b)
    assert sum(group.change_ns for group in found.groups) == found.change_ns
    assert found.groups[0].key == first
    assert found.explained_frac is not None
    assert found.explained_frac >= 0.95


def test_casts_of_a_quantised_exchange_are_beyond_their_noise() -> None:
    found = compared("v100x4_torchrec_fp32", "v100x4_torchrec_qcomm")
    assert found.is_noise
    assert "+19.27 ms elementwise kernels" in found.sentence
    new = [one for one in found.causes if one.matched_by == "only in B"]
    assert {"aten::copy_", "aten::clamp"} <= {one.op for one in new}


def test_the_same_kernels_on_another_gpu_are_found_by_their_operators() -> None:
    found = compared(f"{QWEN}.h100.json.gz", f"{QWEN}.mi300.json.gz")
    products = [one for one in found.causes if one.op == "aten::mm" and one.part == "compute"]
    assert {one.matched_by for one in products} == {"operator and place, other kernel"}
    # Those into the wide layer and those out of it are different kernels on both.
    assert [(one.count_a, one.count_b) for one in products] == [(48, 48), (48, 48)]


def test_what_a_batch_of_another_size_does_is_the_same_work_in_other_shapes() -> None:
    found = compared(f"{BATCH}/bs016.json.gz", f"{BATCH}/bs064.json.gz")
    norm = next(one for one in found.causes if one.op == "aten::native_layer_norm")
    assert norm.matched_by == "name and place, other shapes"
    assert norm.mean_a_ns is not None
    assert norm.mean_b_ns is not None
    assert 1.9 < norm.mean_b_ns / norm.mean_a_ns < 4
