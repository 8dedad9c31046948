"""Small traces whose schedule after a change can be told by hand; times in us.

Each waits for something in another way. The lags are the defaults, which the traces keep: 2 after
the end of a launch, 1.5 after the task before on a stream or an event, 5 to return from a wait.
"""

from pathlib import Path

import pytest

from ingest.vocab import EdgeKind
from tests.kineto import COMPUTE, KinetoFile
from tests.replayed import Replayed, written

LOADER = 440
"""Thread of a data loader."""


def _after(run: Replayed, name: str, factor: float, task: int) -> tuple[float, float]:
    """When `task` runs if the device work `name` takes `factor` times as long."""
    return run.span(task, run.scaled({name: factor}))


def test_item_returns_after_its_copy_which_follows_its_stream(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 400))
    file.launched("k", (5, 10), (12, 100))
    file.op("aten::item", (15, 120))
    file.copy("DtoH (Device -> Pageable)", (20, 115), (101.5, 103.5))
    file.launched("next", (130, 135), (137, 150))
    run = written(tmp_path, file)
    copy, following = run.task("Memcpy DtoH (Device -> Pageable)"), run.task("next")
    assert run.graph.tasks.residual_ns[[copy, following]].tolist() == [0, 0]
    assert _after(run, "k", 2, copy)[0] == 101.5 + 88
    assert _after(run, "k", 2, following)[0] == 137 + 88
    assert _after(run, "k", 0, copy)[0] == 20 + 2, "launched from the start of the call"
    assert _after(run, "k", 0, following)[0] == 22 + 2 + 5 + (115 - 108.5) + 20 + 2


def test_copy_to_pinned_memory_holds_nobody(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 400))
    file.launched("k", (5, 10), (12, 100))
    file.copy("DtoH (Device -> Pinned)", (20, 26), (101.5, 103.5))
    file.launched("next", (30, 35), (105, 150))
    run = written(tmp_path, file)
    assert run.waits() == []
    calls = run.all_of("cudaLaunchKernel")
    assert _after(run, "k", 3, calls[-1]) == (30, 35)


def test_plain_copy_returns_after_itself(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 400))
    file.launched("k", (5, 10), (12, 100))
    file.copy("HtoD (Pageable -> Device)", (20, 130), (101.5, 121.5), api="cudaMemcpy")
    run = written(tmp_path, file)
    (wait,) = run.waits()
    assert run.span(wait)[1] == 126.5
    assert _after(run, "k", 0.5, wait)[1] == 126.5 - 44


@pytest.mark.parametrize(("factor", "resumes"), [(1, 105), (2, 193), (0.5, 61)])
def test_free_goes_on_when_the_device_is_empty_and_keeps_its_own_cost(
    tmp_path: Path, factor: float, resumes: float
) -> None:
    file = KinetoFile()
    file.step(1, (0, 2000))
    file.launched("k", (5, 10), (12, 100))
    file.call("cudaFree", (20, 1_205))
    run = written(tmp_path, file)
    free = run.call("cudaFree")
    assert _after(run, "k", factor, free) == (resumes, resumes + 1_100)


@pytest.mark.parametrize("name", ["cudaMallocAsync", "cudaFreeAsync"])
def test_allocation_in_stream_order_waits_for_nothing(tmp_path: Path, name: str) -> None:
    file = KinetoFile()
    file.step(1, (0, 400))
    file.launched("k", (5, 10), (12, 100))
    file.call(name, (20, 105))
    run = written(tmp_path, file)
    assert run.waits() == []


def test_kernel_that_overlaps_the_one_before_keeps_its_overlap(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 400))
    file.launched("first", (5, 10), (12, 100))
    file.launched("dependent", (15, 20), (96, 150))
    run = written(tmp_path, file)
    dependent = run.task("dependent")
    assert run.edge(dependent, EdgeKind.STREAM_ORDER).lag_us == -4
    assert run.graph.tasks.residual_ns[dependent] == 0
    assert _after(run, "first", 2, dependent) == (96 + 88, 150 + 88)


def test_stream_waits_for_an_event_of_another(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 400))
    file.launched("k", (5, 10), (12, 100), stream=13)
    ready = file.record((11, 12))
    file.launched("later on that stream", (13, 15), (101.5, 300), stream=13)
    file.wait((16, 17), on=(13, ready), waiting=COMPUTE)
    file.launched("waits", (18, 20), (101.5, 150))
    run = written(tmp_path, file)
    waits = run.task("waits")
    assert _after(run, "k", 2, waits)[0] == 101.5 + 88
    assert _after(run, "k", 0, waits)[0] == 20 + 2
    assert _after(run, "later on that stream", 2, waits)[0] == 101.5


def test_main_thread_waits_for_the_data_loaders_thread(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 2_000))
    file.op("enumerate(DataLoader)", (10, 1_000))
    for number in range(9):
        at = 50 + 100 * number
        file.op("aten::stack", (at, at + 100), thread=LOADER)
    file.op("aten::mm", (1_020, 1_040))
    file.launched("k", (1_025, 1_030), (1_032, 1_050))
    run = written(tmp_path, file)
    (wait,) = run.waits()
    edge = run.edge(wait, EdgeKind.HAND_OVER)
    assert run.graph.lanes[run.graph.tasks.lane[edge.src]].role != "main"
    assert run.span(edge.src)[1] == 950
    assert run.span(wait) == (1_000, 1_000)


def test_stream_synchronise_leaves_other_streams_alone(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 110))
    file.launched("waited for", (5, 10), (12, 100), stream=13)
    file.launched("not", (11, 14), (16, 300))
    call = file.call("cudaStreamSynchronize", (20, 105))
    file.sync_row("Stream Sync", (20, 105), call, stream=13)
    run = written(tmp_path, file)
    (wait,) = run.waits()
    assert _after(run, "not", 3, wait)[1] == 105
    assert _after(run, "waited for", 2, wait)[1] == 105 + 88
