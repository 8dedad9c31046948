"""Made runs are understood completely: every kernel has a place, sizes come back exactly."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from ingest.pipeline import IngestOptions, open_run
from ingest.vocab import TaskKind
from replay.calls.replayed import graph_of
from replay.calls.window import WHOLE
from replay.graph.arrays import TaskGraph
from replay.graph.scopes import NO_SCOPES
from whatif.description.degrees import degrees_of
from whatif.description.described import Kind
from whatif.description.label import Labelled, label
from whatif.models.places import Part, Pass, Place
from whatif.models.shape import Batch, Degrees, ModelShape, Options, Recompute, Schedule
from whatif.parallelism import layout_of
from whatif.synth.document import MachineSaid, Wanted
from whatif.synth.make import make

LLAMA = ModelShape(
    layers=4, hidden=2048, heads=16, kv_heads=4, head_dim=128, ffn=5632, gated=True, vocab=32_000
)
GPT = ModelShape(layers=6, hidden=1024, heads=8, head_dim=128, ffn=4096, vocab=50_304)
LATENT = ModelShape(
    layers=3,
    hidden=2048,
    heads=16,
    head_dim=128,
    ffn=10_944,
    gated=True,
    vocab=102_400,
    experts=64,
    top_k=6,
    expert_ffn=1408,
    shared_experts=2,
    dense_layers=1,
    kv_lora=512,
    rope_head_dim=64,
    v_head_dim=128,
)
ROUTED = ModelShape(
    layers=2,
    hidden=1024,
    heads=8,
    head_dim=128,
    gated=True,
    vocab=32_000,
    experts=8,
    top_k=2,
    expert_ffn=3584,
)
ONE_F = Options(schedule=Schedule.ONE_F_ONE_B)
RUNS = {
    "gpt": (GPT, Degrees(dp=2), Options()),
    "shards": (LLAMA, Degrees(dp=4, zero=3), Options()),
    "tensor": (LLAMA, Degrees(tp=4, dp=2), Options()),
    "sequence": (LLAMA, Degrees(tp=4, sp=True), Options()),
    "again": (LLAMA, Degrees(tp=2), Options(recompute=Recompute.FULL)),
    "stages": (LLAMA, Degrees(pp=2, tp=2), ONE_F),
    "one layer a stage": (LLAMA, Degrees(pp=4), ONE_F),
    "chunks": (
        LLAMA,
        Degrees(pp=2, virtual_stages=2),
        Options(schedule=Schedule.INTERLEAVED),
    ),
    "halves": (LLAMA, Degrees(pp=2), Options(schedule=Schedule.ZERO_BUBBLE)),
    "experts beside tensors": (ROUTED, Degrees(tp=2, ep=4, dp=4), Options()),
    "experts": (LATENT, Degrees(ep=4, dp=4), Options()),
}
MICRO_BATCHES = 4


def labelled(folder: Path, name: str, *, batch: Batch | None = None) -> tuple[TaskGraph, Labelled]:
    model, degrees, options = RUNS[name]
    batch = batch or Batch(samples=1, sequence=2048, micro_batches=MICRO_BATCHES)
    machine = MachineSaid(gpu="H100", net_gb_per_s=50)
    make(
        Wanted(model=model, machine=machine, degrees=degrees, batch=batch, options=options), folder
    )
    with open_run([folder], options=IngestOptions(cache=False)) as run:
        graph, _ = graph_of(run, WHOLE)
    return graph, label(graph, layout_of(graph))


@pytest.mark.parametrize("name", RUNS)
def test_a_made_run_is_understood_completely(name: str, tmp_path: Path) -> None:
    graph, found = labelled(tmp_path, name)
    model, degrees, _ = RUNS[name]
    assert found.model == model
    assert set(found.micro_batches.values()) == {MICRO_BATCHES}
    assert found.doubts == ()
    kernels = (graph.tasks.kind == TaskKind.KERNEL) & (graph.tasks.step >= 0)
    assert not (kernels & (found.labels.place == Place.UNKNOWN)).any()
    assert not (kernels & (found.labels.part == Part.OTHER)).any()
    own = (model.layers or 0) // degrees.pp
    assert all(layers == tuple(range(own)) for layers in found.rank_layers.values())


@pytest.mark.parametrize("name", RUNS)
def test_the_host_does_each_part_in_one_go(name: str, tmp_path: Path) -> None:
    graph, found = labelled(tmp_path, name)
    tasks, labels = graph.tasks, found.labels
    host = np.flatnonzero((tasks.kind <= TaskKind.HOST_WAIT) & (tasks.step >= 0) & ~tasks.fixed)
    for info in graph.ranks:
        mine = host[tasks.rank[host] == info.rank]
        mine = mine[np.argsort(tasks.ts_ns[mine], kind="stable")]
        columns = (labels.part, labels.direction, labels.layer, labels.micro_batch)
        key = np.stack([tasks.step[mine], *(column[mine] for column in columns)])
        runs = 1 + int((np.diff(key, axis=1) != 0).any(axis=0).sum())
        assert runs == np.unique(key, axis=1).shape[1]


def test_every_layer_of_every_micro_batch_has_its_passes(tmp_path: Path) -> None:
    graph, found = labelled(tmp_path, "stages")
    labels = found.labels
    places = (Place.QKV, Place.ATTENTION, Place.PROJECTION, Place.UP, Place.ACTIVATION, Place.DOWN)
    kernels = (graph.tasks.kind == TaskKind.KERNEL) & np.isin(labels.place, places)
    for direction in (Pass.FORWARD, Pass.BACKWARD):
        mine = kernels & (labels.direction == direction) & (labels.part == Part.LAYER)
        cells = np.stack([graph.tasks.rank, labels.layer, labels.micro_batch])[:, mine]
        _, count = np.unique(cells, axis=1, return_counts=True)
        assert len(count) == 2 * 2 * MICRO_BATCHES
        assert len(set(count.tolist())) == 1


def test_halves_of_backward_are_told_apart(tmp_path: Path) -> None:
    graph, found = labelled(tmp_path, "halves")
    layer = (found.labels.part == Part.LAYER) & (graph.tasks.kind == TaskKind.KERNEL)
    product = layer & np.isin(found.labels.place, (Place.UP, Place.DOWN))
    directions = found.labels.direction[product]
    inputs, weights = (
        int((directions == one).sum()) for one in (Pass.BACKWARD_INPUT, Pass.BACKWARD_WEIGHT)
    )
    assert inputs == weights > 0
    assert not (directions == Pass.BACKWARD).any()


def test_recomputed_layers_are_those_of_their_backward(tmp_path: Path) -> None:
    graph, found = labelled(tmp_path, "again")
    assert (found.labels.direction == Pass.RECOMPUTE).any()
    labels = found.labels
    kernels = (graph.tasks.kind == TaskKind.KERNEL) & (labels.part == Part.LAYER)
    per_layer = [
        np.unique(labels.layer[kernels & (labels.direction == one)], return_counts=True)[1]
        for one in (Pass.FORWARD, Pass.RECOMPUTE)
    ]
    assert (per_layer[0] == per_layer[1]).all()


@pytest.mark.parametrize("zero", [1, 2])
@pytest.mark.parametrize("inner", [Degrees(), Degrees(tp=2, sp=True)])
def test_shards_of_the_optimizer_gathered_beside_forward(
    zero: int, inner: Degrees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradients reduced once in a step were whole until then; else those of each micro-batch."""
    degrees = structs.replace(inner, dp=4, zero=zero)
    monkeypatch.setitem(RUNS, "gathered", (GPT, degrees, Options()))
    graph, _ = labelled(tmp_path, "gathered")
    assert degrees_of(graph, layout_of(graph), Kind.TRAINING).degrees == degrees


AGAIN = {
    Recompute.FULL: Options(recompute=Recompute.FULL, fused_attention=False, scores_written=True),
    Recompute.SELECTIVE: Options(
        recompute=Recompute.SELECTIVE, fused_attention=False, scores_written=True
    ),
}
PRODUCTS = (Place.QKV, Place.PROJECTION, Place.UP, Place.DOWN)


@pytest.mark.parametrize("again", AGAIN)
def test_what_is_computed_again_has_the_places_of_its_forward(
    again: Recompute, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Backward too: its gradients are those of what was computed again."""
    monkeypatch.setitem(RUNS, "written", (GPT, Degrees(tp=2), AGAIN[again]))
    graph, found = labelled(tmp_path, "written")
    labels = found.labels
    kernels = (graph.tasks.kind == TaskKind.KERNEL) & (labels.part == Part.LAYER)

    def count(direction: Pass, place: Place) -> int:
        return int((kernels & (labels.direction == direction) & (labels.place == place)).sum())

    whole = again is Recompute.FULL
    for place in (*PRODUCTS, Place.ATTENTION):
        once = count(Pass.FORWARD, place)
        assert once > 0
        # The last product needs no second time: nothing but the sum comes behind it.
        if place != Place.DOWN:
            is_repeated = whole or place == Place.ATTENTION
            assert count(Pass.RECOMPUTE, place) == (once if is_repeated else 0)
    for place in PRODUCTS:
        assert count(Pass.BACKWARD, place) == 2 * count(Pass.FORWARD, place)
    assert count(Pass.BACKWARD, Place.ATTENTION) >= 2 * 2 * GPT.layers * MICRO_BATCHES


def test_without_stacks_and_shapes_the_order_of_kernels_tells_layers(tmp_path: Path) -> None:
    graph, known = labelled(tmp_path, "gpt", batch=Batch(samples=1, sequence=2048))
    bare = label(replace(graph, scopes=NO_SCOPES), layout_of(graph))
    assert bare.model.layers == 6
    assert bare.model.hidden is None
    layers = (known.labels.part == Part.LAYER) & (graph.tasks.kind == TaskKind.KERNEL)
    same = bare.labels.layer[layers] == known.labels.layer[layers]
    assert same.mean() > 0.9
