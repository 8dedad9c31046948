"""Layers, micro-batches and sizes of real runs whose model is known.

torchtitan names its layers, Megatron's 40 and DeepSeek's 61 are published, ResNet-18 has eight
blocks; the runs on CPU were written for this (6 layers of 384, paced: 8 sleeps).
"""

from pathlib import Path

import numpy as np
import pytest

from ingest.pipeline import IngestOptions, open_run
from ingest.vocab import TaskKind
from replay.calls.replayed import graph_of
from replay.calls.window import WHOLE
from replay.graph.arrays import TaskGraph
from whatif.description.label import Labelled, label
from whatif.models.places import Part, Place
from whatif.parallelism import layout_of

HERE = Path(__file__).resolve()
SHARED = HERE.parents[3] / "shared"
TRACES, TRUTH = SHARED / "traces", SHARED / "groundtruth"
SAMPLES = HERE.parents[2] / "sample_traces"
MOST_UNKNOWN = 0.08
"""Of the time of a run: on the host wrappers and views have no place."""

RUNS = {
    TRACES / "h100x4_torchtitan_fsdp_A/rank0.json.gz": (6, 1, 256),
    TRACES / "a100x8_megatron_tp8/rank0.json.gz": (40, 1, 4096),
    TRACES / "h200x8_lightllm_decode_static/rank0.json.gz": (61, 1, None),
    TRACES / "h100x8_nanogpt_12-11/rank0.json.gz": (10, 1, 768),
    TRACES / "pair_hf_infer_h100_vs_mi300/Qwen_Qwen1.5-0.5B-Chat.h100.json.gz": (24, 1, 1024),
    TRACES / "single/sglang_qwen3_prefilldecode.json.gz": (36, 1, 4096),
    TRACES / "single/b200_vllm_eager.json.gz": (36, 1, 2880),
    TRUTH / "ddp/1g/rank0.json.gz": (6, 1, 384),
    TRUTH / "fsdp/1g/rank0.json.gz": (6, 1, 384),
    TRUTH / "tp/1g/rank0.json.gz": (6, 1, 384),
    TRUTH / "paced2/1g/rank0.json.gz": (8, 1, None),
    SAMPLES / "ddp8_h100/rank0.json.gz": (6, 1, 2048),
}
"""File -> layers (of nanogpt those with attention), micro-batches of a step, width."""


def labelled(*paths: Path) -> tuple[TaskGraph, Labelled]:
    if not paths[0].exists():
        pytest.skip("no folder shared/ beside the checkout")
    with open_run(list(paths), options=IngestOptions(cache=False)) as run:
        graph, _ = graph_of(run, WHOLE)
    return graph, label(graph, layout_of(graph))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: f"{path.parent.name}/{path.name[:12]}")
def test_layers_micro_batches_and_width_of_a_known_model(path: Path) -> None:
    graph, found = labelled(path)
    layers, micro_batches, hidden = RUNS[path]
    assert found.model.layers == layers
    assert found.model.hidden == hidden
    assert set(found.micro_batches.values()) == {micro_batches}
    tasks, labels = graph.tasks, found.labels
    work = (tasks.kind == TaskKind.KERNEL) & (tasks.step >= 0)
    if not work.any():
        work = (tasks.kind == TaskKind.HOST_WORK) & (tasks.step >= 0)
    if "paced" not in str(path):  # its layers sleep: nothing says what they would do
        unknown = tasks.dur_ns[work & (labels.place == Place.UNKNOWN)].sum()
        assert unknown <= MOST_UNKNOWN * tasks.dur_ns[work].sum()
    assert not (work & ~tasks.fixed & (labels.part == Part.OTHER)).any()


@pytest.mark.parametrize("name", ["pp", "pp-gpipe"])
def test_stages_on_cpu_have_three_layers_and_four_micro_batches(name: str) -> None:
    _, found = labelled(*(TRUTH / name / "1g" / f"rank{rank}.json.gz" for rank in (0, 1)))
    assert found.micro_batches == {0: 4, 1: 4}
    assert found.rank_layers == {0: (0, 1, 2), 1: (0, 1, 2)}
    assert found.doubts == ()


def test_sizes_of_the_transformer_on_cpu() -> None:
    _, found = labelled(TRUTH / "ddp/1g-batch4/rank0.json.gz")
    model = found.model
    assert (model.heads, model.head_dim, model.ffn, model.vocab) == (6, 64, 1536, 4096)
    assert (found.samples, found.sequence) == (4, 128)


def test_divided_sizes_are_put_together_again() -> None:
    """Tensor parallel 8: a rank has 8 of 64 heads and an eighth of the inner width."""
    _, found = labelled(TRACES / "a100x8_megatron_tp8/rank0.json.gz")
    model = found.model
    assert (model.heads, model.head_dim, model.ffn, model.vocab) == (64, 64, 16_384, 51_200)


def test_labels_follow_the_host_in_one_go() -> None:
    graph, found = labelled(TRACES / "h100x4_torchtitan_fsdp_A/rank0.json.gz")
    tasks, labels = graph.tasks, found.labels
    host = np.flatnonzero((tasks.kind <= TaskKind.HOST_WAIT) & (tasks.step >= 0) & ~tasks.fixed)
    host = host[np.argsort(tasks.ts_ns[host], kind="stable")]
    columns = (labels.part, labels.direction, labels.layer, labels.micro_batch)
    key = np.stack([column[host] for column in columns])
    runs = 1 + int((np.diff(key, axis=1) != 0).any(axis=0).sum())
    assert runs == np.unique(key, axis=1).shape[1]
