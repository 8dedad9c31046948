"""Facts about event waits: what the profiler recorded, what the order of calls tells, what time."""

from pathlib import Path

from ingest.vocab import EdgeKind, Evidence, TaskKind
from tests.kineto import ALL_REDUCE, COMPUTE, NETWORK, KinetoFile
from tests.replayed import Edge, Replayed, written

RECORD = "record_param_comms"


def _event(run: Replayed, task: int) -> Edge:
    return run.edge(task, EdgeKind.EVENT_WAIT)


def _arrivals(run: Replayed) -> list[int]:
    return run.all_of(ALL_REDUCE, TaskKind.ARRIVE)


def _transfers(run: Replayed) -> list[int]:
    return run.all_of(ALL_REDUCE, TaskKind.TRANSFER)


def test_record_and_wait_without_launch_between_are_a_pair(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 300))
    file.launched("k1", (5, 10), (15, 100), stream=7)
    file.record((12, 13))
    file.wait((14, 15))
    file.launched("k2", (20, 25), (102, 150), stream=13)
    run = written(tmp_path, file)
    edge = _event(run, run.task("k2"))
    assert (edge.src, edge.evidence) == (run.task("k1"), Evidence.ORDERED)


def test_pair_on_one_stream_adds_nothing(tmp_path: Path) -> None:
    file = KinetoFile(ranks=(0, 1))
    file.step(1, (0, 300))
    file.launched("k1", (5, 10), (15, 100))
    file.op(RECORD, (11, 40))
    file.record((12, 13))
    file.wait((14, 15))
    file.all_reduce(1, (20, 25), (102, 150), stream=COMPUTE)
    run = written(tmp_path, file)
    assert run.edges(_arrivals(run)[0], EdgeKind.EVENT_WAIT) == []
    assert run.sources(_arrivals(run)[0], EdgeKind.STREAM_ORDER) == ["k1"]


def test_wait_inside_a_collectives_record_is_for_the_stream_of_the_library(tmp_path: Path) -> None:
    file = KinetoFile(ranks=(0, 1))
    file.step(1, (0, 300))
    file.launched("k1", (5, 10), (15, 100))
    file.op(RECORD, (11, 40))
    file.record((12, 13))
    file.wait((14, 15))
    file.all_reduce(1, (20, 25), (102, 150))
    run = written(tmp_path, file)
    edge = _event(run, _arrivals(run)[0])
    assert (edge.src, edge.evidence) == (run.task("k1"), Evidence.ORDERED)


def _two_collectives(file: KinetoFile, ends: tuple[float, float]) -> None:
    """Two all-reduces on streams of their own, each with its end event; then another kernel."""
    file.step(1, (0, 1000))
    for number, (end, stream) in enumerate(zip(ends, (20, 24), strict=True)):
        at = 20 * number
        file.op(RECORD, (at, at + 10))
        file.all_reduce(number + 1, (at + 2, at + 5), (at + 10, end), stream=stream)
        file.record((at + 6, at + 7))
    file.launched("between", (42, 45), (48, 60))


def test_lone_wait_takes_the_oldest_end_of_a_collective(tmp_path: Path) -> None:
    file = KinetoFile(ranks=(0, 1))
    _two_collectives(file, ends=(100, 150))
    file.wait((50, 51))
    file.launched("first", (52, 55), (160, 170))
    file.wait((60, 61))
    file.launched("second", (62, 65), (172, 180))
    run = written(tmp_path, file)
    first, second = _event(run, run.task("first")), _event(run, run.task("second"))
    assert [first.src, second.src] == _transfers(run)
    assert first.evidence == second.evidence == Evidence.ORDERED


def test_wait_right_after_the_end_event_is_for_that_collective(tmp_path: Path) -> None:
    file = KinetoFile(ranks=(0, 1))
    file.step(1, (0, 1000))
    for number in range(2):
        at = 20 * number
        file.op(RECORD, (at, at + 10))
        file.all_reduce(number + 1, (at + 2, at + 5), (at + 10, at + 100), stream=20 + number)
        file.record((at + 6, at + 7))
    file.wait((50, 51))
    file.launched("k", (52, 55), (160, 170))
    run = written(tmp_path, file)
    assert _event(run, run.task("k")).src == _transfers(run)[1]


def test_lone_waits_in_a_row_take_one_end_each(tmp_path: Path) -> None:
    file = KinetoFile(ranks=(0, 1))
    _two_collectives(file, ends=(100, 150))
    file.wait((50, 51))
    file.wait((52, 53))
    file.launched("k", (54, 57), (160, 170))
    run = written(tmp_path, file)
    edges = run.edges(run.task("k"), EdgeKind.EVENT_WAIT)
    assert sorted(edge.src for edge in edges) == _transfers(run)


def test_end_that_contradicts_the_recording_stays_for_a_later_wait(tmp_path: Path) -> None:
    file = KinetoFile(ranks=(0, 1))
    _two_collectives(file, ends=(500, 150))
    file.wait((50, 51))
    file.launched("early", (52, 55), (160, 170))
    file.wait((60, 61))
    file.launched("late", (62, 65), (510, 520))
    run = written(tmp_path, file)
    slow, quick = sorted(_transfers(run), key=lambda task: -run.span(task)[1])
    assert _event(run, run.task("early")).src == quick
    assert _event(run, run.task("late")).src == slow
    assert run.facts.contradicted == {}


def test_record_that_nobody_waits_for_makes_no_edge(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 300))
    file.launched("k1", (5, 10), (15, 30), stream=7)
    file.record((12, 13))
    file.launched("k2", (20, 25), (120, 150), stream=13)
    run = written(tmp_path, file)
    assert run.edges(run.task("k2"), EdgeKind.EVENT_WAIT) == []


def test_pair_whose_recorded_stream_contradicts_is_a_lone_wait(tmp_path: Path) -> None:
    file = KinetoFile(ranks=(0, 1))
    file.step(1, (0, 1000))
    file.op(RECORD, (0, 10))
    file.all_reduce(1, (2, 5), (10, 100))
    file.record((6, 7))
    file.launched("long", (20, 25), (30, 600), stream=13)
    file.record((30, 31))
    file.wait((32, 33))
    file.launched("k", (40, 45), (102, 150), stream=7)
    run = written(tmp_path, file)
    assert _event(run, run.task("k")).src == _transfers(run)[0]
    assert run.facts.contradicted == {}


def test_recorded_wait_that_contradicts_is_not_made_and_counts(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 1000))
    file.launched("long", (5, 10), (15, 600), stream=13)
    event = file.record((12, 13))
    file.wait((14, 15), on=(13, event), waiting=COMPUTE)
    file.launched("k", (20, 25), (102, 150), stream=COMPUTE)
    run = written(tmp_path, file)
    assert run.edges(run.task("k"), EdgeKind.EVENT_WAIT) == []
    assert run.facts.contradicted == {"event_wait": 1}


def _twice_recorded(folder: Path, *, second_names: int) -> Replayed:
    """One event: recorded after k1 on stream 7, waited for twice, recorded after k2 on stream 13.

    The row of the second wait names the first (0) or the second (1) record.
    """
    file = KinetoFile()
    file.step(1, (0, 1000))
    file.launched("k1", (5, 10), (15, 100), stream=7)
    records = [(7, file.record((12, 13)))]
    file.wait((14, 15), on=records[0], event=5, waiting=NETWORK)
    file.launched("first", (16, 18), (102, 120), stream=NETWORK)
    file.launched("k2", (20, 25), (30, 600), stream=13)
    second = file.wait((27, 28), waiting=24)
    file.launched("second", (30, 33), (102, 150), stream=24)
    records.append((13, file.record((40, 41))))
    stream, record = records[second_names]
    file.sync_row(
        "Stream Wait Event",
        (27, 27),
        second,
        stream=24,
        wait_on_stream=stream,
        wait_on_cuda_event_record_corr_id=record,
        wait_on_cuda_event_id=5,
    )
    file.wait((42, 43), on=records[1], event=5, waiting=28)
    file.launched("third", (44, 46), (602, 640), stream=28)
    return written(folder, file)


def test_event_that_is_recorded_again_is_waited_for_in_the_version_that_the_row_names(
    tmp_path: Path,
) -> None:
    run = _twice_recorded(tmp_path, second_names=0)
    sources = [_event(run, run.task(name)).src for name in ("first", "second", "third")]
    assert sources == [run.task("k1"), run.task("k1"), run.task("k2")]


def test_version_that_was_recorded_after_the_wait_is_not_the_one_waited_for(
    tmp_path: Path,
) -> None:
    run = _twice_recorded(tmp_path, second_names=1)
    edge = _event(run, run.task("second"))
    assert (edge.src, edge.evidence) == (run.task("k1"), Evidence.RECORDED)
    assert run.facts.contradicted == {}


def test_without_record_rows_a_collective_waits_for_the_stream_last_launched_on(
    tmp_path: Path,
) -> None:
    file = KinetoFile(ranks=(0, 1))
    file.step(1, (0, 300))
    file.launched("k1", (5, 10), (15, 100))
    file.op(RECORD, (11, 40))
    file.wait((14, 15))
    file.all_reduce(1, (20, 25), (102, 150))
    run = written(tmp_path, file)
    edge = _event(run, _arrivals(run)[0])
    assert (edge.src, edge.evidence) == (run.task("k1"), Evidence.ORDERED)


def _without_records(file: KinetoFile, *members: tuple[float, int]) -> None:
    """All-reduces 20 us apart, each with (end, stream), in a file that shows no record."""
    file.step(1, (0, 1000))
    for number, (end, stream) in enumerate(members):
        at = 20 * number
        file.op(RECORD, (at, at + 10))
        file.all_reduce(number + 1, (at + 2, at + 5), (at + 10, end), stream=stream)


def test_without_record_rows_a_lone_wait_takes_the_oldest_end(tmp_path: Path) -> None:
    file = KinetoFile(ranks=(0, 1))
    _without_records(file, (100, 20), (150, 24))
    file.wait((50, 51))
    file.launched("first", (52, 55), (190, 200))
    file.wait((60, 61))
    file.launched("second", (62, 65), (202, 210))
    run = written(tmp_path, file)
    edges = [_event(run, run.task(name)) for name in ("first", "second")]
    assert [edge.src for edge in edges] == _transfers(run)
    assert {edge.evidence for edge in edges} == {Evidence.ORDERED}


def test_without_record_rows_a_lone_wait_takes_the_end_that_explains_the_start(
    tmp_path: Path,
) -> None:
    file = KinetoFile(ranks=(0, 1))
    _without_records(file, (100, 20), (150, 24))
    file.wait((50, 51))
    file.launched("k", (52, 55), (158, 170))
    run = written(tmp_path, file)
    edge = _event(run, run.task("k"))
    assert (edge.src, edge.evidence) == (_transfers(run)[1], Evidence.INFERRED)


def test_waiting_for_a_collective_is_waiting_for_those_before_it_on_its_stream(
    tmp_path: Path,
) -> None:
    file = KinetoFile(ranks=(0, 1))
    _without_records(file, (100, 20), (150, 20), (175, 24))
    file.wait((60, 61))
    file.launched("first", (62, 65), (158, 161))
    file.wait((70, 71))
    file.launched("second", (72, 75), (190, 200))
    run = written(tmp_path, file)
    assert [_event(run, run.task(name)).src for name in ("first", "second")] == _transfers(run)[1:]


def test_without_record_rows_a_wait_right_before_a_collective_is_for_the_callers_stream(
    tmp_path: Path,
) -> None:
    file = KinetoFile(ranks=(0, 1))
    file.step(1, (0, 1000))
    file.all_reduce(1, (2, 5), (10, 100))
    file.launched("gemm", (12, 15), (20, 300))
    file.wait((20, 21))
    file.all_reduce(2, (25, 30), (302, 400))
    run = written(tmp_path, file)
    edge = _event(run, _arrivals(run)[1])
    assert (edge.src, edge.evidence) == (run.task("gemm"), Evidence.ORDERED)


def test_lone_wait_takes_no_collective_of_the_waiting_stream(tmp_path: Path) -> None:
    file = KinetoFile(ranks=(0, 1))
    _without_records(file, (100, COMPUTE))
    file.wait((50, 51))
    file.launched("k", (52, 55), (190, 200), stream=COMPUTE)
    run = written(tmp_path, file)
    assert run.edges(run.task("k"), EdgeKind.EVENT_WAIT) == []


def test_without_record_rows_a_wait_right_after_a_collectives_launch_is_for_that_one(
    tmp_path: Path,
) -> None:
    file = KinetoFile(ranks=(0, 1))
    file.step(1, (0, 1000))
    file.op(RECORD, (0, 10))
    file.all_reduce(1, (2, 5), (10, 100))
    file.launched("between", (12, 15), (20, 40))
    file.op(RECORD, (20, 30))
    file.all_reduce(2, (22, 25), (101, 400))
    file.op(RECORD, (35, 40))
    file.wait((36, 37))
    file.launched("k", (52, 55), (440, 470), stream=48)
    run = written(tmp_path, file)
    edge = _event(run, run.task("k"))
    assert (edge.src, edge.evidence) == (_transfers(run)[1], Evidence.ORDERED)


def test_without_record_rows_a_further_wait_takes_the_end_nearest_in_time(tmp_path: Path) -> None:
    file = KinetoFile(ranks=(0, 1))
    file.step(1, (0, 1000))
    file.op(RECORD, (0, 10))
    file.all_reduce(1, (2, 5), (10, 100))
    file.wait((50, 51))
    file.launched("first", (52, 55), (160, 170))
    file.wait((60, 61))
    file.launched("second", (62, 65), (172, 180))
    run = written(tmp_path, file)
    edge = _event(run, run.task("second"))
    assert (edge.src, edge.evidence) == (_transfers(run)[0], Evidence.INFERRED)


def test_start_that_nothing_explains_waits_for_the_stream_that_ended_just_before(
    tmp_path: Path,
) -> None:
    file = KinetoFile()
    file.step(1, (0, 300))
    file.launched("k1", (5, 10), (15, 150), stream=7)
    file.launched("k2", (20, 25), (153, 200), stream=13)
    run = written(tmp_path, file)
    edge = _event(run, run.task("k2"))
    assert (edge.src, edge.evidence) == (run.task("k1"), Evidence.INFERRED)


def test_start_that_the_launch_explains_waits_for_nothing_else(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 300))
    file.launched("k1", (5, 10), (15, 150), stream=7)
    file.launched("k2", (140, 145), (153, 200), stream=13)
    run = written(tmp_path, file)
    assert run.edges(run.task("k2"), EdgeKind.EVENT_WAIT) == []


def test_event_lag_is_the_median_over_work_that_was_queued(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 5000))
    for number, lag in enumerate((3, 3, 3, 3, 3, 4, 4, 9, 300)):
        at = 500 * number
        file.launched("k1", (at, at + 5), (at + 10, at + 100), stream=7)
        event = file.record((at + 6, at + 7))
        file.wait((at + 8, at + 9), on=(7, event), waiting=NETWORK)
        file.launched("k2", (at + 10, at + 15), (at + 100 + lag, at + 450), stream=NETWORK)
    run = written(tmp_path, file)
    lag = run.facts.lags["event_wait"]
    assert (lag.lag_ns, lag.samples, lag.is_default) == (3_000, 8, False)
    assert run.graph.tasks.residual_ns[run.all_of("k2")].tolist()[-1] == 297_000
