"""Neighbouring kernels merged into one, on schedules known by hand; times in us."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.vocab import EdgeKind, KernelClass, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from replay.graph.work import KernelWork
from tests.builders import GraphBuilder
from whatif.models.bound import Bound
from whatif.transforms.base import Applied, Context
from whatif.transforms.fuse import Fuse
from whatif.transforms.scale import Scale

US = 1_000
SHORTEST_US = 2


def chain(
    *durations_us: int,
    kernel_class: KernelClass = KernelClass.ELEMENTWISE,
    between_us: int = 0,
    call: str = "cudaLaunchKernel",
) -> GraphBuilder:
    """Kernels launched one after the other, with work of the host between, after a short one."""
    build = GraphBuilder()
    build.kernel(0, "shortest", SHORTEST_US * US, caller=build.call(0, call, 1 * US))
    for number, dur_us in enumerate(durations_us):
        if number and between_us:
            build.host(0, "python", between_us * US)
        launch = build.call(0, call, 1 * US)
        build.kernel(0, "add", dur_us * US, caller=launch, kernel_class=kernel_class)
    return build


def fuse(graph: TaskGraph, bound: Bound = Bound.NOMINAL, where: str = "name:add") -> Applied:
    return Fuse(where=where).apply(graph, Context(bound=bound))


def kernel_us(graph: TaskGraph) -> list[float]:
    named = graph.tasks.name == graph.names.index("add")
    return (graph.tasks.dur_ns[named] / US).tolist()


@pytest.mark.parametrize(
    ("bound", "left_us"),
    [
        # Each costs 2 to start, and moves data for 30: in a chain of copies the first keeps its
        # reads and the last its writes.
        (Bound.LOW, [2 + 15, 0, 15]),
        (Bound.NOMINAL, [2 + 20, 10, 20]),
        (Bound.HIGH, [2 + 30, 30, 30]),
    ],
)
def test_what_is_handed_on_is_not_moved(bound: Bound, left_us: list[float]) -> None:
    changed = fuse(chain(32, 32, 32).build(), bound).graph
    assert kernel_us(changed) == pytest.approx(left_us)


def test_kernels_that_take_no_time_any_more_can_be_merged() -> None:
    free = Scale(where="class:compute", factor=0).apply(chain(32, 32).build(), Context())
    assert kernel_us(fuse(free.graph).graph) == [0, 0]


def test_only_as_much_is_handed_on_as_the_smaller_one_moves() -> None:
    changed = fuse(chain(32, 302).build(), Bound.LOW).graph
    assert kernel_us(changed) == pytest.approx([17, 285])


def test_bytes_tell_what_is_handed_on_where_shapes_were_recorded() -> None:
    # The second kernel takes as long as the first for a tenth of the bytes.
    graph = chain(32, 32).build()
    kernels = np.flatnonzero(graph.tasks.name == graph.names.index("add"))
    unknown = np.full(2, -1)
    work = KernelWork(
        slice_id=graph.tasks.slice_id[kernels],
        flops=np.full(2, np.nan),
        bytes=np.array([1_000.0, 100.0]),
        operand_bytes=np.full(2, np.nan),
        dtype=unknown.astype(np.int8),
        tiles=unknown,
    )
    changed = fuse(replace(graph, work=work), Bound.LOW).graph
    assert kernel_us(changed) == pytest.approx([2 + 30 * (1 - 0.05), 30 * (1 - 0.5)])


def test_products_keep_their_time() -> None:
    build = chain(32, kernel_class=KernelClass.GEMM)
    launch = build.call(0, "cudaLaunchKernel", US)
    build.kernel(0, "add", 12 * US, caller=launch, kernel_class=KernelClass.ELEMENTWISE)
    changed = fuse(build.build(), Bound.LOW).graph
    assert kernel_us(changed) == pytest.approx([32, 5])


def test_the_later_launches_and_the_work_before_them_are_gone() -> None:
    graph = chain(4, 4, 4, between_us=100).build()
    assert replay(graph).end_ns.max() == (1 + 3 + 200 + 4) * US
    changed = fuse(graph).graph
    # The first kernel ends at 3; the fused one costs 2 and moves three times 2, less 4 x 2/3.
    assert replay(changed).end_ns.max() == pytest.approx((3 + 16 / 3) * US, abs=3)
    calls = changed.tasks.kind == TaskKind.HOST_CALL
    assert (changed.tasks.dur_ns[calls] / US).tolist() == [1, 1, 0, 0]


def test_in_the_range_the_work_between_stays() -> None:
    changed = fuse(chain(4, 4, 4, between_us=100).build(), Bound.HIGH).graph
    assert (changed.tasks.kind == TaskKind.HOST_WORK).sum() == 2
    assert changed.tasks.dur_ns[changed.tasks.kind == TaskKind.HOST_WORK].sum() == 200 * US


def test_another_kernel_between_keeps_them_apart() -> None:
    build = chain(32)
    build.kernel(0, "other", US, caller=build.call(0, "cudaLaunchKernel", US))
    build.kernel(0, "add", 32 * US, caller=build.call(0, "cudaLaunchKernel", US))
    assert fuse(build.build()).no_effect is not None


def test_a_wait_for_another_stream_keeps_them_apart() -> None:
    build = chain(32, 32)
    other = build.kernel(0, "other", US, caller=0, stream=9)
    build.edge(other, 5, kind=EdgeKind.EVENT_WAIT)
    assert build.rows[5].name == "add"
    assert fuse(build.build()).no_effect is not None


def test_another_call_between_keeps_them_apart() -> None:
    build = chain(32)
    build.call(0, "cudaStreamSynchronize", US)
    build.kernel(0, "add", 32 * US, caller=build.call(0, "cudaLaunchKernel", US))
    assert fuse(build.build()).no_effect is not None


@settings(deadline=None)
@given(st.lists(st.integers(1, 500), min_size=2, max_size=6), st.integers(0, 50))
def test_the_range_holds_the_answer_and_nothing_is_ever_longer(
    durations_us: list[int], between_us: int
) -> None:
    graph = chain(*durations_us, between_us=between_us).build()
    ends = [int(replay(fuse(graph, bound).graph).end_ns.max()) for bound in Bound]
    nominal, low, high = ends
    assert low <= nominal <= high <= int(replay(graph).end_ns.max())
    changed = fuse(graph, Bound.LOW).graph
    assert (changed.tasks.dur_ns >= 0).all()
    # One copy of the largest tensor is always left: half of each end of the chain at the least.
    longest = max(durations_us) - SHORTEST_US
    assert np.sum(kernel_us(changed)) >= min(longest, max(durations_us[0], 2) / 2) - 1
