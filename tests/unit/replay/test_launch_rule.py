"""Facts about launches: where the lag counts from, whom a graph starts, what lies before."""

from pathlib import Path

import pytest

from ingest.vocab import EdgeKind, TaskKind
from replay.graph.arrays import NEVER_RELEASED_NS
from tests.kineto import KinetoFile
from tests.replayed import written


def test_kernel_starts_a_lag_after_the_end_of_its_call(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 100))
    file.launched("k", (10, 18), (23, 60))
    run = written(tmp_path, file)
    edge = run.edge(run.task("k"), EdgeKind.LAUNCH)
    assert edge.src == run.call("cudaLaunchKernel")
    assert (edge.lag_us, edge.from_start) == (2, False)
    assert run.graph.tasks.residual_ns[run.task("k")] == 23_000 - 18_000 - 2_000


def test_launch_lag_is_the_median_over_launches_onto_an_idle_device(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 2000))
    for number, lag in enumerate((3, 3, 3, 3, 3, 4, 4, 5, 5)):
        at = 100 * number
        file.launched("idle", (at, at + 5), (at + 5 + lag, at + 50))
        file.launched("queued", (at + 20, at + 25), (at + 51, at + 60))
    run = written(tmp_path, file)
    lag = run.facts.lags["launch (cudaLaunchKernel)"]
    assert (lag.lag_ns, lag.samples, lag.is_default) == (3_000, 9, False)


def test_copy_that_blocks_is_launched_from_the_start_of_its_call(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 200))
    file.op("aten::item", (5, 95))
    file.copy("DtoH (Device -> Pageable)", (10, 90), (30, 80))
    run = written(tmp_path, file)
    copy = run.task("Memcpy DtoH (Device -> Pageable)")
    launch = run.edge(copy, EdgeKind.LAUNCH)
    assert run.span(launch.src)[1] == 10
    (wait,) = run.waits()
    assert run.edge(wait, EdgeKind.HOST_SYNC).src == copy
    assert run.span(wait) == (85, 85), "5 us after the copy; the rest of the call is work"
    assert run.span(run.call("cudaMemcpyAsync")) == (85, 90)
    assert run.is_exact()


def test_staged_copy_to_the_device_does_not_block(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 200))
    file.launched("k", (5, 10), (15, 60))
    file.copy("HtoD (Pageable -> Device)", (20, 45), (62, 90))
    run = written(tmp_path, file)
    assert run.waits() == []
    launch = run.edge(run.task("Memcpy HtoD (Pageable -> Device)"), EdgeKind.LAUNCH)
    assert launch.src == run.call("cudaMemcpyAsync")
    assert run.span(launch.src) == (20, 45)


def test_call_that_returned_long_after_its_kernel_began_launches_from_its_start(
    tmp_path: Path,
) -> None:
    file = KinetoFile()
    file.step(1, (0, 200))
    file.launched("k", (10, 100), (20, 150))
    run = written(tmp_path, file)
    launch = run.edge(run.task("k"), EdgeKind.LAUNCH)
    assert run.span(launch.src) == (0, 10)
    assert run.is_exact()


def test_one_call_of_a_graph_starts_the_first_kernel_of_each_stream(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 300))
    graph = file.call("cudaGraphLaunch", (10, 40))
    for name, stream, span in (
        ("a", 7, (50, 80)),
        ("b", 7, (81, 120)),
        ("c", 13, (52, 90)),
        ("d", 13, (95, 140)),
    ):
        file.kernel(name, span, stream=stream, call=graph)
    run = written(tmp_path, file)
    call = run.call("cudaGraphLaunch")
    sources = {name: run.edges(run.task(name), EdgeKind.GRAPH_LAUNCH) for name in "abcd"}
    assert [edge.src for edge in sources["a"] + sources["c"]] == [call, call]
    assert sources["b"] == sources["d"] == []
    assert run.sources(run.task("d"), EdgeKind.STREAM_ORDER) == ["c"]
    assert run.span(call) == (10, 40), "charged once"


def test_lag_of_a_graph_may_be_negative_but_not_before_its_call(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 3000))
    for number in range(9):
        at = 300 * number
        graph = file.call("cudaGraphLaunch", (at, at + 100))
        for kernel in range(3):
            begin = at + 70 + 20 * kernel
            file.kernel(f"k{kernel}", (begin, begin + 19), call=graph)
    run = written(tmp_path, file)
    assert run.facts.lags["launch (cudaGraphLaunch)"].lag_ns == -30_000
    first = run.all_of("k0")[3]
    end, start = sorted(run.edges(first, EdgeKind.GRAPH_LAUNCH), key=lambda edge: edge.lag_us)
    assert (end.lag_us, start.lag_us) == (-30, 0)
    assert run.span(end.src) == (900, 1000)
    assert run.span(start.src)[1] == 900


def test_work_launched_before_the_window_is_released_at_its_recorded_start(tmp_path: Path) -> None:
    file = KinetoFile()
    file.kernel("head", (0, 40))
    file.kernel("head too", (45, 60))
    file.step(1, (10, 200))
    file.launched("k", (20, 25), (70, 100))
    run = written(tmp_path, file)
    tasks = run.graph.tasks
    heads = [run.task("head"), run.task("head too")]
    assert tasks.release_ns[heads].tolist() == [0, 45_000]
    assert tasks.fixed[heads].all()
    assert tasks.caller[heads].tolist() == [-1, -1]
    assert run.edge(heads[1], EdgeKind.STREAM_ORDER).src == heads[0]
    assert not tasks.fixed[run.task("k")]
    assert tasks.release_ns[run.task("k")] == NEVER_RELEASED_NS
    assert run.facts.unlinked_frac == pytest.approx(2 / 3)


def test_work_launched_before_the_first_step_is_fixed(tmp_path: Path) -> None:
    file = KinetoFile()
    file.launched("warm-up", (0, 5), (10, 30))
    file.step(1, (50, 200))
    file.launched("k", (60, 65), (70, 100))
    run = written(tmp_path, file)
    tasks = run.graph.tasks
    assert tasks.fixed[[run.task("warm-up"), run.task("k")]].tolist() == [True, False]
    assert tasks.step[[run.task("warm-up"), run.task("k")]].tolist() == [-1, 0]


def test_two_copies_of_one_call_are_both_launched_by_it(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 200))
    call = file.launched("k", (10, 15), (20, 60))
    file.kernel("k again", (62, 90), call=call)
    run = written(tmp_path, file)
    tasks = run.graph.tasks
    calls = run.all_of("cudaLaunchKernel", TaskKind.HOST_CALL)
    assert tasks.caller[[run.task("k"), run.task("k again")]].tolist() == calls * 2
