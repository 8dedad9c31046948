"""What-ifs about the network: what they move, from what base, and why nothing changes."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from ingest.errors import ScenarioError, UsageError
from ingest.vocab import CollectiveKind, KernelClass, TaskKind
from replay.graph.arrays import TaskGraph
from tests.builders import GraphBuilder
from whatif.models.bound import Bound
from whatif.recorded import Recorded
from whatif.transforms.algo import CollectiveAlgo, InNetwork
from whatif.transforms.base import Applied, Context
from whatif.transforms.net import Net, NetLatency
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.pcie import Pcie
from whatif.transforms.registry import Transform
from whatif.transforms.wan import Wan

MIB = 1 << 20
BIG = 1 << 32


def apply(
    graph: TaskGraph, *changes: Transform, bound: Bound = Bound.NOMINAL, **said: object
) -> Applied:
    context = Context(bound=bound, recorded=Recorded(**said))
    for change in changes:
        applied = change.apply(graph, context)
        graph, context = applied.graph, applied.context
    return applied


def transfers(graph: TaskGraph) -> list[int]:
    return graph.tasks.dur_ns[graph.tasks.kind == TaskKind.TRANSFER].tolist()


def run(
    size_bytes: int = BIG,
    *,
    gpu: str | None = "NVIDIA H100 80GB HBM3",
    kind: CollectiveKind = CollectiveKind.ALL_REDUCE,
    ranks: Sequence[int] = (0, 1, 2, 3),
    dur_ns: int = 100_000_000,
    on_host: bool = False,
) -> TaskGraph:
    build = GraphBuilder(ranks=ranks, gpu=gpu)
    callers = {rank: build.call(rank, "c", 10) for rank in ranks}
    build.collective(dur_ns, callers=callers, kind=kind, size_bytes=size_bytes, on_host=on_host)
    return build.build()


class TestNet:
    def test_large_transfers_between_nodes_follow_the_rate(self) -> None:
        after = apply(run(), Net(rate="800Gbps"), gpus_per_node=1, net="400Gbps").graph
        assert transfers(after) == pytest.approx([50_000_000] * 4, rel=0.02)

    def test_a_factor_needs_no_base_and_means_the_same(self) -> None:
        by_rate = apply(run(), Net(rate="800Gbps"), gpus_per_node=1, net="400Gbps").graph
        by_factor = apply(run(), Net(rate="x2"), gpus_per_node=1).graph
        assert transfers(by_factor) == pytest.approx(transfers(by_rate), rel=0.02)

    def test_an_absolute_rate_of_gpus_needs_a_base(self) -> None:
        with pytest.raises(ScenarioError, match="network between the nodes") as caught:
            apply(run(), Net(rate="400Gbps"), gpus_per_node=1)
        assert "--base-net" in caught.value.hint

    def test_what_was_understood_is_told(self) -> None:
        told = apply(run(), Net(rate="400Gbps"), gpus_per_node=1, net="25GBps").assumptions
        assert "net 400 Gbps = 50 GB/s per GPU, one direction" in told
        assert "base: 200 Gbps = 25 GB/s per GPU" in told

    def test_fewer_cards_than_gpus_share_their_rate(self, tmp_path: Path) -> None:
        file = tmp_path / "nodes.yaml"
        file.write_text("gpus_per_node: 2\nnics: {per_node: 1, rate: 200Gbps}", encoding="utf-8")
        applied = apply(run(), Net(rate="400Gbps"), topology=str(file))
        assert applied.context.links.nic_bytes_per_s == 25e9
        assert any("0.5 cards per GPU" in text for text in applied.assumptions)

    def test_a_run_inside_one_node_says_so(self) -> None:
        applied = apply(run(), Net(rate="x2"))
        assert applied.no_effect is not None
        assert applied.no_effect.startswith("no collective crosses nodes: 8 GPUs per node")
        assert "--gpus-per-node" in applied.no_effect

    def test_a_slow_card_hides_a_faster_link_of_the_node(self) -> None:
        said = {"gpus_per_node": 2, "net": "10Gbps"}
        applied = apply(run(), Nvlink(rate="x2"), **said)
        assert applied.no_effect == (
            "no collective stays inside a node of 2 GPUs: the network bounds them"
        )

    @pytest.mark.parametrize(
        ("kind", "crowded_with_rails"),
        [(CollectiveKind.ALL_REDUCE, False), (CollectiveKind.ALL_TO_ALL, True)],
    )
    def test_less_between_the_switches_gives_bytes_more_of_the_time(
        self, tmp_path: Path, *, kind: CollectiveKind, crowded_with_rails: bool
    ) -> None:
        found = []
        for more in ("", "oversubscription: 4", "oversubscription: 4\nrails: true"):
            file = tmp_path / "nodes.yaml"
            text = f"gpus_per_node: 2\nnics: {{rate: 400Gbps}}\n{more}\n"
            file.write_text(text, encoding="utf-8")
            slower = apply(run(MIB, kind=kind), NetLatency(time="+1ms"), topology=str(file))
            found.append(transfers(slower.graph)[0])
        free, crowded, rails = found
        assert crowded < free
        assert rails == (crowded if crowded_with_rails else free)

    def test_between_hosts_the_recorded_transfers_tell_the_base(self) -> None:
        graph = run(12_000_000, gpu=None, ranks=(0, 1), dur_ns=100_000_000, on_host=True)
        faster = apply(graph, Net(rate="2Gbps"))
        assert all(40_000_000 < each < 70_000_000 for each in transfers(faster.graph))
        assert any("read off the recorded transfers" in text for text in faster.assumptions)
        assert "net 2 Gbps = 0.25 GB/s per rank, one direction" in faster.assumptions


class TestNetLatency:
    def test_small_transfers_grow_by_their_steps(self) -> None:
        graph = run(1024, dur_ns=100_000)
        slower = apply(graph, NetLatency(time="+20us"), gpus_per_node=1).graph
        assert all(each > 140_000 for each in transfers(slower))

    def test_large_ones_hardly_do(self) -> None:
        slower = apply(run(), NetLatency(time="+20us"), gpus_per_node=1).graph
        assert transfers(slower) == pytest.approx([100_000_000] * 4, rel=0.05)

    def test_added_time_counts_from_the_base(self) -> None:
        graph = run(1024, dur_ns=100_000)
        said = {"gpus_per_node": 1, "net_latency": "5us"}
        added = apply(graph, NetLatency(time="+20us"), **said).graph
        absolute = apply(graph, NetLatency(time="25us"), **said).graph
        assert transfers(added) == transfers(absolute)
        assert apply(graph, NetLatency(time="5us"), **said).no_effect == "it already is 5 us"

    def test_a_delay_between_hosts_is_added_per_step(self) -> None:
        graph = run(4096, gpu=None, ranks=(0, 1), dur_ns=400_000, on_host=True)
        slower = apply(graph, NetLatency(time="1ms")).graph
        assert transfers(slower) == [4_400_000, 4_400_000]


class TestPcie:
    def test_collectives_without_another_link_take_it(self) -> None:
        after = apply(run(gpu="NVIDIA L40S"), Pcie(rate="x2")).graph
        assert transfers(after) == pytest.approx([50_000_000] * 4, rel=0.02)

    def test_bridges_leave_it_to_the_others(self) -> None:
        pair = apply(run(gpu="NVIDIA H100 PCIe", ranks=(0, 1)), Pcie(rate="x2"))
        assert pair.no_effect is not None
        four = apply(run(gpu="NVIDIA H100 PCIe"), Pcie(rate="x2")).graph
        assert transfers(four) == pytest.approx([50_000_000] * 4, rel=0.02)

    def test_copies_keep_the_latency_of_the_shortest(self) -> None:
        build = GraphBuilder()
        name = "Memcpy HtoD (Pinned -> Device)"
        more = {"kind": TaskKind.MEMCPY, "kernel_class": KernelClass.MEMCPY}
        tasks = [build.kernel(0, name, dur_ns, **more) for dur_ns in (2_000, 102_000)]
        applied = apply(build.build(), Pcie(rate="x2"))
        assert applied.graph.tasks.dur_ns[tasks].tolist() == [2_000, 52_000]
        assert applied.no_effect is None
        least = apply(build.build(), Pcie(rate="x2"), bound=Bound.LOW).graph
        assert least.tasks.dur_ns[tasks].tolist() == [1_000, 51_000]

    def test_equal_copies_are_no_latency(self) -> None:
        build = GraphBuilder()
        more = {"kind": TaskKind.MEMCPY, "kernel_class": KernelClass.MEMCPY}
        task = build.kernel(0, "Memcpy HtoD (Pinned -> Device)", 105_000, **more)
        assert apply(build.build(), Pcie(rate="x2")).graph.tasks.dur_ns[task] == 55_000

    def test_copies_of_pageable_memory_stay_but_in_the_range(self) -> None:
        build = GraphBuilder()
        more = {"kind": TaskKind.MEMCPY, "kernel_class": KernelClass.MEMCPY}
        task = build.kernel(0, "Memcpy HtoD (Pageable -> Device)", 100_000, **more)
        assert apply(build.build(), Pcie(rate="x2")).graph.tasks.dur_ns[task] == 100_000
        low = apply(build.build(), Pcie(rate="x2"), bound=Bound.LOW).graph
        assert low.tasks.dur_ns[task] == 50_000

    def test_a_run_that_has_another_link_says_so(self) -> None:
        applied = apply(run(), Pcie(rate="x2"))
        assert applied.no_effect == (
            "no collective takes PCIe: NVIDIA H100 80GB HBM3 has a link of its own between the "
            "GPUs of a node"
        )


class TestWan:
    def test_a_run_is_halved_over_two_sites(self) -> None:
        applied = apply(run(), Wan(link="100Gbps,20ms"))
        assert all(each > 300_000_000 for each in transfers(applied.graph))
        assert any(text.startswith("two sites") for text in applied.assumptions)

    def test_latency_counts_where_there_are_few_bytes(self) -> None:
        near, far = (
            transfers(apply(run(1024, dur_ns=30_000), Wan(link=link)).graph)[0]
            for link in ("100Gbps,1ms", "100Gbps,20ms")
        )
        assert 1_000_000 < near < far
        assert far > 15_000_000

    def test_calls_of_unknown_size_cross_the_sites_too(self) -> None:
        graph = run(-1, dur_ns=20_000)
        after = apply(graph, Wan(link="100Gbps,20ms")).graph
        assert all(each > 15_000_000 for each in transfers(after))

    def test_groups_of_one_site_stay(self) -> None:
        build = GraphBuilder(ranks=(0, 1, 2, 3))
        calls = {rank: build.call(rank, "c", 10) for rank in (0, 1, 2, 3)}
        near = build.collective(10_000, callers={0: calls[0], 1: calls[1]}, size_bytes=MIB)
        build.collective(10_000, callers={1: calls[1], 2: calls[2]}, size_bytes=MIB)
        after = apply(build.build(), Wan(link="10Gbps,20ms")).graph
        assert after.tasks.dur_ns[list(near)].tolist() == [10_000, 10_000]

    def test_between_hosts_it_names_the_flags_that_do(self) -> None:
        graph = run(4096, gpu=None, ranks=(0, 1), dur_ns=400_000, on_host=True)
        no_effect = apply(graph, Wan(link="100Gbps,20ms")).no_effect
        assert no_effect is not None
        assert "--net-latency" in no_effect

    @pytest.mark.parametrize("link", ["100Gbps", "x2,20ms", "100Gbps,20", "fast,20ms"])
    def test_what_is_no_link_is_refused(self, link: str) -> None:
        with pytest.raises(UsageError):
            Wan(link=link)


class TestLibrary:
    def test_reduction_in_the_switch_can_be_taken_away(self) -> None:
        graph = run(ranks=tuple(range(8)))
        off = apply(graph, InNetwork(state="off")).graph
        assert all(each > 110_000_000 for each in transfers(off))
        back = apply(graph, InNetwork(state="off"), InNetwork(state="on")).graph
        assert transfers(back) == pytest.approx(transfers(graph), abs=2)

    @pytest.mark.parametrize(
        ("gpu", "state", "reason"),
        [
            ("NVIDIA H100 80GB HBM3", "on", "inside a node the switch may reduce already"),
            ("NVIDIA A100-SXM4-80GB", "on", "NVIDIA A100-SXM4-80GB has no switch that can"),
            ("NVIDIA A100-SXM4-80GB", "off", "NVIDIA A100-SXM4-80GB has no switch that can"),
        ],
    )
    def test_what_changes_nothing_says_why(self, gpu: str, state: str, reason: str) -> None:
        no_effect = apply(run(gpu=gpu), InNetwork(state=state)).no_effect
        assert no_effect is not None
        assert reason in no_effect

    def test_a_forced_algorithm_is_never_faster_than_the_best(self) -> None:
        graph = run(ranks=tuple(range(8)))
        ring = apply(graph, CollectiveAlgo(algorithm="ring")).graph
        assert all(each > 110_000_000 for each in transfers(ring))

    def test_what_the_machine_cannot_do_is_refused(self) -> None:
        with pytest.raises(ScenarioError, match="no switch that can"):
            apply(run(gpu="NVIDIA A100-SXM4-80GB"), CollectiveAlgo(algorithm="nvls"))

    def test_what_no_collective_can_do_says_so(self) -> None:
        graph = run(kind=CollectiveKind.ALL_GATHER)
        assert apply(graph, CollectiveAlgo(algorithm="tree")).no_effect == (
            "no collective of this run can be done by `tree`"
        )

    @pytest.mark.parametrize("change", [InNetwork, CollectiveAlgo])
    def test_unknown_words_are_refused(self, change: type) -> None:
        with pytest.raises(UsageError):
            change(**{change.__struct_fields__[0]: "rings"})
