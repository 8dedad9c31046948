"""Gradient buckets of any size: no byte is lost, none moves before it is ready, order stays."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.vocab import TaskKind
from replay.engine.run import replay
from tests.unit.whatif.test_bucket import GIB, KERNEL_NS, backward, recut

SOME = settings(deadline=None, max_examples=40)
SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=6)


@SOME
@given(
    sizes=SIZES,
    cap_gib=st.integers(1, 9),
    told=st.booleans(),
    waits_after=st.one_of(st.none(), st.integers(0, 5)),
)
def test_bytes_stay_and_move_in_order_once_they_are_ready(
    *, sizes: list[int], cap_gib: int, told: bool, waits_after: int | None
) -> None:
    graph = backward(sizes, told=told, waits_after=waits_after)
    after = recut(graph, cap_gib).graph
    assert int(after.collectives.size_bytes.sum()) == sum(sizes) * GIB
    start_ns = replay(after).start_ns
    tasks, calls = after.tasks, after.collectives
    for rank in (0, 1):
        moves = np.flatnonzero(
            (tasks.kind == TaskKind.TRANSFER) & (tasks.rank == rank) & (tasks.dur_ns > 0)
        )
        moves = moves[np.argsort(start_ns[moves], kind="stable")]
        ends_ns = start_ns[moves] + tasks.dur_ns[moves]
        assert (start_ns[moves][1:] >= ends_ns[:-1]).all()
        ready_ns = np.cumsum(calls.size_bytes[tasks.collective[moves]]) // GIB * KERNEL_NS
        assert (start_ns[moves] >= (ready_ns if told else KERNEL_NS)).all()


@SOME
@given(SIZES, st.integers(1, 9))
def test_a_second_cut_of_the_same_size_changes_nothing(sizes: list[int], cap_gib: int) -> None:
    once = recut(backward(sizes), cap_gib)
    assert recut(once.graph, cap_gib).no_effect == "the buckets come out as they are"


@SOME
@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 9))
def test_the_recorded_size_leads_back(size: int, count: int, cap_gib: int) -> None:
    graph = backward([size] * count)
    back = recut(recut(graph, cap_gib).graph, size).graph
    before, after = replay(graph), replay(back)
    assert abs(int(after.end_ns.max()) - int(before.end_ns.max())) <= 0.02 * before.end_ns.max()
