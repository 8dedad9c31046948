"""FSDP's own work goes with it, and only where the target does not shard parameters."""

from dataclasses import replace

import numpy as np
from msgspec.structs import replace as with_fields

from replay.graph.arrays import TaskGraph
from replay.graph.scopes import ANNOTATION, NO_SCOPES, OPERATOR
from tests.builders import GraphBuilder
from whatif.description.infer import describe
from whatif.models.shape import Degrees, RunShape
from whatif.tape.cut import cut
from whatif.transforms.base import Context
from whatif.transforms.relayout.exchanges.own_work import without_own_work
from whatif.transforms.relayout.parts import Ask

NAMES = ("layer", "FSDP::pre_forward (blocks.0)", "aten::copy_")


def run_under_annotations() -> TaskGraph:
    """Three host tasks: an operator of a layer, FSDP's hook, and a copy inside of the hook."""
    build = GraphBuilder(gpu=None)
    for number, name in enumerate(NAMES):
        build.host(0, name, 100 * (number + 1))
    graph = build.build()
    name = np.array([graph.names.index(name) for name in NAMES], np.int32)
    scopes = replace(
        NO_SCOPES,
        slice_id=np.arange(3),
        node=np.arange(3, dtype=np.int32),
        op_id=np.full(3, -1),
        shape=np.full(3, -1, np.int32),
        forward_node=np.full(3, -1, np.int32),
        forward_ns=np.full(3, -1),
        again=np.zeros(3, bool),
        parent=np.array([-1, -1, 1], np.int32),
        name=name,
        kind=np.array([OPERATOR, ANNOTATION, OPERATOR], np.int8),
    )
    rows = [graph.names[name] for name in graph.tasks.name]
    slice_id = np.array([NAMES.index(row) if row in NAMES else -1 for row in rows])
    return replace(graph, tasks=replace(graph.tasks, slice_id=slice_id), scopes=scopes)


def left_ns(before: int, after: int) -> list[int]:
    graph = run_under_annotations()
    shape = RunShape(degrees=Degrees(dp=2, zero=before))
    ask = Ask(
        described=replace(describe(graph), shape=shape),
        target=with_fields(shape, degrees=Degrees(dp=2, zero=after)),
        context=Context(),
    )
    tape, _ = without_own_work(cut(graph, ask.described.labels), ask)
    tasks = tape.graph.tasks
    return [int(tasks.dur_ns[tasks.slice_id == row].sum()) for row in range(3)]


def test_all_under_its_annotations_goes_where_parameters_are_whole_again() -> None:
    assert left_ns(3, 0) == [100, 0, 0]


def test_it_stays_where_parameters_stay_sharded_or_were_whole() -> None:
    assert left_ns(3, 3) == [100, 200, 300]
    assert left_ns(0, 0) == [100, 200, 300]
