"""Gradient buckets re-cut: schedules known by hand, ids that stay, cuts that DDP would make."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ingest.errors import ScenarioError, UsageError
from ingest.vocab import CollectiveKind, Phase, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import Gradients, TaskGraph
from tests.builders import GraphBuilder
from whatif.answers import Answers
from whatif.transforms.base import Applied, Context
from whatif.transforms.bucket import BucketMb

GIB_OF_MIB = 1024
GIB = 1 << 30
KERNEL_NS = 100_000_000
CALL_NS = 10_000
PER_GIB_NS = 40_000_000


def backward(
    buckets_gib: Sequence[int],
    *,
    ranks: Sequence[int] = (0, 1),
    told: bool = True,
    outside_ns: int = 0,
    waits_after: int | None = None,
    beside: bool = False,
) -> TaskGraph:
    """A kernel of 100 ms makes each GiB of gradients; a bucket moves after its last kernel.

    An optimizer kernel waits for the last bucket; one more for that of number `waits_after`.
    `told`: the gradients, one GiB each, are recorded as DDP copies them. `beside`: an all-gather of
    450 ms runs on another stream.
    """
    build = GraphBuilder(ranks=ranks, item_bytes=4)
    if beside:
        callers = {rank: build.call(rank, "cudaLaunchKernelExC", CALL_NS) for rank in ranks}
        build.collective(
            450_000_000,
            callers=callers,
            stream=21,
            kind=CollectiveKind.ALL_GATHER,
            size_bytes=GIB,
            group=(0, 1),
        )
    copies: list[tuple[int, int]] = []
    last: dict[int, int] = {}
    for number, size_gib in enumerate(buckets_gib):
        kernels = {}
        for _ in range(size_gib):
            for rank in ranks:
                call = build.call(rank, "cudaLaunchKernel", CALL_NS)
                kernels[rank] = build.kernel(rank, "backward", KERNEL_NS, caller=call)
                copies.append((rank, call))
        callers = {rank: build.call(rank, "cudaLaunchKernelExC", CALL_NS) for rank in ranks}
        members = build.collective(
            size_gib * PER_GIB_NS,
            callers=callers,
            after=kernels,
            size_bytes=size_gib * GIB,
            group=(0, 1),
            outside_ns=outside_ns,
        )
        last = dict(zip(ranks, members, strict=True))
        if number == waits_after:
            for rank in ranks:
                call = build.call(rank, "cudaLaunchKernel", CALL_NS)
                build.edge(last[rank], build.kernel(rank, "uses", 0, caller=call))
    for rank in ranks:
        call = build.call(rank, "cudaLaunchKernel", CALL_NS)
        build.edge(last[rank], build.kernel(rank, "optimizer", 1_000, caller=call))
    graph = build.build()
    tasks = graph.tasks
    member = np.isin(tasks.kind, (TaskKind.ARRIVE, TaskKind.TRANSFER))
    phase = np.where(member, Phase.BACKWARD, tasks.phase).astype(np.int8)
    one_group = np.zeros_like(graph.collectives.group)
    graph = replace(
        graph,
        tasks=replace(tasks, phase=phase),
        collectives=replace(graph.collectives, group=one_group),
    )
    return replace(graph, gradients=gradients(graph, sorted(copies))) if told else graph


def gradients(graph: TaskGraph, copies: list[tuple[int, int]]) -> Gradients:
    rank, task = np.array(copies, np.int64).T
    return Gradients(
        rank=rank.copy(),
        task=task.copy(),
        ready_ns=graph.tasks.ts_ns[task] + CALL_NS,
        size_bytes=np.full(len(copies), GIB, np.int64),
    )


def recut(graph: TaskGraph, size_gib: float) -> Applied:
    return BucketMb(size_mib=size_gib * GIB_OF_MIB).apply(graph, Context())


def buckets(graph: TaskGraph, rank: int = 0) -> list[tuple[float, float]]:
    """Start and length in ms of the transfers of a rank that have a length, in order."""
    start_ns = replay(graph).start_ns
    tasks = graph.tasks
    mine = (tasks.kind == TaskKind.TRANSFER) & (tasks.rank == rank) & (tasks.dur_ns > 0)
    ids = np.flatnonzero(mine)
    ids = ids[np.argsort(start_ns[ids])]
    return [(start_ns[task] / 1e6, tasks.dur_ns[task] / 1e6) for task in ids]


def close(found: list[tuple[float, float]], expected: list[tuple[float, float]]) -> bool:
    return len(found) == len(expected) and bool(np.allclose(found, expected, rtol=0.03, atol=0.1))


def end_ms(graph: TaskGraph) -> float:
    return float(replay(graph).end_ns.max() / 1e6)


def test_smaller_buckets_move_as_soon_as_their_gradients_are_ready() -> None:
    graph = backward([2, 2])
    assert close(buckets(graph), [(200, 80), (400, 80)])
    applied = recut(graph, 1)
    for rank in (0, 1):
        assert close(buckets(applied.graph, rank), [(100, 40), (200, 40), (300, 40), (400, 40)])
    assert end_ms(applied.graph) == pytest.approx(440, rel=0.01)
    assert applied.assumptions[0] == "2 buckets per step, of 2,048.0 MiB, become 4"


def test_larger_buckets_wait_for_all_of_their_gradients() -> None:
    applied = recut(backward([1, 1, 1, 1]), 4)
    assert close(buckets(applied.graph), [(400, 160)])
    assert end_ms(applied.graph) == pytest.approx(560, rel=0.02)


def test_a_bucket_may_end_inside_a_recorded_one_on_both_sides() -> None:
    applied = recut(backward([3, 3]), 2)
    assert close(buckets(applied.graph), [(200, 80), (400, 80), (600, 80)])


def test_added_buckets_share_their_link_where_many_are_answered_at_once() -> None:
    graph = backward([2, 2], beside=True)
    variants = [recut(graph, 1).graph, recut(graph, 4).graph]
    assert variants[0].n_tasks > graph.n_tasks
    answers = Answers.of(graph, replay(graph))
    together = [int(times.mean_ns) for times, _ in answers.told_of_all(variants)]
    assert together == [int(answers.step_times(variant).mean_ns) for variant in variants]
    assert together[0] > replay(variants[0]).end_ns.max()


def test_a_run_without_collectives_says_so() -> None:
    build = GraphBuilder()
    build.kernel(0, "gemm", 1_000)
    applied = recut(build.build(), 1)
    assert applied.no_effect is not None


def test_there_and_back_is_where_it_was() -> None:
    graph = backward([1, 1, 1, 1])
    merged = recut(graph, 2)
    back = BucketMb(size_mib=GIB_OF_MIB).apply(merged.graph, merged.context).graph
    assert close(buckets(back), buckets(graph))


def test_the_recorded_size_changes_nothing() -> None:
    graph = backward([2, 2])
    applied = recut(graph, 2)
    assert applied.graph is graph
    assert applied.no_effect == "the buckets come out as they are"


def test_without_recorded_gradients_buckets_are_parted_evenly() -> None:
    applied = recut(backward([2, 2], told=False), 1)
    found = buckets(applied.graph)
    assert [length for _, length in found] == pytest.approx([40] * 4, rel=0.03)
    assert found[-1][0] == pytest.approx(400, rel=0.01)
    assert any("sizes of gradients are not recorded" in text for text in applied.assumptions)


def test_millions_of_buckets_are_refused() -> None:
    with pytest.raises(ScenarioError, match="buckets of 1 bytes are 1,073,741,824 in a step"):
        BucketMb(size_mib=1e-9).apply(backward([1], told=False), Context())


def test_a_bucket_ends_where_somebody_waits_for_it() -> None:
    waited = recut(backward([1, 1, 1, 1], waits_after=1), 4).graph
    assert close(buckets(waited), [(200, 80), (480, 80)])


def test_who_waited_for_a_bucket_waits_for_all_of_its_bytes() -> None:
    graph = backward([3, 3], waits_after=0)
    applied = recut(graph, 2)
    start_ns = replay(applied.graph).start_ns
    uses = applied.graph.tasks.name == applied.graph.names.index("uses")
    moved = buckets(applied.graph)
    assert close(moved, [(200, 80), (300, 40), (540, 80), (640, 40)])
    assert start_ns[uses] / 1e6 == pytest.approx([340, 340], rel=0.01)


def test_ids_of_what_there_was_stay() -> None:
    graph = backward([2, 2])
    after = recut(graph, 1).graph
    n_tasks = graph.n_tasks
    for name in ("kind", "rank", "lane", "name", "slice_id", "collective", "ts_ns"):
        before, now = getattr(graph.tasks, name), getattr(after.tasks, name)
        assert np.array_equal(now[:n_tasks], before)
    assert after.n_tasks == n_tasks + 2 * (2 * 2 + 1)
    assert int(after.collectives.size_bytes.sum()) == 4 * GIB
    assert after.boundaries is graph.boundaries


def test_members_that_are_missing_come_as_late_as_before_at_every_bucket() -> None:
    graph = backward([2, 2], ranks=(0,), outside_ns=30_000_000)
    assert close(buckets(graph), [(230, 80), (430, 80)])
    after = recut(graph, 1).graph
    assert close(buckets(after), [(130, 40), (230, 40), (330, 40), (430, 40)])


def test_every_step_is_cut_by_itself() -> None:
    build = GraphBuilder(ranks=(0,), item_bytes=4)
    for step in (0, 1):
        call = build.call(0, "c", CALL_NS, step=step)
        build.collective(
            PER_GIB_NS, callers={0: call}, size_bytes=GIB, group=(0, 1), expected=2, step=step
        )
    graph = build.build()
    phase = np.full(graph.n_tasks, Phase.BACKWARD, np.int8)
    graph = replace(graph, tasks=replace(graph.tasks, phase=phase))
    assert recut(graph, 8).no_effect == "the buckets come out as they are"


@pytest.mark.parametrize(
    ("phase", "kind"),
    [(Phase.FORWARD, CollectiveKind.ALL_REDUCE), (Phase.BACKWARD, CollectiveKind.ALL_GATHER)],
)
def test_what_reduces_no_gradients_stays(phase: Phase, kind: CollectiveKind) -> None:
    build = GraphBuilder(ranks=(0, 1))
    callers = {rank: build.call(rank, "c", CALL_NS) for rank in (0, 1)}
    build.collective(1_000, callers=callers, size_bytes=GIB, kind=kind)
    graph = build.build()
    columns = np.full(graph.n_tasks, phase, np.int8)
    applied = recut(replace(graph, tasks=replace(graph.tasks, phase=columns)), 0.5)
    assert applied.no_effect is not None
    assert applied.no_effect.startswith("no collective of this run is known to reduce gradients")


@pytest.mark.parametrize("size_mib", [0.0, -1.0, float("inf"), float("nan")])
def test_what_is_no_size_is_refused(size_mib: float) -> None:
    with pytest.raises(UsageError):
        BucketMb(size_mib=size_mib)
