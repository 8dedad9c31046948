"""Facts about calls that block: what they wait for, when they go on, what is work."""

from pathlib import Path

import pytest

from ingest.vocab import EdgeKind, Evidence
from tests.kineto import AUTOGRAD, KinetoFile
from tests.replayed import Replayed, written


def _one_kernel(folder: Path, call: str, span: tuple[float, float], end: float) -> Replayed:
    """A kernel on [15, end], and a call that may wait for it."""
    file = KinetoFile()
    file.step(1, (0, 1000))
    file.launched("k", (5, 10), (15, end))
    file.call(call, span)
    return written(folder, file)


BLOCKING = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaFree", "cudaEventSynchronize")


@pytest.mark.parametrize("name", BLOCKING)
def test_blocking_call_goes_on_after_the_work_that_ended_inside_it(
    tmp_path: Path, name: str
) -> None:
    run = _one_kernel(tmp_path, name, (100, 150), end=130)
    (wait,) = run.waits()
    edge = run.edge(wait, EdgeKind.HOST_SYNC)
    assert (edge.src, edge.lag_us) == (run.task("k"), 5)
    assert run.span(wait) == (135, 135)
    assert run.span(run.call(name)) == (135, 150), "what the call does after that is work"


@pytest.mark.parametrize("name", ["cudaDeviceSynchronize", "cudaFree"])
def test_blocking_call_that_found_the_work_done_is_all_work(tmp_path: Path, name: str) -> None:
    run = _one_kernel(tmp_path, name, (100, 150), end=80)
    assert run.span(run.call(name)) == (100, 150)
    later = run.scaled({"k": 2})
    assert run.span(run.task("k"), later) == (15, 145)
    assert run.span(run.call(name), later) == (145, 195), "it waits where the work comes later"


def test_allocation_waits_only_for_work_that_ended_near_its_end(tmp_path: Path) -> None:
    near = _one_kernel(tmp_path, "cudaMalloc", (100, 200), end=150)
    assert [near.edge(wait, EdgeKind.HOST_SYNC).lag_us for wait in near.waits()] == [5]
    far = _one_kernel(tmp_path, "cudaMalloc", (100, 300), end=150)
    assert far.waits() == []
    assert far.span(far.call("cudaMalloc")) == (100, 300)
    assert far.facts.contradicted == {}


def test_return_lag_is_the_median_of_calls_that_waited(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 3000))
    for number, lag in enumerate((7, 7, 7, 7, 7, 8, 8, 9, 30)):
        at = 200 * number
        file.launched("k", (at + 5, at + 10), (at + 15, at + 80))
        file.call("cudaDeviceSynchronize", (at + 20, at + 80 + lag))
    run = written(tmp_path, file)
    lag = run.facts.lags["host_sync"]
    assert (lag.lag_ns, lag.samples, lag.is_default) == (7_000, 9, False)


def test_device_wide_call_waits_for_every_stream(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 300))
    file.launched("k1", (5, 10), (15, 100), stream=7)
    file.launched("k2", (20, 25), (30, 180), stream=13)
    file.call("cudaDeviceSynchronize", (40, 190))
    run = written(tmp_path, file)
    (wait,) = run.waits()
    assert run.sources(wait, EdgeKind.HOST_SYNC) == ["k1", "k2"]


def test_stream_synchronise_waits_for_the_stream_that_the_profiler_names(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 300))
    file.launched("k1", (5, 10), (15, 100), stream=7)
    file.launched("k2", (20, 25), (30, 280), stream=13)
    call = file.call("cudaStreamSynchronize", (40, 110))
    file.sync_row("Stream Sync", (40, 110), call, stream=7)
    run = written(tmp_path, file)
    (wait,) = run.waits()
    edge = run.edge(wait, EdgeKind.HOST_SYNC)
    assert (edge.src, edge.evidence) == (run.task("k1"), Evidence.RECORDED)


def test_stream_synchronise_without_row_waits_for_the_stream_last_launched_on(
    tmp_path: Path,
) -> None:
    file = KinetoFile()
    file.step(1, (0, 300))
    file.launched("k1", (5, 10), (15, 280), stream=7)
    file.launched("k2", (20, 25), (30, 100), stream=13)
    file.call("cudaStreamSynchronize", (40, 110))
    run = written(tmp_path, file)
    (wait,) = run.waits()
    edge = run.edge(wait, EdgeKind.HOST_SYNC)
    assert (edge.src, edge.evidence) == (run.task("k2"), Evidence.ORDERED)


def test_event_synchronise_waits_for_the_work_before_the_record(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 300))
    file.launched("before", (5, 10), (15, 100))
    record = file.record((12, 13))
    file.launched("after", (20, 25), (101, 280))
    call = file.call("cudaEventSynchronize", (40, 110))
    file.sync_row(
        "Event Sync",
        (40, 110),
        call,
        wait_on_stream=7,
        wait_on_cuda_event_record_corr_id=record,
    )
    run = written(tmp_path, file)
    (wait,) = run.waits()
    edge = run.edge(wait, EdgeKind.HOST_SYNC)
    assert (edge.src, edge.evidence) == (run.task("before"), Evidence.RECORDED)


def test_work_that_ended_after_the_call_was_not_waited_for_and_counts(tmp_path: Path) -> None:
    run = _one_kernel(tmp_path, "cudaDeviceSynchronize", (100, 150), end=200)
    assert run.waits() == []
    assert run.facts.contradicted == {"host_sync": 1}


def _long_op(folder: Path, *, records_events: bool) -> Replayed:
    """An operator goes on 20 us after a kernel ended that was launched before it."""
    file = KinetoFile()
    file.step(1, (0, 2000))
    file.launched("k", (5, 10), (15, 900))
    if records_events:
        file.record((12, 13))
    file.op("aten::item", (30, 920))
    file.op("aten::add", (930, 950))
    return written(folder, file)


def test_file_without_event_records_implies_waits_for_device_work(tmp_path: Path) -> None:
    run = _long_op(tmp_path, records_events=False)
    (wait,) = run.waits()
    edge = run.edge(wait, EdgeKind.HOST_SYNC)
    assert (edge.src, edge.evidence) == (run.task("k"), Evidence.INFERRED)
    assert run.span(wait) == (920, 920)
    shorter = run.scaled({"k": 0.5})
    assert run.span(wait, shorter)[0] == 920 - 442.5


def test_file_with_event_records_implies_none(tmp_path: Path) -> None:
    run = _long_op(tmp_path, records_events=True)
    assert run.waits() == []
    assert "host_sync (implied)" not in run.facts.lags


def test_long_runtime_call_is_no_implied_wait(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 2000))
    file.launched("k", (5, 10), (15, 900))
    file.launched("slow launch", (30, 920), (922, 950))
    run = written(tmp_path, file)
    assert run.waits() == []


def test_work_launched_inside_a_stretch_is_no_cause_of_it(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 2000))
    file.op("aten::item", (30, 920))
    file.launched("k", (100, 105), (110, 900), thread=AUTOGRAD)
    run = written(tmp_path, file)
    assert run.waits() == []
