"""Another accelerator, and another type, for a whole graph: what moves, stays and is said."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from ingest.errors import ScenarioError, UsageError
from ingest.vocab import ElementType, KernelClass, TaskKind
from replay.graph.arrays import TaskGraph
from replay.graph.work import KernelWork
from tests.builders import GraphBuilder, baseline_of, data_parallel
from whatif.models.bound import Bound
from whatif.models.hardware import require
from whatif.models.kernels.machine import machine_of
from whatif.models.kernels.roofline import KNOWN_ERROR
from whatif.models.memory.words import fits
from whatif.recorded import Recorded
from whatif.scenario import Scenario
from whatif.study import study
from whatif.transforms.base import Applied, Context
from whatif.transforms.gpu import Gpu
from whatif.transforms.machine import known
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.pcie import Pcie
from whatif.transforms.precision import Precision

MS = 1_000_000
GIB = 2**30


def apply(graph: TaskGraph, change: Gpu | Precision, **recorded: object) -> Applied:
    return change.apply(graph, Context(recorded=Recorded(**recorded)))


def one_gpu(gpu: str | None = "NVIDIA H100 80GB HBM3") -> TaskGraph:
    """A large product, a copy inside the device, one from pinned and one from pageable memory."""
    builder = GraphBuilder(gpu=gpu, devices_seen=1)
    call = builder.call(0, "cudaLaunchKernel", 5_000)
    builder.kernel(0, "gemm", 10 * MS, caller=call)
    for name in ("DtoD (Device -> Device)", "HtoD (Pinned -> Device)", "HtoD (Pageable -> Device)"):
        builder.kernel(
            0,
            f"Memcpy {name}",
            MS,
            kind=TaskKind.MEMCPY,
            kernel_class=KernelClass.MEMCPY,
        )
    return builder.build()


def with_work(graph: TaskGraph, *, peak_bytes: int = -1, memory_bytes: int = -1) -> TaskGraph:
    """Every kernel is a product of 5 TFLOP in bf16."""
    rows = np.flatnonzero(graph.tasks.kind == TaskKind.KERNEL)
    count = len(rows)
    work = KernelWork(
        slice_id=graph.tasks.slice_id[rows],
        flops=np.full(count, 5e12),
        bytes=np.full(count, 1e9),
        operand_bytes=np.full(count, 6e8),
        dtype=np.full(count, ElementType.BF16, np.int8),
        tiles=np.full(count, -1),
        peak_bytes=peak_bytes,
        memory_bytes=memory_bytes,
    )
    return replace(graph, work=work)


def durations(graph: TaskGraph) -> dict[str, int]:
    names = [graph.names[name] for name in graph.tasks.name]
    return dict(zip(names, graph.tasks.dur_ns.tolist(), strict=True))


def test_kernels_and_copies_move_and_the_host_stays() -> None:
    before = with_work(one_gpu())
    after = durations(apply(before, Gpu(name="B200")).graph)
    assert after["gemm"] < 0.6 * 10 * MS
    assert after["cudaLaunchKernel"] == 5_000
    assert after["Memcpy DtoD (Device -> Device)"] == pytest.approx(MS * 3350 / 8000, rel=0.01)
    assert after["Memcpy HtoD (Pinned -> Device)"] == MS  # both have PCIe 5
    assert after["Memcpy HtoD (Pageable -> Device)"] == MS


def test_pinned_copies_follow_pcie_and_pageable_ones_the_host() -> None:
    after = durations(apply(one_gpu(), Gpu(name="A100 SXM4 80 GB")).graph)
    assert after["Memcpy HtoD (Pinned -> Device)"] == pytest.approx(2 * MS, rel=0.05)
    assert after["Memcpy HtoD (Pageable -> Device)"] == MS


def test_the_range_holds_pageable_copies_that_pcie_binds() -> None:
    change = Gpu(name="A100 SXM4 80 GB")
    ends = [
        durations(change.apply(one_gpu(), Context(bound=bound)).graph)
        for bound in (Bound.LOW, Bound.NOMINAL, Bound.HIGH)
    ]
    pageable = [end["Memcpy HtoD (Pageable -> Device)"] for end in ends]
    assert pageable[:2] == [MS, MS]
    assert pageable[2] == pytest.approx(2 * MS, rel=0.05)


@pytest.mark.parametrize("said", [{}, {"pcie": "31.5GBps"}])
def test_copies_go_from_the_present_pcie_to_its_own(said: dict[str, str]) -> None:
    before = Context(recorded=Recorded(**said))
    faster = Pcie(rate="x2").apply(one_gpu(), before)
    after = Gpu(name="B200").apply(faster.graph, faster.context).graph
    straight = Gpu(name="B200").apply(one_gpu(), before).graph
    name = "Memcpy HtoD (Pinned -> Device)"
    assert durations(after)[name] == pytest.approx(durations(straight)[name], rel=0.01)
    assert durations(straight)[name] == pytest.approx(MS / 2 if said else MS, rel=0.01)


def test_its_scale_up_link_comes_with_it() -> None:
    graph = data_parallel(size_bytes=1 << 34)
    after = apply(graph, Gpu(name="B200")).graph
    by_link = Nvlink(rate="1800GBps").apply(graph, Context()).graph
    transfer = graph.tasks.kind == TaskKind.TRANSFER
    assert after.tasks.dur_ns[transfer].tolist() == pytest.approx(
        by_link.tasks.dur_ns[transfer].tolist(), rel=0.15
    )
    assert (after.tasks.dur_ns[transfer] < graph.tasks.dur_ns[transfer]).all()


def test_a_later_link_overrides_its_own() -> None:
    graph = data_parallel(size_bytes=1 << 34)
    both = study(
        graph,
        baseline_of(graph),
        Scenario(transforms=(Gpu(name="B200"), Nvlink(rate="900GBps"))),
    )
    transfer = graph.tasks.kind == TaskKind.TRANSFER
    assert both.graph.tasks.dur_ns[transfer].tolist() == pytest.approx(
        graph.tasks.dur_ns[transfer].tolist(), rel=0.15
    )


def test_the_device_of_the_recording_stays_known_on_another_one() -> None:
    there = apply(one_gpu(), Gpu(name="B200")).context
    assert there.device is not None
    assert there.first_device is not None
    assert there.device.name != there.first_device.name


def test_there_and_back_leaves_nothing_behind() -> None:
    graph = with_work(data_parallel(size_bytes=1 << 30))
    there = apply(graph, Gpu(name="B200"))
    back = Gpu(name="H100 SXM").apply(there.graph, there.context)
    assert back.graph.tasks.dur_ns.tolist() == graph.tasks.dur_ns.tolist()


def test_the_way_does_not_matter() -> None:
    graph = with_work(one_gpu())
    there = apply(graph, Gpu(name="B200"))
    on = Gpu(name="MI300X").apply(there.graph, there.context)
    straight = apply(graph, Gpu(name="MI300X"))
    assert on.graph.tasks.dur_ns.tolist() == straight.graph.tasks.dur_ns.tolist()


def test_the_gpu_that_it_has_changes_nothing() -> None:
    graph = one_gpu()
    applied = apply(graph, Gpu(name="H100 SXM"))
    assert applied.graph is graph
    assert applied.no_effect == "the run already has H100 SXM5 80 GB"


def test_a_trace_without_a_known_gpu_asks_for_it() -> None:
    graph = one_gpu(gpu="Some Other GPU")
    with pytest.raises(ScenarioError, match="not known") as raised:
        apply(graph, Gpu(name="B200"))
    assert "--base-gpu" in str(raised.value.hint)
    named = apply(graph, Gpu(name="B200"), gpu="H100 SXM")
    assert named.no_effect is None


def test_an_unknown_gpu_names_the_nearest() -> None:
    with pytest.raises(ScenarioError, match="no accelerator `B2000`") as raised:
        apply(one_gpu(), Gpu(name="B2000"))
    assert "B200" in str(raised.value.hint)


def test_a_gpu_without_a_bandwidth_in_the_catalog_is_refused() -> None:
    unknown = structs.replace(require("H100"), memory_bytes_per_s=None)
    with pytest.raises(ScenarioError, match="catalog has no memory bandwidth"):
        machine_of(unknown)


def test_without_device_work_it_says_so() -> None:
    builder = GraphBuilder(gpu=None)
    builder.host(0, "forward", MS)
    applied = apply(builder.build(), Gpu(name="H100"))
    assert applied.no_effect == "no accelerator worked in this trace"


def test_the_range_holds_the_answer_and_the_answer_names_model_and_error() -> None:
    graph = with_work(one_gpu())
    found = study(graph, baseline_of(graph), Scenario(transforms=(Gpu(name="B200"),)))
    assert found.low_ns < found.step_ns < found.high_ns
    text = "\n".join(found.assumptions)
    for words in ("host and NICs stay", "memory"):
        assert words in text
    assert KNOWN_ERROR in found.known_errors
    assert {info.gpu for info in found.graph.ranks} == {"B200 SXM 180 GB"}


def test_unmatched_kernels_of_communication_are_left_alone() -> None:
    builder = GraphBuilder()
    builder.kernel(0, "some_all_reduce", MS, kernel_class=KernelClass.COLLECTIVE)
    builder.kernel(0, "gemm", MS)
    after = durations(apply(builder.build(), Gpu(name="B200")).graph)
    assert after["some_all_reduce"] == MS
    assert after["gemm"] < MS


def test_precision_speeds_up_products_and_tells_the_next_what_if() -> None:
    graph = with_work(one_gpu())
    applied = apply(graph, Precision(dtype="fp8"))
    assert durations(applied.graph)["gemm"] < 10 * MS
    assert set(applied.graph.work.dtype.tolist()) == {ElementType.FP8}
    assert graph.work.dtype.tolist() == [ElementType.BF16]


def test_precision_after_a_gpu_takes_the_peaks_of_that_gpu() -> None:
    graph = with_work(one_gpu(gpu="NVIDIA A100-SXM4-80GB"))
    with pytest.raises(ScenarioError, match="do not take fp8") as raised:
        apply(graph, Precision(dtype="fp8"))
    assert "--gpu H100" in str(raised.value.hint)
    first = apply(graph, Gpu(name="H100 SXM"))
    second = Precision(dtype="fp8").apply(first.graph, first.context)
    assert durations(second.graph)["gemm"] < durations(first.graph)["gemm"]


def test_precision_that_changes_nothing_says_so() -> None:
    graph = with_work(one_gpu())
    applied = apply(graph, Precision(dtype="bf16"))
    assert applied.graph is graph
    assert applied.no_effect == "no kernel is known to work in a wider type than bf16"


def test_no_other_precision() -> None:
    with pytest.raises(UsageError, match="no precision `int3`"):
        Precision(dtype="int3")


def test_bounds_of_precision_lie_around_it() -> None:
    graph = with_work(one_gpu())
    times = [
        durations(Precision(dtype="fp8").apply(graph, Context(bound=bound)).graph)["gemm"]
        for bound in (Bound.LOW, Bound.NOMINAL, Bound.HIGH)
    ]
    assert times[0] < times[1] < times[2]


@pytest.mark.parametrize(
    ("peak", "recorded", "new", "words"),
    [
        (60 * GIB, 80.0 * GIB, 48.0 * GIB, "warning: does not fit"),
        (20 * GIB, 80.0 * GIB, 48.0 * GIB, "memory: fits"),
        (-1, 80.0 * GIB, 48.0 * GIB, "may not fit"),
        (-1, 80.0 * GIB, 180.0 * GIB, "what ran fits"),
        (-1, None, 180.0 * GIB, "not recorded"),
        (20 * GIB, 80.0 * GIB, None, "does not say"),
    ],
)
def test_memory_says_whether_it_fits(
    peak: int, recorded: float | None, new: float | None, words: str
) -> None:
    assert words in fits(peak, recorded, new, "X")


def test_memory_that_does_not_fit_is_a_warning_of_the_answer() -> None:
    graph = with_work(one_gpu(), peak_bytes=70 * GIB)
    told = apply(graph, Gpu(name="L40S")).assumptions
    assert any(text.startswith("warning: does not fit in memory") for text in told)


def test_ranks_stay_in_their_nodes_where_the_link_could_join_a_rack() -> None:
    told = apply(data_parallel(), Gpu(name="GB200")).assumptions
    assert any("joins 72" in text and "domains of 8" in text for text in told)


def test_a_rack_ends_with_the_node_on_a_gpu_without_racks() -> None:
    graph = data_parallel(size_bytes=1 << 30)
    context = known(graph, Context(recorded=Recorded(gpu="GB200", gpus_per_node=4)))
    assert context.places.domain_gpus == 72
    after = Gpu(name="H100 SXM").apply(graph, context).context
    assert after.places.domain_gpus == 4


def test_an_all_reduce_across_nodes_stays() -> None:
    builder = GraphBuilder(ranks=(0, 8), devices_seen=8, world_size=16)
    callers = {rank: builder.call(rank, "cudaLaunchKernel", 5_000) for rank in (0, 8)}
    builder.collective(MS, callers=callers, size_bytes=1 << 30)
    graph = builder.build()
    after = apply(graph, Gpu(name="B200")).graph
    transfer = graph.tasks.kind == TaskKind.TRANSFER
    assert (after.tasks.dur_ns[transfer] == graph.tasks.dur_ns[transfer]).all()
