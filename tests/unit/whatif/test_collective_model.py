"""The collective model: times known by hand, and what stays when links change."""

from dataclasses import replace

import numpy as np
import pytest

from ingest.vocab import CollectiveKind as Kind
from tests.collective_calls import inside_one_node
from whatif.models.bound import Bound
from whatif.models.collectives.calls import Calls
from whatif.models.collectives.model import (
    ERROR_IN_NODE,
    ERROR_MORE_GPUS,
    ERROR_NEW_NETWORK,
    ERROR_OTHER_WAY,
    ERROR_SAME_NODES,
    known_error,
    model_ns,
    scaled_ns,
)
from whatif.models.fabric import Algorithm, Fabric, Factors, Shape

H100 = Fabric(architecture="hopper", scale_up_bytes_per_s=450e9, nic_bytes_per_s=50e9)
A100 = Fabric(architecture="ampere", scale_up_bytes_per_s=300e9, nic_bytes_per_s=25e9)
B200 = Fabric(architecture="blackwell", scale_up_bytes_per_s=900e9, nic_bytes_per_s=50e9)
MI300X = Fabric(
    architecture="cdna3",
    scale_up_bytes_per_s=448e9,
    scale_up_shape=Shape.MESH,
    nic_bytes_per_s=50e9,
)
MIB = 1 << 20
HUGE = 1 << 52
"""Bytes beside which no latency counts."""
NIC = 0.91 * 50e9
RING_OF_H100 = 20.6 / 25 * 450e9


def calls(size_bytes: int, *, kind: Kind = Kind.ALL_REDUCE, members: int = 8) -> Calls:
    return inside_one_node(np.array([int(kind)]), np.array([size_bytes]), np.array([members]))


def across(
    size_bytes: int,
    *,
    kind: Kind = Kind.ALL_REDUCE,
    members: int = 16,
    nodes: int = 2,
    largest: int | None = None,
    sites: int = 1,
) -> Calls:
    return replace(
        calls(size_bytes, kind=kind, members=members),
        nodes=np.array([nodes]),
        largest_node=np.array([largest or members // nodes]),
        sites=np.array([sites]),
    )


def time_ns(of: Calls, fabric: Fabric = H100) -> float:
    return float(model_ns(of, fabric)[0])


def scaled(measured_ns: int, of: Calls, factor: float, bound: Bound = Bound.NOMINAL) -> int:
    new = replace(H100, scale_up_bytes_per_s=450e9 * factor)
    return moved(measured_ns, of, H100, of, new, bound)


def moved(
    measured_ns: int,
    before: Calls,
    base: Fabric,
    after: Calls,
    new: Fabric,
    bound: Bound = Bound.NOMINAL,
) -> int:
    measured = np.array([measured_ns], np.int64)
    there = scaled_ns(measured, before=before, base=base, after=after, new=new, bound=bound)
    return int(there[0])


class TestLargeCallsTakeTheirBytesOverTheLinkThatBinds:
    """Two in a thousand for latency and pipeline."""

    def expect(self, of: Calls, fabric: Fabric, seconds_per_byte: float) -> None:
        expected = HUGE * seconds_per_byte * 1e9
        assert time_ns(of, fabric) == pytest.approx(expected, rel=2e-3)

    @pytest.mark.parametrize(
        ("kind", "part"),
        [
            (Kind.ALL_GATHER, 7 / 8),
            (Kind.REDUCE_SCATTER, 7 / 8),
            (Kind.ALL_TO_ALL, 7 / 8),
            (Kind.BROADCAST, 1.0),
            (Kind.REDUCE, 1.0),
            (Kind.SEND_RECV, 1.0),
        ],
    )
    def test_bus_factors_are_those_of_nccl_tests(self, kind: Kind, part: float) -> None:
        self.expect(calls(HUGE, kind=kind), H100, part / RING_OF_H100)

    def test_ampere_reduces_in_rings(self) -> None:
        self.expect(calls(HUGE), A100, 2 * 7 / 8 / 240e9)

    def test_hopper_reduces_in_the_switch(self) -> None:
        self.expect(calls(HUGE), H100, 9 / 8 / (0.85 * RING_OF_H100))

    def test_with_three_members_the_ring_is_faster_than_the_switch(self) -> None:
        self.expect(calls(HUGE, members=3), H100, 2 * 2 / 3 / RING_OF_H100)

    @pytest.mark.parametrize("off", [{"in_network": False}, {"algorithm": Algorithm.RING}])
    def test_the_switch_can_be_left_out(self, off: dict[str, object]) -> None:
        self.expect(calls(HUGE), replace(H100, **off), 2 * 7 / 8 / RING_OF_H100)

    def test_between_two_nodes_a_tree_crosses_once(self) -> None:
        self.expect(across(HUGE), B200, 1 / (8 * NIC))

    def test_between_more_nodes_a_tree_crosses_twice_as_often_and_a_ring_nearly(self) -> None:
        of = across(HUGE, members=32, nodes=4)
        self.expect(of, B200, 2 * 31 / 32 / (8 * NIC))

    def test_a_ring_through_uneven_nodes_leaves_by_the_nics_of_the_emptiest(self) -> None:
        of = across(HUGE, kind=Kind.ALL_GATHER, members=10, nodes=2, largest=8)
        self.expect(of, H100, 9 / 10 / (2 * NIC))

    def test_an_all_to_all_leaves_by_one_nic_each(self) -> None:
        of = across(HUGE, kind=Kind.ALL_TO_ALL, members=32, nodes=4)
        self.expect(of, H100, 24 / 32 / NIC)

    def test_a_pair_in_two_nodes_has_one_nic(self) -> None:
        of = across(HUGE, kind=Kind.SEND_RECV, members=2, nodes=2)
        self.expect(of, H100, 1 / NIC)

    def test_two_of_a_mesh_have_one_link(self) -> None:
        self.expect(calls(HUGE, members=2), MI300X, 1.0 / 48e9)
        self.expect(calls(HUGE), MI300X, 2 * 7 / 8 / (7 * 48e9))

    def test_four_of_a_mesh_of_four_have_all_of_their_links(self) -> None:
        quad = replace(MI300X, scale_up_bytes_per_s=150e9, mesh_links=3)
        ring = 0.75 * 150e9
        self.expect(calls(HUGE, members=4), quad, 2 * 3 / 4 / ring)
        self.expect(calls(HUGE, members=2), quad, 3 / ring)

    def test_v100_cubes_have_the_rates_that_were_measured(self) -> None:
        cube = Fabric(
            architecture="volta", scale_up_bytes_per_s=150e9, scale_up_shape=Shape.CUBE_MESH
        )
        self.expect(calls(HUGE, members=2), cube, 1 / (0.168 * 135e9))
        self.expect(calls(HUGE), cube, 2 * 7 / 8 / 135e9)

    def test_bridges_join_two_and_pcie_the_rest(self) -> None:
        pairs = replace(A100, scale_up_shape=Shape.PAIRS, pcie_bytes_per_s=31e9)
        self.expect(calls(HUGE, members=2), pairs, 1.0 / 240e9)
        self.expect(calls(HUGE, members=4), pairs, 2 * 3 / 4 / 24e9)

    def test_between_sites_the_wan_binds(self) -> None:
        far = replace(H100, wan_bytes_per_s=1e9, wan_latency_ns=10e6)
        of = across(HUGE, kind=Kind.ALL_GATHER, sites=2)
        self.expect(of, far, 15 / 16 / (8 * 0.91 * 1e9))

    def test_racks_leave_by_nine_nics(self) -> None:
        of = across(HUGE, members=144, nodes=2)
        self.expect(of, B200, 1 / (9 * NIC))

    def test_one_after_the_other_takes_the_sum(self) -> None:
        forced = replace(B200, algorithm=Algorithm.HIERARCHICAL)
        inside = 2 * 7 / 8 / (40.1 / 50 * 900e9)
        self.expect(across(HUGE), forced, inside + 2 * 1 / 2 / (8 * NIC))

    def test_reading_all_the_others_takes_their_bytes(self) -> None:
        forced = replace(H100, algorithm=Algorithm.DIRECT)
        self.expect(calls(HUGE), forced, 7 / RING_OF_H100)


class TestSmallCallsTakeTheirSteps:
    def test_the_smallest_all_reduce_takes_the_measured_17_us(self) -> None:
        assert time_ns(calls(0)) == pytest.approx(1.13 * (6_600 + 14 * 600))

    def test_a_tree_takes_two_hops_per_doubling_of_the_nodes(self) -> None:
        tree = replace(H100, algorithm=Algorithm.TREE)
        two, four, eight = (time_ns(across(0, members=8 * n, nodes=n), tree) for n in (2, 4, 8))
        assert four - two == pytest.approx(2 * 12_000)
        assert eight - four == pytest.approx(2 * 12_000)

    def test_a_given_latency_stands_for_the_usual_one(self) -> None:
        tree = replace(A100, algorithm=Algorithm.TREE)
        near, far = (replace(tree, net_latency_ns=ns) for ns in (4_000.0, 14_000.0))
        assert time_ns(across(0), near) == pytest.approx(time_ns(across(0), tree))
        assert time_ns(across(0), far) - time_ns(across(0), near) == pytest.approx(20_000)

    def test_gathering_from_single_gpu_nodes_takes_log_steps(self) -> None:
        forced = replace(H100, algorithm=Algorithm.RING)
        of = across(0, kind=Kind.ALL_GATHER, members=64, nodes=64)
        assert time_ns(of, H100) < time_ns(of, forced) / 1.5

    def test_sites_add_their_distance(self) -> None:
        far = replace(H100, wan_bytes_per_s=1e9, wan_latency_ns=20e6)
        assert time_ns(across(0, sites=2), far) == pytest.approx(2 * 20e6, rel=0.01)

    def test_an_algorithm_that_cannot_do_it_is_not_taken(self) -> None:
        forced = replace(A100, algorithm=Algorithm.NVLS)
        assert time_ns(calls(MIB), forced) == time_ns(calls(MIB), A100)


class TestWhatIsNotKnown:
    def test_no_size_has_no_time(self) -> None:
        assert np.isnan(time_ns(calls(-1)))

    def test_no_rate_of_a_link_that_is_crossed_has_none_either(self) -> None:
        blind = Fabric(architecture="hopper", scale_up_bytes_per_s=450e9)
        assert np.isnan(time_ns(across(MIB), blind))
        assert time_ns(calls(MIB), blind) > 0

    def test_single_gpu_nodes_need_no_scale_up_link(self) -> None:
        assert time_ns(across(MIB, members=2, nodes=2), Fabric(nic_bytes_per_s=50e9)) > 0

    def test_without_a_size_the_measured_time_stands_for_it(self) -> None:
        size = 64 * MIB
        measured_ns = round(time_ns(calls(size)))
        known = scaled(measured_ns, calls(size), 2.0)
        assert scaled(measured_ns, calls(-1), 2.0) == pytest.approx(known, rel=1e-3)

    def test_latencies_take_at_most_half_of_a_call_of_unknown_size(self) -> None:
        """The model's latency of eight in a node is 17 us: more than was measured."""
        low, nominal, high = (
            scaled(10_000, calls(-1), 0.01, bound)
            for bound in (Bound.LOW, Bound.NOMINAL, Bound.HIGH)
        )
        assert low == 10_000
        assert 200_000 < nominal < 505_000  # half of it bytes, and the filling of the pipeline
        assert high == pytest.approx(1_000_000, rel=0.1)
        assert scaled(10_000, calls(-1), 1.0, Bound.HIGH) == 10_000

    def test_a_recorded_size_takes_its_bytes_on_a_network_of_unknown_rate(self) -> None:
        """8 MB in 80 us over eight nodes: 183 GB/s, which leaves hardly anything for latency."""
        of = across(8_000_000, members=8, nodes=8)
        known = replace(H100, nic_bytes_per_s=50e9)
        slow = replace(known, nic_bytes_per_s=5e9)
        unknown = replace(known, nic_bytes_per_s=None)
        tenth = replace(unknown, factors=Factors(nic=0.1))
        low, nominal, high = (
            moved(80_000, of, unknown, of, tenth, bound)
            for bound in (Bound.LOW, Bound.NOMINAL, Bound.HIGH)
        )
        assert low < nominal < high
        assert 600_000 < nominal < 800_000
        assert high >= 800_000
        assert low < moved(80_000, of, known, of, slow) < high

    def test_four_bytes_are_latency_on_any_network(self) -> None:
        of = across(4, members=8, nodes=8)
        unknown = replace(H100, nic_bytes_per_s=None)
        tenth = replace(unknown, factors=Factors(nic=0.1))
        for bound in Bound:
            assert moved(80_000, of, unknown, of, tenth, bound) == pytest.approx(80_000, rel=0.02)

    @pytest.mark.parametrize("kind", [Kind.ALL_REDUCE, Kind.ALL_GATHER, Kind.SEND_RECV])
    def test_without_a_rate_a_factor_will_do(self, kind: Kind) -> None:
        of = calls(64 * MIB, kind=kind)
        measured_ns = round(time_ns(of, replace(H100, in_network=False)))
        unknown = Fabric(architecture="hopper", in_network=False)
        twice = replace(unknown, factors=Factors(scale_up=2.0))
        known = replace(H100, in_network=False)
        faster = replace(known, scale_up_bytes_per_s=900e9)
        by_factor = moved(measured_ns, of, unknown, of, twice)
        assert by_factor == pytest.approx(moved(measured_ns, of, known, of, faster), rel=1e-3)
        assert moved(by_factor, of, twice, of, unknown) == pytest.approx(measured_ns, rel=1e-4)

    def test_a_barrier_moves_no_bytes(self) -> None:
        assert scaled(30_000, calls(0, kind=Kind.BARRIER), 4.0) == 30_000
        assert scaled(30_000, calls(-1, kind=Kind.BARRIER), 4.0) == 30_000


class TestMeasuredTimesMove:
    def test_large_ones_scale_with_the_link_and_small_ones_stay(self) -> None:
        assert scaled(100_000_000, calls(1 << 34), 2.0) == pytest.approx(50_000_000, rel=0.01)
        assert scaled(22_000, calls(1024), 2.0) == pytest.approx(22_000, rel=0.01)

    def test_a_slower_link_takes_longer(self) -> None:
        assert scaled(1_000_000, calls(64 * MIB), 0.5) > 1_000_000
        assert scaled(1_000_000, calls(-1), 0.5) > 1_000_000

    @pytest.mark.parametrize("size_bytes", [64 * 1024, MIB, 64 * MIB, -1])
    def test_the_range_encloses_the_answer(self, size_bytes: int) -> None:
        low, nominal, high = (
            scaled(200_000, calls(size_bytes), 4.0, bound)
            for bound in (Bound.LOW, Bound.NOMINAL, Bound.HIGH)
        )
        assert low < nominal < high < 200_000

    def test_a_call_alone_in_its_group_stays(self) -> None:
        assert scaled(5_000, calls(MIB, members=1), 2.0) == 5_000

    def test_a_group_that_shrinks_to_one_has_nothing_to_send(self) -> None:
        assert moved(5_000, calls(MIB), H100, calls(MIB, members=1), H100) == 0

    def test_a_group_that_grows_from_one_takes_what_the_model_says(self) -> None:
        grown = moved(5_000, calls(MIB, members=1), H100, calls(MIB), H100)
        assert grown == pytest.approx(time_ns(calls(MIB)), abs=1)

    def test_a_base_that_the_measured_time_beats_keeps_its_lead(self) -> None:
        slow = replace(A100, scale_up_bytes_per_s=30e9)
        faster = replace(A100, scale_up_bytes_per_s=60e9)
        of = calls(1 << 30)
        assert moved(8_000_000, of, slow, of, faster) == pytest.approx(4_000_000, rel=0.02)

    def test_rows_that_are_alike_move_alike(self) -> None:
        many = inside_one_node(
            np.full(4, int(Kind.ALL_REDUCE)), np.array([MIB, -1, MIB, -1]), np.full(4, 8)
        )
        new = replace(H100, scale_up_bytes_per_s=900e9)
        measured = np.array([100_000, 100_000, 200_000, 900_000])
        there = scaled_ns(measured, before=many, base=H100, after=many, new=new)
        assert there[2] == pytest.approx(2 * there[0], abs=1)
        each = [
            moved(int(ns), calls(int(size)), H100, calls(int(size)), new)
            for ns, size in zip(measured, many.size_bytes, strict=True)
        ]
        assert there.tolist() == each


def test_the_error_that_is_told_is_that_of_the_change() -> None:
    inside, outside = calls(MIB), across(MIB)
    assert ERROR_NEW_NETWORK in known_error(inside, H100, outside, H100)
    assert ERROR_NEW_NETWORK not in known_error(outside, H100, outside, A100)
    assert known_error(inside, A100, inside, H100) == ERROR_IN_NODE
    assert known_error(inside, H100, calls(MIB, members=4), H100) == ERROR_MORE_GPUS
    quicker = replace(H100, nic_bytes_per_s=100e9)
    assert known_error(outside, H100, outside, quicker) == ERROR_SAME_NODES
    tree = replace(H100, algorithm=Algorithm.TREE)
    assert known_error(inside, H100, inside, tree) == ERROR_OTHER_WAY
