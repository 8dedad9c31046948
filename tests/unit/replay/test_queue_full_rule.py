"""Facts about launches that wait for a place in the queue of their stream; times in us."""

from pathlib import Path

from ingest.vocab import EdgeKind, Evidence, TaskKind
from tests.kineto import KinetoFile
from tests.replayed import Replayed, written

PLACES = 1_021
CALL, GAP = 5, 2
"""Own cost of a launch; from the end of its call, or of the kernel before, to a kernel's start."""
Times = list[tuple[float, float]]


def _schedule(count: int, kernel: float, places: int | None) -> tuple[Times, Times]:
    """When calls and kernels run if a stream holds so many unstarted launches."""
    calls: Times = []
    kernels: Times = []
    for number in range(count):
        begin = calls[-1][1] if calls else 0.0
        freed = kernels[number - places][0] if places and number >= places else begin
        calls.append((begin, max(begin, freed) + CALL))
        free = kernels[-1][1] if kernels else 0.0
        start = max(calls[-1][1], free) + GAP
        kernels.append((start, start + kernel))
    return calls, kernels


def _recorded(
    folder: Path, *, count: int = 1_400, kernel: float = 200, places: int | None = PLACES
) -> Replayed:
    calls, kernels = _schedule(count, kernel, places)
    file = KinetoFile()
    file.step(1, (0, calls[-1][1]))
    for call, run in zip(calls, kernels, strict=True):
        file.launched("k", call, run)
    return written(folder, file)


def test_launch_returns_its_own_cost_after_the_start_that_freed_its_place(tmp_path: Path) -> None:
    run = _recorded(tmp_path)
    kernels = run.all_of("k")
    for number, wait in zip((PLACES, 1_399), (run.waits()[0], run.waits()[-1]), strict=True):
        edge = run.edge(wait, EdgeKind.QUEUE_FULL)
        assert (edge.src, edge.lag_us, edge.from_start) == (kernels[number - PLACES], 0, True)
        assert edge.evidence == Evidence.RECORDED
    calls = run.all_of("cudaLaunchKernel", TaskKind.HOST_CALL)
    assert {run.span(call)[1] - run.span(call)[0] for call in calls} == {CALL}
    assert len(run.waits()) == 1_400 - PLACES
    assert run.is_exact()


def test_limit_is_the_depth_at_which_long_calls_stood(tmp_path: Path) -> None:
    run = _recorded(tmp_path, places=960)
    lag = run.facts.lags["queue_full (960 places)"]
    calls, _ = _schedule(1_400, 200, 960)
    assert (lag.is_default, lag.samples) == (False, sum(end - begin > 100 for begin, end in calls))
    assert run.facts.contradicted == {}


def test_faster_kernels_let_the_launches_go_on_sooner(tmp_path: Path) -> None:
    run = _recorded(tmp_path)
    faster = run.scaled({"k": 0.5})
    calls, kernels = _schedule(1_400, 100, PLACES)
    assert [run.span(task, faster) for task in run.all_of("k")] == kernels
    ends = [run.span(t, faster)[1] for t in run.all_of("cudaLaunchKernel", TaskKind.HOST_CALL)]
    assert ends == [end for _, end in calls]


def test_slower_kernels_hold_the_launches_longer(tmp_path: Path) -> None:
    run = _recorded(tmp_path)
    slower = run.scaled({"k": 3})
    calls, _ = _schedule(1_400, 600, PLACES)
    ends = [run.span(t, slower)[1] for t in run.all_of("cudaLaunchKernel", TaskKind.HOST_CALL)]
    assert ends == [end for _, end in calls]


def test_stream_that_stays_far_from_the_limit_has_no_queue(tmp_path: Path) -> None:
    run = _recorded(tmp_path, count=890)
    assert run.waits() == []
    assert not any(name.startswith("queue_full") for name in run.facts.lags)


def test_stream_near_the_limit_gets_the_documented_one(tmp_path: Path) -> None:
    run = _recorded(tmp_path, count=1_040, places=None)
    assert run.facts.lags["queue_full (1,024 places)"].is_default
    assert len(run.waits()) == 1_040 - 1_024
    calls = run.all_of("cudaLaunchKernel", TaskKind.HOST_CALL)
    assert {run.span(call)[1] - run.span(call)[0] for call in calls} == {CALL}


def test_driver_that_holds_more_than_the_documented_queue_has_no_known_limit(
    tmp_path: Path,
) -> None:
    run = _recorded(tmp_path, count=1_400, places=None)
    assert run.waits() == []
    assert run.facts.contradicted == {}


def test_work_launched_before_the_window_holds_places(tmp_path: Path) -> None:
    calls, kernels = _schedule(1_400, 200, PLACES)
    file = KinetoFile()
    first = 300
    file.step(1, (calls[first][0], calls[-1][1]))
    for run in kernels[:first]:
        file.kernel("k", run)
    for call, run in zip(calls[first:], kernels[first:], strict=True):
        file.launched("k", call, run)
    run = written(tmp_path, file)
    assert "queue_full (1,021 places)" in run.facts.lags
    edge = run.edge(run.waits()[0], EdgeKind.QUEUE_FULL)
    assert edge.src == run.all_of("k")[0]
    assert run.graph.tasks.fixed[edge.src]


def test_each_stream_has_a_queue_of_its_own(tmp_path: Path) -> None:
    calls, kernels = _schedule(1_400, 200, PLACES)
    file = KinetoFile()
    file.step(1, (0, calls[-1][1]))
    for number, (call, run) in enumerate(zip(calls, kernels, strict=True)):
        file.launched("k", call, run)
        if number % 10 == 0:
            other = (call[1] - 3, call[1] - 2)
            file.launched("other", other, (run[0] + 1, run[0] + 2), stream=13, thread=431)
    run = written(tmp_path, file)
    assert "queue_full (1,021 places)" in run.facts.lags
    sources = [run.sources(wait, EdgeKind.QUEUE_FULL) for wait in run.waits()]
    assert [names for names in sources if names] == [["k"]] * (1_400 - PLACES)
