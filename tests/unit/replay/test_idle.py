"""Facts about gaps of streams and devices, and what they are put down to."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from ingest.vocab import DEVICE_KINDS, EdgeKind, LaneKind, TaskKind
from replay.engine.run import replay
from replay.graph import thresholds
from replay.graph.arrays import TaskGraph
from replay.results.idle import (
    CAUSES,
    Idle,
    device_idle,
    idle_by_cause,
    n_devices,
    stream_idle,
)
from replay.results.metrics import covered_ns, rank_breakdowns, step_times
from tests.builders import GraphBuilder, data_parallel

US = 1_000
assert thresholds.SHORT_GAP_NS == 5 * US, "the times below are chosen for it"


def _idle(graph: TaskGraph, *, device: bool = False) -> Idle:
    return (device_idle if device else stream_idle)(graph, replay(graph))


def _rows(graph: TaskGraph, *, device: bool = False) -> list[tuple[int, int, int, str]]:
    """Stream, start us, duration us, cause."""
    idle = _idle(graph, device=device)
    columns = (idle.stream, idle.ts_ns, idle.dur_ns, idle.cause)
    return [
        (int(stream), int(ts) // US, int(dur) // US, CAUSES[cause])
        for stream, ts, dur, cause in zip(*columns, strict=True)
    ]


def _culprits(graph: TaskGraph) -> list[str]:
    idle = _idle(graph)
    return [graph.names[graph.tasks.name[task]] for task in idle.culprit if task >= 0]


def test_a_stream_waits_for_the_host() -> None:
    made = GraphBuilder()
    first = made.call(0, "launch", 10 * US)
    made.kernel(0, "a", 20 * US, caller=first)
    made.host(0, "aten::slow", 90 * US)
    second = made.call(0, "launch", 10 * US)
    made.kernel(0, "b", 20 * US, caller=second)
    graph = made.build()
    assert _rows(graph) == [(7, 0, 10, "host_late"), (7, 30, 80, "host_late")]
    assert _culprits(graph) == ["launch", "aten::slow"]


def test_a_stream_waits_for_another_by_an_event() -> None:
    made = GraphBuilder()
    call = made.call(0, "launch", 10 * US)
    other = made.kernel(0, "long", 100 * US, caller=call, stream=8)
    made.kernel(0, "a", 20 * US, caller=call)
    waiting = made.kernel(0, "b", 20 * US, caller=call)
    made.edge(other, waiting, 2 * US)
    graph = made.build()
    assert _rows(graph)[:2] == [(7, 0, 10, "host_late"), (7, 30, 82, "event_wait")]
    assert _culprits(graph)[1] == "long"
    assert _idle(graph).shares_ns[1].tolist() == [0, 2 * US, 0, 0, 80 * US, 0]


def test_a_host_that_waited_for_the_device_drained_it() -> None:
    made = GraphBuilder()
    call = made.call(0, "launch", 10 * US)
    other = made.kernel(0, "long", 100 * US, caller=call, stream=8)
    made.kernel(0, "a", 20 * US, caller=call)
    sync = made.call(0, "cudaStreamSynchronize", 5 * US)
    made.edge(other, sync, 1 * US, kind=EdgeKind.HOST_SYNC)
    second = made.call(0, "launch", 10 * US)
    made.kernel(0, "b", 20 * US, caller=second)
    graph = made.build()
    assert _rows(graph)[1] == (7, 30, 96, "sync_drain")
    assert _culprits(graph)[1] == "long"


def test_host_work_after_a_wait_for_the_device_is_a_drained_queue() -> None:
    """The synchronise waits 20 us and returns 1 us after `a`; then the host works 39 us."""
    made = GraphBuilder()
    call = made.call(0, "launch", 10 * US)
    first = made.kernel(0, "a", 20 * US, caller=call)
    sync = made.call(0, "cudaStreamSynchronize", 0)
    made.edge(first, sync, 1 * US, kind=EdgeKind.HOST_SYNC)
    made.host(0, "aten::item", 29 * US)
    second = made.call(0, "launch", 10 * US)
    made.kernel(0, "b", 20 * US, caller=second)
    graph = made.build()
    assert _rows(graph)[1] == (7, 30, 40, "sync_drain")
    assert _idle(graph).shares_ns[1].tolist() == [0, 0, 39 * US, 1 * US, 0, 0]
    assert _culprits(graph)[1] == "aten::item"


def test_long_host_work_after_a_short_wait_is_the_hosts() -> None:
    made = GraphBuilder()
    call = made.call(0, "launch", 10 * US)
    first = made.kernel(0, "a", 20 * US, caller=call)
    sync = made.call(0, "cudaStreamSynchronize", 0)
    made.edge(first, sync, 1 * US, kind=EdgeKind.HOST_SYNC)
    made.host(0, "cudaFree", 900 * US)
    second = made.call(0, "launch", 10 * US)
    made.kernel(0, "b", 20 * US, caller=second)
    assert _rows(made.build())[1] == (7, 30, 911, "host_late")


def test_a_device_waits_for_what_the_other_rank_makes_late() -> None:
    """Rank 0 goes on after the collective, which began when rank 1 was there."""
    made = GraphBuilder(ranks=(0, 1))
    graph = data_parallel(slow_rank=1, builder=made)
    after = made.kernel(0, "after", 50 * US, stream=9)
    (transfer,) = np.flatnonzero((graph.tasks.kind == TaskKind.TRANSFER) & (graph.tasks.rank == 0))
    made.edge(int(transfer), after, 0)
    graph = made.build()
    idle = _idle(graph)
    mine = np.flatnonzero((idle.rank == 0) & (idle.stream == 9))
    assert CAUSES[idle.cause[mine[0]]] == "comm_wait"
    assert graph.names[graph.tasks.name[idle.culprit[mine[0]]]] == "gemm_a"
    assert graph.tasks.rank[idle.culprit[mine[0]]] == 1


def test_what_no_edge_explains_is_unknown() -> None:
    made = GraphBuilder()
    made.kernel(0, "a", 20 * US, release_ns=0)
    made.kernel(0, "b", 20 * US, residual_ns=50 * US)
    assert _rows(made.build()) == [(7, 20, 50, "unknown")]


def test_a_lag_is_overhead_and_short_gaps_are_summed() -> None:
    made = GraphBuilder()
    a = made.kernel(0, "a", 20 * US, release_ns=0)
    b = made.kernel(0, "b", 20 * US)
    c = made.kernel(0, "c", 20 * US)
    d = made.kernel(0, "d", 20 * US)
    made.edge(a, b, 2 * US)
    made.edge(b, c, 6 * US)
    made.edge(c, d, 3 * US)
    graph = made.build()
    assert _rows(graph) == [(7, 20, 5, "short"), (7, 42, 6, "launch_overhead")]
    assert _idle(graph).gaps.tolist() == [2, 1]


def test_a_device_is_idle_where_no_stream_runs() -> None:
    made = GraphBuilder()
    call = made.call(0, "launch", 10 * US)
    made.kernel(0, "a", 20 * US, caller=call)
    made.kernel(0, "b", 50 * US, caller=call, stream=8)
    graph = made.build()
    assert _rows(graph, device=True) == [(-1, 0, 10, "host_late")]
    assert _rows(graph)[1] == (7, 30, 30, "no_more_work")


def test_a_gap_over_a_boundary_is_cut_and_keeps_its_cause() -> None:
    made = GraphBuilder()
    first = made.call(0, "launch", 10 * US)
    a = made.kernel(0, "a", 20 * US, caller=first)
    made.host(0, "aten::slow", 90 * US)
    second = made.call(0, "launch", 10 * US)
    b = made.kernel(0, "b", 20 * US, caller=second)
    host = made.host(0, "step ends", 0)
    graph = made.build()
    bounds = graph.boundaries
    # The first step ends 40 us in, between the kernels.
    made_end = replace(
        bounds,
        n_steps=2,
        start=np.array([0, 0, 1, 3]),
        task=np.array([a, b, host], np.int32),
        floor_ns=np.array([0, 40 * US, bounds.floor_ns[1]]),
    )
    graph = replace(graph, boundaries=made_end, steps=(0, 1))
    idle = _idle(graph)
    assert idle.step.tolist() == [0, 0, 1]
    assert idle.dur_ns.tolist() == [10 * US, 10 * US, 70 * US]
    assert {CAUSES[code] for code in idle.cause} == {"host_late"}


@pytest.mark.parametrize("slow_rank", [None, 0, 1])
def test_gaps_and_work_of_each_stream_fill_the_window(slow_rank: int | None) -> None:
    graph = data_parallel(slow_rank=slow_rank)
    schedule = replay(graph)
    boundary_ns = step_times(graph, schedule).boundary_ns
    window = (int(boundary_ns[0]), int(boundary_ns[-1]))
    idle = stream_idle(graph, schedule)
    for number, lane in enumerate(graph.lanes):
        if lane.kind != LaneKind.STREAM:
            continue
        ids = np.flatnonzero(
            (graph.tasks.lane == number) & np.isin(graph.tasks.kind, _codes(DEVICE_KINDS))
        )
        arrive = graph.tasks.kind[ids] == TaskKind.ARRIVE
        end_ns = schedule.end_ns[np.where(arrive, ids + 1, ids)]
        busy_ns = covered_ns(schedule.start_ns[ids], end_ns, window)
        mine = (idle.rank == lane.rank) & (idle.stream == lane.stream)
        assert busy_ns + idle.dur_ns[mine].sum() == window[1] - window[0]


def _codes(kinds: Iterable[TaskKind]) -> list[int]:
    return [int(kind) for kind in kinds]


@pytest.mark.parametrize("slow_rank", [None, 0, 1])
def test_idle_of_devices_is_that_of_the_breakdown(slow_rank: int | None) -> None:
    graph = data_parallel(slow_rank=slow_rank)
    schedule = replay(graph)
    by_cause = idle_by_cause(device_idle(graph, schedule))
    parts = rank_breakdowns(graph, schedule)
    assert n_devices(graph) == len(parts)
    assert sum(by_cause.values()) == sum(part.idle_ns for part in parts)
