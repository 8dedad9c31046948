"""Facts about CUDA graphs: work that was not recorded, branches, and streams held at the start."""

from pathlib import Path

import numpy as np
import pytest

from ingest.vocab import EdgeKind, Evidence
from tests.kineto import KinetoFile
from tests.replayed import written

LAG = 2
"""Between the end of a call or a kernel and the next start, us."""


def _graph(
    file: KinetoFile, at: float, spans: list[tuple[str, float, float]], *, stream: int = 7
) -> None:
    """A graph launch of 10 us; the kernels' spans count from its end."""
    call = file.call("cudaGraphLaunch", (at, at + 10))
    for name, start, end in spans:
        file.kernel(name, (at + 10 + start, at + 10 + end), stream=stream, call=call)


def _launches_with_gap(file: KinetoFile, gaps: list[float]) -> None:
    """The same graph once per gap: 100 us of `a`, the gap, 100 us of `b`."""
    file.step(1, (0, 10_000))
    for number, gap in enumerate(gaps):
        _graph(
            file, 1000 * number, [("a", LAG, 100 + LAG), ("b", 100 + LAG + gap, 200 + LAG + gap)]
        )


def test_gap_that_every_launch_of_a_graph_has_is_work_that_was_not_recorded(
    tmp_path: Path,
) -> None:
    file = KinetoFile()
    _launches_with_gap(file, [300, 310, 305])
    run = written(tmp_path, file)
    edges = [run.edge(task, EdgeKind.STREAM_ORDER) for task in run.all_of("b")]
    assert [edge.lag_us for edge in edges] == [305, 305, 305]
    assert {edge.evidence for edge in edges} == {Evidence.INFERRED}
    residuals_ns = run.graph.tasks.residual_ns[run.all_of("b")]
    assert residuals_ns.tolist() == [-5_000, 5_000, 0]


@pytest.mark.parametrize("gaps", [[300], [300, 400], [300, 500, 900], [18, 18, 18]])
def test_gap_of_one_or_unlike_launches_and_a_short_one_have_no_known_cause(
    tmp_path: Path, gaps: list[float]
) -> None:
    file = KinetoFile()
    _launches_with_gap(file, gaps)
    run = written(tmp_path, file)
    lags = {run.edge(task, EdgeKind.STREAM_ORDER).lag_us for task in run.all_of("b")}
    assert max(lags) < min(gaps)


def test_unrecorded_first_node_delays_what_follows_the_launch(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 10_000))
    for at in (0, 1000, 2000):
        _graph(file, at, [("a", 400, 500)])
    run = written(tmp_path, file)
    lags = [run.edge(task, EdgeKind.GRAPH_LAUNCH).lag_us for task in run.all_of("a")]
    assert lags == [400 + LAG] * 3
    assert np.abs(run.graph.tasks.residual_ns[run.all_of("a")]).max() <= LAG * 1000


def test_branch_of_a_graph_waits_for_the_kernel_that_ended_just_before(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 10_000))
    call = file.call("cudaGraphLaunch", (0, 10))
    file.kernel("root", (12, 40), stream=7, call=call)
    file.kernel("branch", (42, 60), stream=9, call=call)
    run = written(tmp_path, file)
    edge = run.edge(run.task("branch"), EdgeKind.EVENT_WAIT)
    assert (edge.src, edge.evidence) == (run.task("root"), Evidence.INFERRED)


def test_branch_that_begins_late_at_every_launch_waits_for_its_join_not_for_unseen_work(
    tmp_path: Path,
) -> None:
    file = KinetoFile()
    file.step(1, (0, 10_000))
    for at in (0, 1000, 2000):
        call = file.call("cudaGraphLaunch", (at, at + 10))
        file.kernel("root", (at + 12, at + 400), stream=7, call=call)
        file.kernel("branch", (at + 402, at + 450), stream=9, call=call)
    run = written(tmp_path, file)
    sources = [run.sources(task, EdgeKind.EVENT_WAIT) for task in run.all_of("branch")]
    assert sources == [["root"]] * 3
    assert max(run.edge(t, EdgeKind.GRAPH_LAUNCH).lag_us for t in run.all_of("branch")) <= LAG


def test_stream_that_begins_late_on_an_idle_device_is_held_by_work_before_the_recording(
    tmp_path: Path,
) -> None:
    file = KinetoFile()
    file.launched("first", (10, 15), (5_000, 5_100))
    file.launched("second", (20, 25), (5_102, 5_200))
    run = written(tmp_path, file)
    strict = run.base.strict_schedule.start_ns
    assert strict[run.task("first")] == run.graph.tasks.ts_ns[run.task("first")]
    assert run.facts.streams_held == 1
    assert any("before the recording" in reason for reason in run.base.trust.reasons)
    assert run.base.trust.explained_frac < 0.1


def test_stream_that_begins_late_beside_recorded_work_has_no_known_cause(tmp_path: Path) -> None:
    file = KinetoFile()
    file.launched("other", (2, 5), (8, 4_000), stream=9)
    file.launched("first", (10, 15), (5_000, 5_100))
    run = written(tmp_path, file)
    assert run.facts.streams_held == 0
    assert run.graph.tasks.residual_ns[run.task("first")] > 4_900_000


def test_kernel_whose_launch_is_lost_in_the_middle_of_a_stream_follows_its_stream(
    tmp_path: Path,
) -> None:
    file = KinetoFile()
    file.step(1, (0, 1000))
    file.launched("first", (10, 15), (20, 100))
    file.kernel("lost", (102, 200))
    file.launched("last", (30, 35), (202, 300))
    run = written(tmp_path, file)
    assert not run.graph.tasks.fixed[run.task("lost")]
    halved = run.scaled({"first": 0.5})
    assert run.span(run.task("lost"), halved) == (62, 160)
