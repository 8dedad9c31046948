"""Facts about the chain that the last boundary hangs on."""

from dataclasses import replace

import numpy as np
import pytest

from ingest.vocab import EdgeKind, TaskKind
from replay.graph.arrays import TaskGraph
from replay.results.critical_path import (
    CriticalPath,
    PathPieces,
    Share,
    critical_path,
    cut_at_steps,
    shares_by_class,
    shares_by_collective,
    shares_by_module,
    shares_by_phase,
    shares_by_rank,
)
from replay.results.metrics import step_times
from tests.builders import GraphBuilder, baseline_of, data_parallel


def _path(graph: TaskGraph) -> CriticalPath:
    return critical_path(graph, baseline_of(graph).schedule)


def _names(graph: TaskGraph, path: CriticalPath) -> list[str]:
    return [graph.names[name] for name in graph.tasks.name[path.task]]


def test_path_follows_what_bound_each_start() -> None:
    made = GraphBuilder()
    call = made.call(0, "launch", 10)
    made.kernel(0, "short", 20, caller=call, stream=8)
    long = made.kernel(0, "long", 100, caller=call)
    last = made.kernel(0, "last", 30, caller=call, stream=9)
    made.edge(long, last, 5)
    graph = made.build()
    path = _path(graph)
    assert _names(graph, path) == ["launch", "long", "last"]
    assert path.span_ns.tolist() == [10, 100, 30]
    assert path.lag_ns.tolist() == [0, 0, 5]
    assert path.length_ns == 145


def test_overlap_of_two_tasks_counts_once() -> None:
    """A programmatic dependent launch starts before its predecessor ends."""
    made = GraphBuilder()
    first = made.kernel(0, "first", 100, release_ns=0)
    second = made.kernel(0, "second", 50, stream=8)
    made.edge(first, second, -20, kind=EdgeKind.STREAM_ORDER)
    graph = made.build()
    path = _path(graph)
    assert path.length_ns == 130
    assert path.span_ns.tolist() == [80, 50]
    assert path.lag_ns.tolist() == [0, 0]


def test_start_before_the_start_of_its_source_adds_only_what_is_left() -> None:
    made = GraphBuilder()
    first = made.kernel(0, "first", 100, release_ns=50)
    second = made.kernel(0, "second", 150, stream=8)
    made.edge(first, second, -120, kind=EdgeKind.STREAM_ORDER)
    graph = made.build()
    path = _path(graph)
    assert path.span_ns.tolist() == [0, 150]
    assert path.lag_ns.tolist() == [30, 0], "the window begins before the first task may"
    assert path.length_ns == 180


def test_edge_from_a_start_adds_no_time_of_its_source() -> None:
    made = GraphBuilder()
    first = made.kernel(0, "first", 100, release_ns=10)
    second = made.kernel(0, "second", 200, stream=8)
    made.edge(first, second, 30, from_start=True)
    graph = made.build()
    path = _path(graph)
    assert path.span_ns.tolist() == [0, 200]
    assert path.lag_ns.tolist() == [10, 30]


def test_residual_stands_beside_the_lag() -> None:
    made = GraphBuilder()
    first = made.kernel(0, "first", 100, release_ns=0)
    second = made.kernel(0, "second", 50, stream=8, residual_ns=40)
    made.edge(first, second, 7)
    path = _path(made.build())
    assert path.task.tolist() == [first, second]
    assert path.lag_ns.tolist() == [0, 7]
    assert path.residual_ns.tolist() == [0, 40]
    assert path.length_ns == 197


def test_start_before_its_edges_allow_shortens_the_lag() -> None:
    made = GraphBuilder()
    first = made.kernel(0, "first", 100, release_ns=0)
    second = made.kernel(0, "second", 50, stream=8, residual_ns=-4)
    made.edge(first, second, 7)
    path = _path(made.build())
    assert (path.lag_ns.tolist(), path.residual_ns.tolist()) == ([0, 3], [0, 0])


def test_late_release_is_part_of_the_path() -> None:
    made = GraphBuilder()
    made.kernel(0, "only", 100, release_ns=300)
    path = _path(made.build())
    assert (path.span_ns.tolist(), path.lag_ns.tolist()) == ([100], [300])
    assert path.length_ns == 400


def test_path_is_cut_where_the_first_step_begins() -> None:
    made = GraphBuilder()
    call = made.call(0, "before", 60)
    made.kernel(0, "k", 100, caller=call)
    graph = made.build()
    floor_ns = np.array([40, graph.boundaries.floor_ns[1]])
    graph = replace(graph, boundaries=replace(graph.boundaries, floor_ns=floor_ns))
    path = _path(graph)
    assert path.span_ns.tolist() == [20, 100]
    assert path.length_ns == 120


def _pieces(graph: TaskGraph) -> PathPieces:
    schedule = baseline_of(graph).schedule
    return cut_at_steps(critical_path(graph, schedule), step_times(graph, schedule).boundary_ns)


def _two_steps() -> TaskGraph:
    """Kernel `a` (100 ns) in the first step, `b` (lag 10, 100 ns) over the boundary at 150."""
    made = GraphBuilder()
    first = made.kernel(0, "a", 100, release_ns=0, module="net")
    second = made.kernel(0, "b", 100, stream=8, residual_ns=5)
    ends_first = made.kernel(0, "c", 150, stream=9, release_ns=0)
    made.edge(first, second, 10)
    graph = made.build()
    bounds = graph.boundaries
    return replace(
        graph,
        steps=(3, 4),
        boundaries=replace(
            bounds,
            n_steps=2,
            start=np.array([0, 0, 1, 2]),
            task=np.array([ends_first, second], np.int32),
            floor_ns=np.array([0, bounds.floor_ns[1], bounds.floor_ns[1]]),
        ),
    )


def test_a_task_over_a_boundary_is_cut() -> None:
    pieces = _pieces(_two_steps())
    assert pieces.step.tolist() == [0, 0, 1]
    assert pieces.span_ns.tolist() == [100, 35, 65]
    assert pieces.lag_ns.tolist() == [0, 10, 0]
    assert pieces.residual_ns.tolist() == [0, 5, 0]
    assert pieces.ts_ns.tolist() == [0, 100, 150]


def test_each_step_is_the_sum_of_its_pieces() -> None:
    graph = _two_steps()
    pieces = _pieces(graph)
    per_step = np.bincount(pieces.step, weights=pieces.total_ns)
    assert per_step.tolist() == [150, 65]


def test_shares_name_what_the_path_is_made_of() -> None:
    graph = _two_steps()
    pieces = _pieces(graph)
    assert shares_by_class(graph, pieces) == (
        Share(label="gemm", total_ns=200),
        Share(label="lag", total_ns=10),
        Share(label="residual", total_ns=5),
    )
    assert shares_by_rank(graph, pieces) == (Share(label="0", total_ns=215),)
    assert shares_by_module(graph, pieces) == (
        Share(label=None, total_ns=115),
        Share(label="net", total_ns=100),
    )


@pytest.mark.parametrize("slow_rank", [None, 0, 1])
def test_shares_add_up_to_the_path(slow_rank: int | None) -> None:
    graph = data_parallel(slow_rank=slow_rank)
    path, pieces = _path(graph), _pieces(graph)
    assert path.span_ns.sum() + path.lag_ns.sum() + path.residual_ns.sum() == path.length_ns
    for shares_of in (shares_by_class, shares_by_rank, shares_by_module, shares_by_phase):
        assert sum(share.total_ns for share in shares_of(graph, pieces)) == path.length_ns
    assert {share.label for share in shares_by_class(graph, pieces)} == {
        "host",
        "gemm",
        "collective",
    }


def test_a_collective_is_told_by_kind_and_communicator() -> None:
    graph = data_parallel(slow_rank=1)
    pieces = _pieces(graph)
    labels = [share.label for share in shares_by_collective(graph, pieces)]
    assert [label for label in labels if label] == ["all_reduce of 2 in g"]


def test_path_of_two_ranks_goes_through_the_slow_one() -> None:
    graph = data_parallel(slow_rank=1)
    path = _path(graph)
    device = graph.tasks.kind[path.task] == TaskKind.KERNEL
    assert graph.tasks.rank[path.task[device]].tolist() == [1]
    assert _names(graph, path)[-1] == "ncclDevKernel_AllReduce"
