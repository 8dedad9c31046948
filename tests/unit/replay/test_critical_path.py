"""Facts about the chain that the last boundary hangs on."""

from dataclasses import replace

import numpy as np
import pytest

from ingest.vocab import EdgeKind, TaskKind
from replay.graph.arrays import TaskGraph
from replay.results.critical_path import CriticalPath, critical_path, path_shares
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


def test_residual_counts_as_lag() -> None:
    made = GraphBuilder()
    first = made.kernel(0, "first", 100, release_ns=0)
    second = made.kernel(0, "second", 50, residual_ns=40)
    graph = made.build()
    path = _path(graph)
    assert path.task.tolist() == [first, second]
    assert path.lag_ns.tolist() == [0, 40]
    assert path.length_ns == 190


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


@pytest.mark.parametrize("slow_rank", [None, 0, 1])
def test_shares_add_up_to_one(slow_rank: int | None) -> None:
    graph = data_parallel(slow_rank=slow_rank)
    path = _path(graph)
    assert path.span_ns.sum() + path.lag_ns.sum() == path.length_ns
    shares = path_shares(graph, path)
    assert sum(shares.values()) == pytest.approx(1)
    assert set(shares) == {"host", "gemm", "collective", "lags"}


def test_path_of_two_ranks_goes_through_the_slow_one() -> None:
    graph = data_parallel(slow_rank=1)
    path = _path(graph)
    device = graph.tasks.kind[path.task] == TaskKind.KERNEL
    assert graph.tasks.rank[path.task[device]].tolist() == [1]
    assert _names(graph, path)[-1] == "ncclDevKernel_AllReduce"
