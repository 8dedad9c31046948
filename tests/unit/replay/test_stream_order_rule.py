"""Facts about neighbours of a stream."""

from pathlib import Path

from ingest.vocab import EdgeKind
from tests.kineto import KinetoFile
from tests.replayed import written


def test_kernel_follows_the_previous_one_of_its_stream(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 300))
    file.launched("k1", (5, 10), (15, 100))
    file.launched("other", (12, 14), (16, 90), stream=13)
    file.launched("k2", (20, 25), (101, 150))
    run = written(tmp_path, file)
    edge = run.edge(run.task("k2"), EdgeKind.STREAM_ORDER)
    assert (edge.src, edge.lag_us) == (run.task("k1"), 1.5)
    assert run.edges(run.task("other"), EdgeKind.STREAM_ORDER) == []


def test_short_overlap_is_a_programmatic_dependent_launch(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 300))
    file.launched("k1", (5, 10), (15, 100))
    file.launched("k2", (20, 25), (94, 150))
    run = written(tmp_path, file)
    edge = run.edge(run.task("k2"), EdgeKind.STREAM_ORDER)
    assert (edge.src, edge.lag_us) == (run.task("k1"), -6)
    assert run.facts.contradicted == {}
    assert run.is_exact()


def test_long_overlap_contradicts_and_the_last_that_had_ended_stands_in(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 300))
    file.launched("k0", (1, 3), (4, 12))
    file.launched("k1", (5, 10), (15, 100))
    file.launched("k2", (20, 25), (60, 150))
    run = written(tmp_path, file)
    assert run.edge(run.task("k2"), EdgeKind.STREAM_ORDER).src == run.task("k0")
    assert run.facts.contradicted == {"stream_order": 1}


def test_stream_lag_is_the_mean_over_work_that_was_queued(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 5000))
    now = 2100.0
    file.launched("k", (0, 5), (10, now))
    for number, lag in enumerate((1, 1, 1, 1, 1, 2, 2, 2, 400)):
        file.launched("k", (10 + 10 * number, 15 + 10 * number), (now + lag, now + lag + 50))
        now += lag + 50
    run = written(tmp_path, file)
    lag = run.facts.lags["stream_order"]
    assert (lag.lag_ns, lag.samples, lag.is_default) == (1_375, 8, False)


def test_stream_lag_differs_by_what_carries_out_the_neighbours(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 400))
    now = 2100.0
    file.launched("k", (0, 5), (10, now))
    for number in range(8):
        at = 10 + 20 * number
        file.copy("DtoD (Device -> Device)", (at, at + 5), (now + 6, now + 26))
        file.launched("k", (at + 10, at + 15), (now + 28, now + 78))
        now += 78
    run = written(tmp_path, file)
    copies, kernels = run.all_of("Memcpy DtoD (Device -> Device)"), run.all_of("k")[1:]
    assert {run.edge(task, EdgeKind.STREAM_ORDER).lag_us for task in copies} == {6}
    assert {run.edge(task, EdgeKind.STREAM_ORDER).lag_us for task in kernels} == {2}
    assert not run.graph.tasks.residual_ns[copies + kernels].any()


def test_work_launched_before_the_window_is_not_pushed_beyond_its_recorded_start(
    tmp_path: Path,
) -> None:
    file = KinetoFile()
    file.kernel("head", (0, 100))
    file.kernel("head close behind", (100.2, 200))
    file.step(1, (10, 300))
    file.launched("k", (20, 25), (201.5, 250))
    run = written(tmp_path, file)
    assert run.edge(run.task("head close behind"), EdgeKind.STREAM_ORDER).lag_us == 0.2
    assert run.edge(run.task("k"), EdgeKind.STREAM_ORDER).lag_us == 1.5


def test_equal_stream_numbers_of_two_devices_are_two_streams(tmp_path: Path) -> None:
    file = KinetoFile(gpus=2)
    file.step(1, (0, 300))
    file.launched("k1", (5, 10), (15, 100))
    call = file.call("cudaLaunchKernel", (20, 25))
    file.kernel("k2", (101, 150), call=call, device=1)
    run = written(tmp_path, file)
    assert run.edges(run.task("k2"), EdgeKind.STREAM_ORDER) == []
    lanes = [
        run.graph.lanes[lane] for lane in run.graph.tasks.lane[[run.task("k1"), run.task("k2")]]
    ]
    assert [lane.device for lane in lanes] == [0, 1]
