"""Changes of links on any run: monotone, undone by their reverse, nothing where nothing changes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.vocab import CollectiveKind, TaskKind
from replay.graph.arrays import Int64, TaskGraph
from tests.builders import GraphBuilder
from whatif.models.bound import Bound
from whatif.recorded import Recorded
from whatif.transforms.base import Context
from whatif.transforms.net import Net, NetLatency
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.pcie import Pcie
from whatif.transforms.registry import Transform
from whatif.transforms.wan import Wan

KINDS = (
    CollectiveKind.ALL_REDUCE,
    CollectiveKind.ALL_GATHER,
    CollectiveKind.REDUCE_SCATTER,
    CollectiveKind.ALL_TO_ALL,
    CollectiveKind.BROADCAST,
    CollectiveKind.BARRIER,
)
GPUS = ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA L40S", "AMD Instinct MI300X")
FACTORS = st.sampled_from((0.1, 0.5, 0.9, 1.1, 2.0, 7.0))
SOME = settings(deadline=None, max_examples=40)


@st.composite
def runs(draw: st.DrawFn) -> tuple[TaskGraph, Recorded]:
    ranks = tuple(range(draw(st.integers(2, 8))))
    build = GraphBuilder(ranks=ranks, gpu=draw(st.sampled_from((*GPUS, "Prototype 1"))))
    for _ in range(draw(st.integers(1, 4))):
        members = draw(st.sampled_from((ranks, ranks[:2], ranks[-2:])))
        build.collective(
            draw(st.integers(5_000, 50_000_000)),
            callers={rank: build.call(rank, "c", 10) for rank in members},
            kind=draw(st.sampled_from(KINDS)),
            size_bytes=draw(st.sampled_from((-1, 0, 4_096, 1 << 20, 1 << 26))),
        )
    said = Recorded(gpus_per_node=draw(st.sampled_from((1, 2, 4, 8))))
    return build.build(), said


def after(
    graph: TaskGraph, said: Recorded, *changes: Transform, bound: Bound = Bound.NOMINAL
) -> Int64:
    context = Context(bound=bound, recorded=said)
    for change in changes:
        applied = change.apply(graph, context)
        graph, context = applied.graph, applied.context
    return graph.tasks.dur_ns[graph.tasks.kind == TaskKind.TRANSFER]


def links(factor: float) -> tuple[Transform, ...]:
    rate = f"x{factor}"
    return Nvlink(rate=rate), Net(rate=rate), Pcie(rate=rate)


@SOME
@given(runs(), FACTORS)
def test_a_faster_link_makes_nothing_slower(
    drawn: tuple[TaskGraph, Recorded], factor: float
) -> None:
    graph, said = drawn
    before = after(graph, said)
    for change in links(factor):
        now = after(graph, said, change)
        assert ((now <= before) if factor > 1 else (now >= before)).all()
        assert (now * max(factor, 1) >= before * (1 - 1e-6) - 2).all()


@SOME
@given(runs(), FACTORS)
def test_a_change_and_its_reverse_leave_nothing(
    drawn: tuple[TaskGraph, Recorded], factor: float
) -> None:
    graph, said = drawn
    for there, back in zip(links(factor), links(1 / factor), strict=True):
        assert np.array_equal(after(graph, said, there, back), after(graph, said))


@SOME
@given(runs(), FACTORS, FACTORS)
def test_two_changes_of_one_link_are_one(
    drawn: tuple[TaskGraph, Recorded], first: float, second: float
) -> None:
    graph, said = drawn
    for one, other, both in zip(links(first), links(second), links(first * second), strict=True):
        apart, together = after(graph, said, one, other), after(graph, said, both)
        assert np.allclose(apart, together, rtol=1e-6, atol=2)


@SOME
@given(runs(), FACTORS)
def test_the_range_holds_the_answer(drawn: tuple[TaskGraph, Recorded], factor: float) -> None:
    graph, said = drawn
    for change in links(factor):
        low, middle, high = (after(graph, said, change, bound=bound) for bound in (1, 0, 2))
        assert (low <= middle).all()
        assert (middle <= high).all()


@SOME
@given(runs(), st.integers(0, 5_000), st.integers(0, 5_000))
def test_more_latency_makes_nothing_faster(
    drawn: tuple[TaskGraph, Recorded], less_us: int, more_us: int
) -> None:
    graph, said = drawn
    less, more = sorted((less_us, more_us))
    near, far = (after(graph, said, NetLatency(time=f"{time}us")) for time in (less, more))
    assert (near <= far).all()
    near, far = (after(graph, said, Wan(link=f"100Gbps,{time}us")) for time in (less, more))
    assert (near <= far).all()
