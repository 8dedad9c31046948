"""What scopes tell of exchanges: gradients as autograd accumulates them, copies around them."""

from dataclasses import replace

import numpy as np
import pytest

from replay.graph.arrays import TaskGraph
from replay.graph.scopes import NO_SCOPES
from tests.builders import GraphBuilder
from whatif.description.labels import Labels, unlabelled
from whatif.models.exchanges.volume import Along
from whatif.models.shape import ModelShape
from whatif.tape.cut import cut
from whatif.transforms.relayout.exchanges.accumulated import ACCUMULATES, with_parameters
from whatif.transforms.relayout.exchanges.wrapping import without_wrapping

US = 1_000


def _host(names: list[str], *, parent: list[int], shapes: list[tuple[str, str]]) -> TaskGraph:
    """Host work of 10 us each, every task in a scope of its own name and in that of `parent`."""
    build = GraphBuilder(gpu=None)
    for name in names:
        build.host(0, name, 10 * US)
    graph = build.build()
    n = len(names)
    known = [name for name, _ in shapes]
    scopes = replace(
        NO_SCOPES,
        slice_id=np.arange(n, dtype=np.int64),
        node=np.arange(n, dtype=np.int32),
        op_id=np.arange(n, dtype=np.int64),
        shape=np.array([known.index(name) if name in known else -1 for name in names], np.int32),
        forward_node=np.full(n, -1, np.int32),
        forward_ns=np.full(n, -1, np.int64),
        parent=np.array(parent, np.int32),
        name=graph.tasks.name.astype(np.int32),
        shapes=tuple(shapes),
    )
    return replace(graph, scopes=scopes)


def _layers(layers: list[int]) -> Labels:
    return replace(
        unlabelled(len(layers)),
        layer=np.array(layers, np.int32),
        micro_batch=np.zeros(len(layers), np.int32),
    )


def test_parameters_are_those_that_autograd_accumulates() -> None:
    """Two tensors of 12 in each of two layers: 24 a layer, and as many in the third."""
    names = [ACCUMULATES, "aten::mm", ACCUMULATES, ACCUMULATES, ACCUMULATES]
    graph = _host(names, parent=[-1] * 5, shapes=[(ACCUMULATES, "[[3, 4]]")])
    model = ModelShape(layers=3)
    assert with_parameters(model, graph, _layers([1, 1, 1, 0, 0])).parameters == 72


@pytest.mark.parametrize(
    "model", [ModelShape(layers=3, parameters=5), ModelShape()], ids=["told", "without layers"]
)
def test_what_is_told_stays(model: ModelShape) -> None:
    """Nor is a number made up for a model of unknown layers."""
    graph = _host([ACCUMULATES], parent=[-1], shapes=[(ACCUMULATES, "[[3, 4]]")])
    assert with_parameters(model, graph, _layers([0])) == model


def test_copies_around_an_exchange_go_with_it() -> None:
    """Those inside FSDP's ranges take no time; what the layer computes stays."""
    names = ["FSDP::all_gather (blocks.0)", "aten::copy_", "aten::mm"]
    graph = _host(names, parent=[-1, 0, -1], shapes=[])
    tape = cut(graph, unlabelled(graph.n_tasks))
    found, (told,) = without_wrapping(tape, [Along.TENSOR, Along.SHARDS])
    assert found.graph.tasks.dur_ns.tolist() == [0, 0, 10 * US]
    assert "0.02 ms per rank and step" in told
    assert without_wrapping(tape, [Along.REPLICAS]) == (tape, ())
