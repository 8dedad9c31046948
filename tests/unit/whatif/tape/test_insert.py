"""Collectives put into and taken out of small tapes whose replay is known by hand."""

from dataclasses import replace

import numpy as np
import pytest

from ingest.vocab import CollectiveKind, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import Boundaries, Group, TaskGraph
from replay.results.metrics import step_times
from tests.builders import GraphBuilder, data_parallel
from whatif.description.labels import unlabelled
from whatif.tape.insert import inserted, without
from whatif.tape.inserting.rows import Insertions
from whatif.tape.segments import Segments, Tape
from whatif.tape.splice import boundary_rows

US = 1_000
EVENT_US = 1.5
GROUP = Group(name="new", ranks=(), size=4, backend="nccl")


def _tape(graph: TaskGraph, segment: list[int] | None = None) -> Tape:
    column = np.zeros(graph.n_tasks, np.int32)
    if segment is not None:
        column = np.array(segment, np.int32)
    n = int(column.max()) + 1
    nothing = np.zeros(n, np.int32)
    return Tape(
        graph=graph,
        labels=unlabelled(graph.n_tasks),
        segments=Segments(
            rank=nothing,
            step=nothing,
            part=nothing.astype(np.int8),
            direction=nothing.astype(np.int8),
            layer=nothing,
            micro_batch=nothing,
        ),
        segment=column,
    )


def _rows(after: list[int], transfer_us: int, **more: object) -> Insertions:
    n = len(after)
    columns: dict[str, object] = {
        "key": np.arange(n),
        "kind": CollectiveKind.ALL_REDUCE,
        "group": GROUP,
        "size_bytes": np.full(n, 1_000_000),
        "transfer_ns": np.full(n, transfer_us * US),
        "beside": False,
        "waits": np.full(n, -1, np.int32),
        "host_ns": np.zeros(n, np.int64),
    }
    return Insertions(after=np.array(after, np.int32), **{**columns, **more})


def _three_kernels() -> tuple[TaskGraph, list[int]]:
    """Launched at once, then 100, 200 and 50 us on one stream."""
    builder = GraphBuilder()
    calls = [builder.call(0, "cudaLaunchKernel", 1 * US) for _ in range(3)]
    kernels = [
        builder.kernel(0, name, us * US, caller=call)
        for name, us, call in zip("abc", (100, 200, 50), calls, strict=True)
    ]
    return builder.build(), kernels


def _step_us(graph: TaskGraph) -> float:
    bounds_ns = step_times(graph, replay(graph)).boundary_ns
    return float(bounds_ns[-1] - bounds_ns[0]) / US


def _named(graph: TaskGraph, name: str, kind: TaskKind) -> list[int]:
    wanted = graph.tasks.name == graph.names.index(name)
    return np.flatnonzero(wanted & (graph.tasks.kind == kind)).tolist()


def test_one_on_the_stream_holds_it_up() -> None:
    """1 us of launch, 350 us of kernels, and now 30 us more; b begins behind it."""
    graph, (a, _, _) = _three_kernels()
    changed = inserted(_tape(graph), [_rows([a], 30)]).graph
    (b,) = _named(changed, "b", TaskKind.KERNEL)
    assert _step_us(changed) == pytest.approx(_step_us(graph) + 30)
    assert replay(changed).start_ns[b] == (1 + 100 + 30) * US


def test_two_behind_one_kernel_follow_each_other() -> None:
    """In the order in which they are given: 30 us, then 5."""
    graph, (a, _, _) = _three_kernels()
    first, second = _rows([a], 30, name="first"), _rows([a], 5, name="second")
    changed = inserted(_tape(graph), [first, second]).graph
    start = replay(changed).start_ns
    (one,), (two,) = (_named(changed, name, TaskKind.TRANSFER) for name in ("first", "second"))
    assert (start[one], start[two]) == (101 * US, 131 * US)
    assert _step_us(changed) == pytest.approx(_step_us(graph) + 35)


def test_one_behind_the_last_kernel_ends_the_step() -> None:
    """The step is over when it is."""
    graph, (_, _, c) = _three_kernels()
    assert _step_us(inserted(_tape(graph), [_rows([c], 30)]).graph) == _step_us(graph) + 30


@pytest.mark.parametrize(("transfer_us", "later_us"), [(150, 0), (260, 60)])
def test_one_beside_is_hidden_until_it_is_awaited(transfer_us: int, later_us: int) -> None:
    """Behind a and awaited by c: b hides 200 us of it."""
    graph, (a, _, c) = _three_kernels()
    rows = _rows([a], transfer_us, beside=True, waits=np.array([c], np.int32))
    assert _step_us(inserted(_tape(graph), [rows]).graph) == _step_us(graph) + later_us + (
        2 * EVENT_US if later_us else 0
    )


def test_what_nobody_waits_for_ends_the_step_too() -> None:
    """Beside, behind b, with nothing after its segment: 200 us against the 50 of c."""
    graph, (_, b, _) = _three_kernels()
    changed = inserted(_tape(graph), [_rows([b], 200, beside=True)]).graph
    assert _step_us(changed) == pytest.approx(_step_us(graph) + 150 + EVENT_US)


def test_one_awaited_by_what_it_is_launched_with_runs_before_that() -> None:
    """Behind b and before c, on a stream of its own: nothing hides it."""
    graph, (_, _, c) = _three_kernels()
    ahead = _rows([c], 90, beside=True, waits=np.array([c], np.int32))
    changed = inserted(_tape(graph), [ahead]).graph
    assert _step_us(changed) == pytest.approx(_step_us(graph) + 90 + 2 * EVENT_US)


def test_one_awaited_by_the_first_kernel_runs_before_all() -> None:
    """Launched with a, behind nothing."""
    graph, (a, _, _) = _three_kernels()
    ahead = _rows([a], 90, beside=True, waits=np.array([a], np.int32))
    changed = inserted(_tape(graph), [ahead]).graph
    assert _step_us(changed) == pytest.approx(_step_us(graph) + 90 + EVENT_US)


def test_those_on_one_stream_run_one_after_another() -> None:
    """Both behind a, 150 us each, awaited by c: 300 us less the 200 of b."""
    graph, (a, _, c) = _three_kernels()
    rows = _rows([a, a], 150, beside=True, waits=np.array([c, c], np.int32))
    assert _step_us(inserted(_tape(graph), [rows]).graph) == _step_us(graph) + 100 + 2 * EVENT_US


def test_members_on_several_ranks_meet() -> None:
    """The slow rank's kernel takes 2 ms: both transfer after that."""
    graph = data_parallel(slow_rank=1)
    gemms = _named(graph, "gemm_a", TaskKind.KERNEL)
    rows = _rows(gemms, 100, key=np.zeros(2, np.int64))
    changed = inserted(_tape(graph), [rows]).graph
    start = replay(changed).start_ns[_named(changed, "collective", TaskKind.TRANSFER)]
    assert start[0] == start[1] >= 2_000 * US
    assert len(changed.collectives.kind) == len(graph.collectives.kind) + 1


def test_ranks_that_stand_for_groups_of_their_own_do_not_meet() -> None:
    """Two collectives of four members each, all of them there."""
    graph = data_parallel(slow_rank=1)
    rows = _rows(_named(graph, "gemm_a", TaskKind.KERNEL), 100)
    changed = inserted(_tape(graph), [rows]).graph
    start = replay(changed).start_ns[_named(changed, "collective", TaskKind.TRANSFER)]
    assert start[0] < start[1]
    assert changed.collectives.members_seen[-2:].tolist() == [4, 4]
    assert changed.collectives.members_expected[-2:].tolist() == [4, 4]


def test_launches_cost_the_host() -> None:
    """9 us more in the first call: b and c were launched in time all the same, a was not."""
    graph, (a, _, _) = _three_kernels()
    changed = inserted(_tape(graph), [_rows([a], 30, host_ns=np.array([9 * US]))]).graph
    assert _step_us(changed) == _step_us(graph) + 30 + 9


def _host_only() -> tuple[TaskGraph, list[int]]:
    builder = GraphBuilder(gpu=None)
    work = [builder.host(0, name, us * US) for name, us in zip("abc", (100, 200, 50), strict=True)]
    return builder.build(), work


def test_a_thread_waits_for_one_on_the_host() -> None:
    """30 us on the link, 60 us until the thread goes on."""
    graph, (a, _, _) = _host_only()
    changed = inserted(_tape(graph), [_rows([a], 30)]).graph
    (b,) = _named(changed, "b", TaskKind.HOST_WORK)
    wake_us = (replay(changed).start_ns[b] - 130 * US) / US
    assert 0 <= wake_us <= 60
    assert _step_us(changed) == pytest.approx(_step_us(graph) + 30 + wake_us)
    assert changed.collectives.on_host.tolist() == [True]


def test_a_thread_goes_on_beside_one_on_the_host() -> None:
    """Issued 40 us into a, on the link for 500 us, awaited before c."""
    graph, (a, _, c) = _host_only()
    rows = _rows(
        [a],
        500,
        beside=True,
        waits=np.array([c], np.int32),
        offset_ns=np.array([40 * US]),
    )
    changed = inserted(_tape(graph), [rows]).graph
    start = replay(changed).start_ns
    (b,), (transfer,), (last,) = (
        _named(changed, name, kind)
        for name, kind in (
            ("b", TaskKind.HOST_WORK),
            ("collective", TaskKind.TRANSFER),
            ("c", TaskKind.HOST_WORK),
        )
    )
    assert (start[b], start[transfer]) == (100 * US, 40 * US)
    assert 0 <= start[last] - 540 * US <= 60 * US


def test_a_thread_may_wait_at_the_end_of_its_step() -> None:
    """Behind c, whatever the segment of a."""
    graph, (a, _, c) = _host_only()
    rows = _rows([a], 500, beside=True, ends=np.array([c], np.int32))
    changed = inserted(_tape(graph, [0, 0, 1]), [rows]).graph
    (last,) = _named(changed, "c", TaskKind.HOST_WORK)
    assert replay(changed).start_ns[last] == 300 * US
    assert 600 <= _step_us(changed) <= 660


def test_waits_without_a_task_stand_at_the_end_of_the_segment() -> None:
    """A and b are one segment, c another."""
    graph, (a, _, _) = _host_only()
    changed = inserted(_tape(graph, [0, 0, 1]), [_rows([a], 500, beside=True)]).graph
    start = replay(changed).start_ns
    (b,), (c,) = (_named(changed, name, TaskKind.HOST_WORK) for name in "bc")
    assert start[b] == 100 * US
    assert start[c] >= 600 * US


def test_new_tasks_have_no_origin_and_the_others_keep_theirs() -> None:
    """Ids move, origins say where from."""
    graph, (a, _, _) = _three_kernels()
    tape = inserted(_tape(graph), [_rows([a], 30)])
    assert tape.graph.origin is not None
    known = tape.graph.origin >= 0
    assert tape.graph.origin[known].tolist() == list(range(graph.n_tasks))
    assert (~known).sum() == 3
    assert len(tape.labels) == len(tape.segment) == tape.graph.n_tasks
    callers = tape.graph.tasks.caller[known]
    before = graph.tasks.caller
    assert (tape.graph.origin[callers[callers >= 0]] == before[before >= 0]).all()


def test_without_takes_a_collective_out_on_all_ranks() -> None:
    """1 ms of kernel is left of each rank, and nobody waits for the slow one."""
    graph = data_parallel(slow_rank=1)
    changed = without(_tape(graph), np.ones(1, bool)).graph
    schedule = replay(changed)
    ends_us = [
        int(schedule.start_ns[task] + changed.tasks.dur_ns[task]) / US
        for task in _named(changed, "gemm_a", TaskKind.KERNEL)
    ]
    transfers = _named(changed, "ncclDevKernel_AllReduce", TaskKind.TRANSFER)
    assert (schedule.start_ns[transfers] / US).tolist() == ends_us
    assert changed.collectives.members_expected.tolist() == [1]


def test_in_and_out_again_changes_no_time() -> None:
    """What is put in and taken out leaves every task where it was."""
    graph, (a, b, _) = _three_kernels()
    tape = inserted(_tape(graph), [_rows([a, b], 30)])
    lags = replace(tape, graph=tape.graph)
    gone = without(lags, np.ones(2, bool)).graph
    known = gone.origin >= 0
    assert (replay(gone).start_ns[known] == replay(graph).start_ns).all()


def test_steps_of_ranks_in_any_order_end_with_what_runs_beside() -> None:
    """A pipeline's ranks come stage by stage; the row of a rank is that of its position."""
    bounds = Boundaries(
        n_steps=2,
        ranks=(0, 4, 1, 5),
        start=np.zeros(13, np.int64),
        task=np.zeros(0, np.int32),
        floor_ns=np.zeros(12, np.int64),
    )
    rank, step = np.array([1, 4, 5], np.int32), np.array([0, 1, 1], np.int32)
    assert boundary_rows(bounds, rank, step).tolist() == [2 * 3 + 1, 1 * 3 + 2, 3 * 3 + 2]
