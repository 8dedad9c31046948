"""Cases with known answers: what depends on what, and what a change would do.

Each case is read twice: as written here, and as the file that it was told from, where the folder
`shared/` lies beside the checkout.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from ingest.vocab import EdgeKind, Evidence, TaskKind
from tests.kineto import ALL_REDUCE, COMPUTE, NETWORK, KinetoFile
from tests.replayed import Replayed, read, written

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"

Case = Callable[[], list[KinetoFile]]


def b105() -> list[KinetoFile]:
    """Backward, all-reduce, optimizer on two streams; the host pauses 50 and 30 us."""
    file = KinetoFile(ranks=(0, 1))
    file.step(1, (0, 375))
    file.op("aten::op_a", (0, 20))
    file.op("autograd::engine::evaluate_function: MmBackward0", (70, 90))
    file.launched("bwd_gemm", (75, 80), (85, 285))
    file.op("c10d::allreduce_", (120, 150))
    ready = file.record((122, 123))
    file.wait((124, 125), on=(COMPUTE, ready), waiting=NETWORK)
    file.all_reduce(1, (130, 135), (290, 340))
    file.op("Optimizer.step#SGD.step", (152, 170))
    done = file.record((153, 154))
    file.wait((155, 156), on=(NETWORK, done), waiting=COMPUTE)
    file.launched("sgd", (157, 160), (345, 365))
    file.call("cudaDeviceSynchronize", (172, 370))
    return [file]


def b103() -> list[KinetoFile]:
    """The event is recorded on the stream of k1, although k2 was launched last."""
    file = KinetoFile()
    file.step(1, (0, 510))
    file.launched("k1", (0, 5), (10, 100), stream=20)
    file.launched("k2", (10, 15), (20, 500), stream=28)
    event = file.record((20, 22))
    file.wait((25, 27), on=(20, event), waiting=30)
    file.launched("k3", (30, 35), (102, 150), stream=30)
    file.call("cudaDeviceSynchronize", (40, 505))
    return [file]


def b121() -> list[KinetoFile]:
    """Rank 0 waits 1,000 us for rank 1 inside an all-reduce that moves data for 10 us."""
    files = []
    for rank, compute_end in ((0, 110), (1, 1110)):
        file = KinetoFile(rank=rank, ranks=(0, 1))
        file.step(1, (0, 1180))
        file.launched("compute", (0, 1), (10, compute_end))
        ready = file.record((1, 2))
        file.wait((2, 3), on=(COMPUTE, ready), waiting=NETWORK)
        file.all_reduce(1, (3, 4), (compute_end, 1120), elements=1_000_000)
        done = file.record((4, 5))
        file.wait((5, 6), on=(NETWORK, done), waiting=COMPUTE)
        file.launched("optimizer", (6, 7), (1120, 1170))
        file.call("cudaDeviceSynchronize", (8, 1175))
        files.append(file)
    return files


def b53() -> list[KinetoFile]:
    """Three kernels of one graph launch."""
    file = KinetoFile()
    file.step(1, (90, 240))
    graph = file.call("cudaGraphLaunch", (100, 120))
    for name, span in (("fwd_a", (130, 150)), ("fwd_b", (150, 200)), ("fwd_c", (205, 225))):
        file.kernel(name, span, call=graph)
    file.call("cudaDeviceSynchronize", (125, 230))
    return [file]


def b28() -> list[KinetoFile]:
    """The clock of the device is 0.8 us ahead: a kernel starts before its launch."""
    file = KinetoFile()
    file.step(1, (90, 150))
    file.launched("ncclDevKernel_SendRecv", (100, 105), (99.2, 102.2), stream=NETWORK)
    file.launched("k_normal", (110, 115), (113, 117))
    file.call("cudaDeviceSynchronize", (116, 120))
    return [file]


def b36() -> list[KinetoFile]:
    """Two hosts whose clocks differ by 5 ms, and three all-reduces that tell so."""
    starts = {0: (100, 400, 700), 1: (5150, 5380, 5690)}
    ends = {0: (200, 450, 760), 1: (5200, 5450, 5760)}
    files = []
    for rank in (0, 1):
        file = KinetoFile(rank=rank, ranks=(0, 1))
        for number, (start, end) in enumerate(zip(starts[rank], ends[rank], strict=True), start=1):
            launch = (start - 40, start - 35)
            file.all_reduce(number, launch, (start, end), elements=number * 1_000_000)
        files.append(file)
    return files


def b13() -> list[KinetoFile]:
    """One step, two operators, no GPU."""
    file = KinetoFile(gpus=0)
    file.step(0, (0, 100))
    file.op("aten::mm", (10, 50))
    file.op("aten::relu", (60, 80))
    return [file]


@pytest.fixture(params=["ours", "original"])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Case], Replayed]:
    """Reads a case: as written here, or the file that it retells."""

    def find(told: Case) -> Replayed:
        if request.param == "ours":
            return written(tmp_path, *told())
        folders = sorted(CASES.glob(f"{told.__name__.upper()}-*"))
        if not folders:
            pytest.skip("no shared/cases beside this checkout")
        wanted = {file.rank for file in told()}
        names = ["trace.json"] if len(wanted) == 1 else [f"rank{rank}.json" for rank in wanted]
        return read([folders[0] / name for name in names])

    return find


Read = Callable[[Case], Replayed]


@pytest.mark.parametrize(
    ("told", "step_us"),
    [(b105, 375), (b103, 510), (b121, 1180), (b53, 150), (b28, 60), (b13, 100)],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_replay_gives_the_recording_to_the_nanosecond(
    case: Read, told: Case, step_us: float
) -> None:
    run = case(told)
    assert run.measured_us == step_us
    assert run.base.replayed.mean_ns == run.base.measured.mean_ns
    assert run.is_exact()


def test_b105_streams_wait_for_each_other_through_events(case: Read) -> None:
    run = case(b105)
    arrive, sgd = run.task(ALL_REDUCE, TaskKind.ARRIVE), run.task("sgd")
    assert run.edge(arrive, EdgeKind.EVENT_WAIT).src == run.task("bwd_gemm")
    assert run.edge(sgd, EdgeKind.EVENT_WAIT).src == run.task(ALL_REDUCE, TaskKind.TRANSFER)
    assert run.edge(arrive, EdgeKind.EVENT_WAIT).evidence == Evidence.RECORDED
    (wait,) = run.waits()
    assert "sgd" in run.sources(wait, EdgeKind.HOST_SYNC)


def test_b105_twice_the_compute_speed_keeps_lags_and_host_gaps(case: Read) -> None:
    run = case(b105)
    faster = run.scaled({"bwd_gemm": 0.5, "sgd": 0.5})
    assert run.step_us(faster) == 265
    assert run.span(run.task("bwd_gemm"), faster) == (85, 185)
    assert run.span(run.task(ALL_REDUCE, TaskKind.TRANSFER), faster) == (190, 240)
    assert run.span(run.task("sgd"), faster) == (245, 255)


def test_b105_twice_the_network_speed(case: Read) -> None:
    run = case(b105)
    faster = run.scaled({ALL_REDUCE: 0.5})
    assert run.step_us(faster) == 350
    assert run.span(run.task(ALL_REDUCE, TaskKind.TRANSFER), faster) == (290, 315)


def test_b103_event_belongs_to_the_stream_it_was_recorded_on(case: Read) -> None:
    run = case(b103)
    k3 = run.task("k3")
    assert run.edge(k3, EdgeKind.EVENT_WAIT).src == run.task("k1")
    assert run.task("k2") not in [edge.src for edge in run.edges(k3)]
    assert run.facts.contradicted == {}


def test_b103_path_goes_through_the_long_kernel_only(case: Read) -> None:
    run = case(b103)
    path = run.base.path
    assert path.length_ns == 510_000
    assert run.task("k2") in path.task
    assert not {run.task("k1"), run.task("k3")} & set(path.task.tolist())


def test_b103_without_the_long_kernel(case: Read) -> None:
    run = case(b103)
    without = run.scaled({"k2": 0})
    assert run.step_us(without) == 160
    assert run.span(run.task("k3"), without) == (102, 150)


def test_b103_shorter_first_kernel_moves_only_what_waits_for_it(case: Read) -> None:
    run = case(b103)
    shorter = run.scaled({"k1": 0.5})
    assert run.span(run.task("k3"), shorter) == (57, 105)
    assert run.step_us(shorter) == 510


def test_b121_waiting_is_not_transfer(case: Read) -> None:
    run = case(b121)
    assert run.transfer_and_wait_us(0) == [(10, 1000)]
    assert run.transfer_and_wait_us(1) == [(10, 0)]
    assert run.graph.collectives.transfer_ns.tolist() == [10_000]
    assert run.graph.collectives.size_bytes.tolist() == [4_000_000]


def test_b121_faster_network_halves_only_the_transfer(case: Read) -> None:
    run = case(b121)
    assert run.step_us(run.scaled({ALL_REDUCE: 0.5})) == 1175


def test_b121_without_the_straggler(case: Read) -> None:
    run = case(b121)
    even = run.scaled({"compute": 100 / 1100}, rank=1)
    assert run.step_us(even) == 180


def test_b53_one_launch_starts_all_kernels_of_a_graph(case: Read) -> None:
    run = case(b53)
    call = run.call("cudaGraphLaunch")
    assert run.span(call) == (10, 30), "after the first row of the run"
    kernels = [run.task(name) for name in ("fwd_a", "fwd_b", "fwd_c")]
    assert run.graph.tasks.caller[kernels].tolist() == [call] * 3
    assert run.edge(kernels[0], EdgeKind.GRAPH_LAUNCH).src == call
    assert [run.edges(kernel, EdgeKind.GRAPH_LAUNCH) for kernel in kernels[1:]] == [[], []]
    assert set(kernels) <= set(run.base.path.task.tolist())
    assert run.facts.unlinked_frac == 0


def test_b53_without_the_middle_kernel(case: Read) -> None:
    run = case(b53)
    assert run.step_us(run.scaled({"fwd_b": 0})) == 100


def test_b28_kernel_does_not_start_before_its_launch(case: Read) -> None:
    run = case(b28)
    early = run.task("ncclDevKernel_SendRecv", TaskKind.TRANSFER)
    normal = run.task("k_normal")
    first, second = run.graph.tasks.caller[[early, normal]].tolist()
    assert run.span(first) == (10, 15), "after the first row of the run"
    assert run.span(early) == (10, 13), "recorded at 9.2"
    assert run.span(second) == (20, 25)
    assert run.span(normal) == (23, 27)
    assert run.facts.issues["kernel_before_launch"] == 1
    assert run.base.path.length_ns == 60_000
    assert (run.base.schedule.start_ns >= 0).all()


def test_b36_clocks_of_two_hosts_are_brought_together(case: Read) -> None:
    run = case(b36)
    offsets = [file.clock_offset_ns for file in run.facts.files]
    assert offsets[1] - offsets[0] == pytest.approx(5_000_000, abs=1_000)
    assert run.transfer_and_wait_us(0) == [(50, 50), (50, 0), (60, 0)]
    assert run.transfer_and_wait_us(1) == [(50, 0), (50, 20), (60, 10)]
    assert run.is_exact()


def test_b13_trace_without_gpu_is_answered_with_the_lowest_grade(case: Read) -> None:
    run = case(b13)
    assert run.base.trust.grade == "D"
    assert "no device task and no collective in this trace" in run.base.trust.reasons
    assert run.graph.ranks[0].rank == 0
