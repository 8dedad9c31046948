"""What a communicator is for follows from its name, its phases, or its place in the step."""

from dataclasses import replace

import numpy as np
import pytest

from ingest.vocab import TaskKind
from replay.graph.arrays import TaskGraph
from tests.builders import H100, GraphBuilder
from tests.jobs import A2A, AG, AR, BWD, FWD, MB, OPT, P2P, RS, Call, run
from whatif.parallelism import Axis, Confidence, Layout, layout_of


def axes(layout: Layout) -> list[Axis]:
    return [role.axis for role in layout.roles]


ALL = (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("calls", "axis"),
    [
        ([(AR, BWD, 50 * MB), (AR, BWD, 50 * MB)], Axis.DATA),
        ([(AR, FWD, 4), (AR, BWD, 50 * MB)], Axis.DATA),
        ([(AG, FWD, 50 * MB), (AG, BWD, 50 * MB), (RS, BWD, 100 * MB), (AR, FWD, 4)], Axis.SHARDED),
        ([(RS, BWD, 50 * MB), (AG, OPT, 50 * MB)], Axis.SHARDED),
        ([(AG, OPT, 50 * MB)], Axis.SHARDED),
        ([(AR, FWD, 8 * MB), (AR, FWD, 8 * MB), (AR, BWD, 8 * MB), (AR, BWD, 8 * MB)], Axis.TENSOR),
        ([(AG, FWD, 8 * MB), (RS, FWD, 8 * MB), (AG, BWD, 8 * MB), (RS, BWD, 8 * MB)], Axis.TENSOR),
        ([(P2P, FWD, 8 * MB), (P2P, BWD, 8 * MB)], Axis.PIPELINE),
        ([(A2A, FWD, 8 * MB), (A2A, BWD, 8 * MB)], Axis.EXPERT),
        ([(A2A, FWD, 80 * MB), (A2A, BWD, 80 * MB), (AR, BWD, 5 * MB)], Axis.DATA),
        ([(RS, FWD, 60 * MB), (AG, BWD, 60 * MB), (AR, BWD, 900 * MB)], Axis.DATA),
        ([(AR, FWD, 2 * MB), (AR, BWD, 10 * MB)], Axis.UNCLEAR),
        ([(AG, FWD, 2 * MB)], Axis.UNCLEAR),
    ],
)  # fmt: skip
def test_phases_tell_what_a_communicator_is_for(calls: list[Call], axis: Axis) -> None:
    layout = layout_of(run([(ALL, calls)]))
    assert axes(layout) == [axis]
    assert layout.degrees.get(axis, 1) == (1 if axis in (Axis.UNCLEAR, Axis.EXPERT) else 4)


def without_phases(reducing: range, *, on_host: bool = False) -> TaskGraph:
    """Ten pieces of work; an all-reduce after those of `reducing`."""
    build = GraphBuilder(world_size=4, gpu=None if on_host else H100)
    for piece in range(10):
        done = caller = build.host(0, "python", 1_000_000 if on_host else 10_000)
        if not on_host:
            done = build.kernel(0, "gemm", 1_000_000, caller=caller)
        if piece in reducing:
            build.collective(
                3_000_000,
                callers={0: caller},
                after={0: done},
                size_bytes=MB,
                group=ALL,
                on_host=on_host,
            )
    return build.build()


@pytest.mark.parametrize("on_host", [False, True])
@pytest.mark.parametrize(
    ("reducing", "axis"),
    [(range(4, 10), Axis.DATA), (range(10), Axis.TENSOR), (range(0, 10, 5), Axis.TENSOR)],
)
def test_without_phases_the_place_in_the_step_tells(
    reducing: range, axis: Axis, *, on_host: bool
) -> None:
    role = layout_of(without_phases(reducing, on_host=on_host)).roles[0]
    assert (role.axis, role.confidence) == (axis, Confidence.PLACE)


@pytest.mark.parametrize(
    ("name", "axis"),
    [
        ("mesh_tp", Axis.TENSOR),
        ("TENSOR_MODEL_PARALLEL_GROUP", Axis.TENSOR),
        ("mesh_dp", Axis.DATA),
        ("DATA_PARALLEL_GROUP_WITH_CP", Axis.DATA),
        ("TENSOR_AND_DATA_PARALLEL_GROUP", Axis.DATA),
        ("mesh_dp_shard_cp", Axis.SHARDED),
        ("EXPERT_DATA_PARALLEL_GROUP", Axis.DATA),
        ("mesh_dp_shard", Axis.SHARDED),
        ("fsdp", Axis.SHARDED),
        ("PIPELINE_MODEL_PARALLEL_GROUP", Axis.PIPELINE),
        ("EXPERT_MODEL_PARALLEL_GROUP", Axis.EXPERT),
        ("mesh_cp", Axis.CONTEXT),
    ],
)
def test_a_name_that_says_it_goes_first(name: str, axis: Axis) -> None:
    layout = layout_of(run([(ALL, [(AR, FWD, MB), (AR, BWD, MB)])], names={0: name}))
    assert layout.roles[0].axis is axis
    assert layout.roles[0].confidence is Confidence.NAMED


@pytest.mark.parametrize(("inner", "axis"), [("mesh_cp", Axis.WORLD), ("mesh_pp", Axis.DATA)])
def test_replicas_with_context_are_replicas_alone_without_it(inner: str, axis: Axis) -> None:
    names = {0: inner, 1: "DATA_PARALLEL_GROUP_WITH_CP"}
    graph = run([((0, 1), [(AG, FWD, MB)]), ((0, 2), [(AR, BWD, 9 * MB)])], names=names)
    assert layout_of(graph).roles[1].axis is axis


@pytest.mark.parametrize("name", ["default_pg", "undefined", "0", ""])
def test_a_name_that_says_nothing_leaves_it_to_the_calls(name: str) -> None:
    layout = layout_of(run([(ALL, [(AR, BWD, MB)])], names={0: name}))
    assert layout.roles[0].confidence is Confidence.PHASE


def test_communicators_of_the_same_ranks_are_understood_together() -> None:
    layout = layout_of(run([(ALL, [(AG, FWD, MB)]), (ALL, [(RS, BWD, MB)])]))
    assert axes(layout) == [Axis.SHARDED, Axis.SHARDED]
    assert layout.replicas == 4


def test_tensor_and_data_parallel_multiply_and_a_communicator_of_all_is_neither() -> None:
    layout = layout_of(
        run(
            [
                ((0, 1), [(AR, FWD, MB), (AR, BWD, MB)]),
                ((0, 2, 4, 6), [(AR, BWD, 50 * MB)]),
                (tuple(range(8)), [(AR, OPT, 4)]),
            ]
        )
    )
    assert axes(layout) == [Axis.TENSOR, Axis.DATA, Axis.WORLD]
    assert (layout.degree(Axis.TENSOR), layout.replicas, layout.world_size) == (2, 4, 8)
    assert [layout.span(group, Axis.DATA) for group in range(3)] == [1, 4, 4]
    assert layout.label == "data 4 x tensor 2"
    assert layout.coordinates[6][Axis.DATA] == 3
    assert layout.coordinates[1][Axis.TENSOR] == 1


def test_only_a_communicator_of_all_leaves_the_rest_for_the_replicas() -> None:
    graph = run([((0, 1), [(AR, FWD, MB), (AR, BWD, MB)]), (tuple(range(8)), [(AR, BWD, 9 * MB)])])
    assert layout_of(graph).replicas == 4


def test_a_communicator_across_replicas_and_context_counts_the_replicas_only() -> None:
    graph = run(
        [((0, 1), [(AG, FWD, MB)]), (tuple(range(8)), [(AG, FWD, 9 * MB), (RS, BWD, 9 * MB)])],
        names={0: "mesh_cp", 1: "mesh_dp_shard_cp"},
    )
    layout = layout_of(graph)
    assert axes(layout) == [Axis.CONTEXT, Axis.WORLD]
    assert (layout.degree(Axis.SHARDED), layout.replicas) == (4, 4)
    assert layout.span(1, Axis.SHARDED) == 4
    assert layout.span(0, Axis.SHARDED) == 1


def test_shards_inside_replicas_are_hybrid() -> None:
    layout = layout_of(
        run(
            [
                ((0, 1, 2, 3), [(AG, FWD, MB), (RS, BWD, MB)]),
                ((0, 4, 8), [(AR, BWD, MB)]),
            ],
            world=12,
        )
    )
    assert (layout.degree(Axis.SHARDED), layout.degree(Axis.DATA), layout.replicas) == (4, 3, 12)


def test_what_a_person_says_goes_before_everything() -> None:
    graph = run([(ALL, [(AR, FWD, MB), (AR, BWD, MB)])], names={0: "mesh_tp"})
    layout = layout_of(graph, data_groups="mesh_*")
    assert axes(layout) == [Axis.DATA]
    assert layout.roles[0].confidence is Confidence.GIVEN


def test_a_run_without_collectives_is_one_rank() -> None:
    build = GraphBuilder()
    build.kernel(0, "gemm", 1_000)
    layout = layout_of(build.build())
    assert (layout.replicas, layout.label, layout.roles) == (1, "one rank", ())


def test_what_was_launched_before_the_steps_says_nothing() -> None:
    graph = run([(ALL, [(AR, BWD, MB)])])
    fixed = np.isin(graph.tasks.kind, (TaskKind.ARRIVE, TaskKind.TRANSFER))
    layout = layout_of(replace(graph, tasks=replace(graph.tasks, fixed=fixed)))
    assert axes(layout) == [Axis.UNCLEAR]


def test_a_communicator_of_one_rank_spans_nothing() -> None:
    """Flags of a model that one rank holds: more replicas do not make it larger."""
    layout = layout_of(
        run([((0,), [(AR, OPT, 4)]), (ALL, [(RS, BWD, 50 * MB), (AG, OPT, 50 * MB)])])
    )
    assert [layout.span(number, Axis.SHARDED) for number in range(2)] == [1, 4]
