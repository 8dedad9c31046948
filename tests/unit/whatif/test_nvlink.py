"""The scale-up link: what it carries, from what base, and why nothing changes."""

from dataclasses import replace

import numpy as np
import pytest

from ingest.errors import ScenarioError, UsageError
from ingest.vocab import CollectiveKind, TaskKind
from replay.graph.arrays import TaskGraph
from tests.builders import GraphBuilder, data_parallel
from whatif.recorded import Recorded
from whatif.transforms.base import Applied, Context
from whatif.transforms.nvlink import Nvlink

MIB = 1 << 20


def apply(graph: TaskGraph, change: Nvlink, **recorded: object) -> Applied:
    return change.apply(graph, Context(recorded=Recorded(**recorded)))


def of_kind(graph: TaskGraph, kind: TaskKind) -> list[int]:
    return graph.tasks.dur_ns[graph.tasks.kind == kind].tolist()


def test_large_transfers_follow_the_rate() -> None:
    graph = data_parallel(size_bytes=1 << 34)
    after = apply(graph, Nvlink(rate="1800GBps")).graph
    assert of_kind(after, TaskKind.TRANSFER) == pytest.approx([200_000, 200_000], rel=0.01)
    assert after.edges is graph.edges
    assert after.tasks.residual_ns is graph.tasks.residual_ns


def test_the_rate_that_the_gpu_has_changes_nothing() -> None:
    graph = data_parallel()
    applied = apply(graph, Nvlink(rate="900GB/s"))
    assert applied.graph is graph
    assert applied.no_effect == "NVIDIA H100 80GB HBM3 already has 900 GB/s"


def test_a_factor_means_the_same_as_the_rate() -> None:
    graph = data_parallel(size_bytes=64 * MIB)
    by_rate = apply(graph, Nvlink(rate="1800GBps")).graph
    by_factor = apply(graph, Nvlink(rate="x2")).graph
    assert (by_rate.tasks.dur_ns == by_factor.tasks.dur_ns).all()


def test_bits_are_an_eighth_of_bytes() -> None:
    graph = data_parallel(size_bytes=64 * MIB)
    in_bits = apply(graph, Nvlink(rate="14400Gbps")).graph
    in_bytes = apply(graph, Nvlink(rate="1800GBps")).graph
    assert (in_bits.tasks.dur_ns == in_bytes.tasks.dur_ns).all()


def test_two_changes_of_the_link_stack_on_each_other() -> None:
    graph = data_parallel(size_bytes=64 * MIB)
    first = apply(graph, Nvlink(rate="1800GBps"))
    back = Nvlink(rate="900GBps").apply(first.graph, first.context).graph
    assert np.abs(back.tasks.dur_ns - graph.tasks.dur_ns).max() <= 2


def test_a_collective_across_nodes_stays() -> None:
    graph = data_parallel(size_bytes=64 * MIB)
    applied = apply(graph, Nvlink(rate="x2"), gpus_per_node=1)
    assert applied.graph is graph
    assert applied.no_effect == (
        "no collective stays inside a node of 1 GPUs: the network bounds them"
    )


def test_a_part_across_nodes_is_told() -> None:
    build = GraphBuilder(ranks=(0, 1, 2))
    calls = {rank: build.call(rank, "c", 10) for rank in (0, 1, 2)}
    near = build.collective(400_000, callers={0: calls[0], 1: calls[1]})
    far = build.collective(400_000, callers={1: calls[1], 2: calls[2]})
    graph = build.build()
    applied = apply(graph, Nvlink(rate="x2"), gpus_per_node=2)
    assert (applied.graph.tasks.dur_ns[list(near)] < 400_000).all()
    assert (applied.graph.tasks.dur_ns[list(far)] == 400_000).all()
    assert any(
        "1 of 2 collectives stay: another link, or latency, binds them" in text
        for text in applied.assumptions
    )


def test_a_lone_rank_belongs_to_the_nodes_of_its_group() -> None:
    build = GraphBuilder()
    build.collective(400_000, callers={0: build.call(0, "c", 10)}, group=(0, 8), outside_ns=50_000)
    assert apply(build.build(), Nvlink(rate="x2")).no_effect is not None
    build = GraphBuilder()
    build.collective(400_000, callers={0: build.call(0, "c", 10)}, group=(0, 7), outside_ns=50_000)
    after = apply(build.build(), Nvlink(rate="x2")).graph
    assert of_kind(after, TaskKind.ARRIVE) == [50_000]
    assert of_kind(after, TaskKind.TRANSFER)[0] < 400_000


def test_the_node_has_as_many_gpus_as_the_trace_lists() -> None:
    wide = data_parallel(builder=GraphBuilder(ranks=(0, 1), devices_seen=1, world_size=16))
    applied = apply(wide, Nvlink(rate="x2"))
    assert any(text.startswith("8 GPUs per node (assumed") for text in applied.assumptions)
    listed = data_parallel(builder=GraphBuilder(ranks=(0, 1), devices_seen=4))
    applied = apply(listed, Nvlink(rate="x2"))
    assert any(text.startswith("4 GPUs per node (devices") for text in applied.assumptions)


def test_a_bridge_carries_pairs_only() -> None:
    ranks = (0, 1, 2, 3)
    build = GraphBuilder(ranks=ranks, gpu="NVIDIA H100 PCIe")
    applied = apply(data_parallel(ranks=ranks, builder=build), Nvlink(rate="x2"))
    assert applied.no_effect == (
        "no collective stays inside 2 GPUs that a bridge joins: PCIe (--pcie) carries them"
    )


def test_collectives_of_the_host_are_not_carried() -> None:
    build = GraphBuilder(ranks=(0, 1), gpu=None)
    callers = {rank: build.host(rank, "h", 10) for rank in (0, 1)}
    build.collective(400, callers=callers, on_host=True)
    applied = apply(build.build(), Nvlink(rate="900GBps"))
    assert applied.no_effect == (
        "the collectives run on the host (gloo): NVLink does not carry them"
    )


def test_an_absolute_rate_needs_a_base() -> None:
    graph = data_parallel(builder=GraphBuilder(ranks=(0, 1), gpu="Prototype 1"))
    with pytest.raises(ScenarioError, match="Prototype 1") as caught:
        apply(graph, Nvlink(rate="900GBps"))
    assert "--base-nvlink" in caught.value.hint
    assert apply(graph, Nvlink(rate="x2")).no_effect is None
    assert apply(graph, Nvlink(rate="900GBps"), nvlink="300GBps").no_effect is None
    assert apply(graph, Nvlink(rate="900GBps"), gpu="a100").no_effect is None


def test_a_device_without_a_link_has_nothing_to_speed_up() -> None:
    graph = data_parallel(builder=GraphBuilder(ranks=(0, 1), gpu="NVIDIA L40S"))
    applied = apply(graph, Nvlink(rate="x2"))
    assert applied.graph is graph
    assert applied.no_effect is not None
    assert applied.no_effect.startswith("NVIDIA L40S has no NVLink")


def test_two_names_of_one_device_are_one_base() -> None:
    graph = data_parallel()
    first, second = graph.ranks
    mixed = replace(graph, ranks=(first, replace(second, gpu="NVIDIA H100 SXM5 80GB")))
    assert apply(mixed, Nvlink(rate="1800GBps")).no_effect is None


def test_an_unknown_base_gpu_is_refused() -> None:
    with pytest.raises(ScenarioError):
        apply(data_parallel(), Nvlink(rate="900GBps"), gpu="H10O")


@pytest.mark.parametrize("rate", ["900", "x0", "fast"])
def test_what_makes_no_sense_is_refused(rate: str) -> None:
    with pytest.raises(UsageError):
        Nvlink(rate=rate)


def test_a_barrier_stays() -> None:
    build = GraphBuilder(ranks=(0, 1))
    callers = {rank: build.call(rank, "c", 10) for rank in (0, 1)}
    build.collective(30_000, callers=callers, kind=CollectiveKind.BARRIER, size_bytes=0)
    after = apply(build.build(), Nvlink(rate="x4")).graph
    assert of_kind(after, TaskKind.TRANSFER) == [30_000, 30_000]


def test_the_part_inside_the_nodes_counts_where_the_cards_are_faster() -> None:
    graph = data_parallel(ranks=tuple(range(8)), size_bytes=1 << 34)
    said = {"gpus_per_node": 4, "net": "40000Gbps"}
    after = apply(graph, Nvlink(rate="x0.5"), **said).graph
    assert all(each > 600_000 for each in of_kind(after, TaskKind.TRANSFER))
