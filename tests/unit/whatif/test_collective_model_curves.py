"""Curves of a trace's own calls, and what they say of the machine."""

from dataclasses import replace

import numpy as np
import pytest

from ingest.vocab import CollectiveKind
from whatif.models.bound import Bound
from whatif.models.collectives.calls import Calls, Float64, Int64
from whatif.models.collectives.curves import Curves, curves_of, rising
from whatif.models.collectives.model import model_ns, scaled_ns
from whatif.models.fabric import Fabric

H100 = Fabric(architecture="hopper", scale_up_bytes_per_s=450e9, nic_bytes_per_s=50e9)
SIZES = np.repeat(1 << np.arange(10, 31, 2), 3)


def calls(size_bytes: Int64, *, members: int = 8, nodes: int = 1) -> Calls:
    ones = np.ones(len(size_bytes), np.int64)
    return Calls(
        kind=ones * int(CollectiveKind.ALL_REDUCE),
        size_bytes=size_bytes,
        members=ones * members,
        nodes=ones * nodes,
        largest_node=ones * (members // nodes),
        sites=ones,
    )


def curves(size_bytes: Int64, time_ns: Float64) -> Curves:
    zeros = np.zeros(len(size_bytes), np.int64)
    measured = np.rint(time_ns).astype(np.int64)
    return curves_of(zeros + 1, zeros, zeros, size_bytes, measured)


def moved(
    time_ns: Float64, before: Calls, base: Fabric, after: Calls, new: Fabric, *, bound: Bound
) -> Int64:
    return scaled_ns(
        np.rint(time_ns).astype(np.int64),
        before=before,
        base=base,
        after=after,
        new=new,
        curves=curves(before.size_bytes, time_ns),
        bound=bound,
    )


class TestCurves:
    def test_a_knot_is_the_median_of_calls_of_one_size(self) -> None:
        sizes = np.array([100, 100, 100, 400, 400, 400])
        found = curves(sizes, np.array([10.0, 12.0, 90.0, 40.0, 44.0, 41.0]))
        assert found.size_bytes.tolist() == [100, 400]
        assert found.time_ns.tolist() == [12, 41]
        assert found.curve.tolist() == [0] * 6

    def test_where_the_model_is_flat_times_are_straight_on_log_scales(self) -> None:
        sizes = np.array([100, 100, 100, 400, 400, 400])
        found = curves(sizes, np.array([10.0, 10, 10, 40, 40, 40]))
        flat = np.full(6, 7.0)
        at = found.at(np.array([1.0, 100, 200, 400, 1e9, 50]), flat, np.array([7.0, 7.0]))
        assert at == pytest.approx([10, 10, 20, 40, 40, 10])

    def test_between_knots_far_apart_the_model_has_the_shape(self) -> None:
        sizes = np.repeat([1_000, 1_000_000], 3)
        found = curves(sizes, np.repeat([20.0, 1_020.0], 3))

        def model(size_bytes: Float64) -> Float64:
            return 10.0 + size_bytes * 0.0005

        there = np.array([1e3, 1e4, 1e5, 5e5, 1e6, 1e7])
        at = found.at(there, model(there), model(found.size_bytes))
        assert at[[0, 4]] == pytest.approx([20, 1_020])
        assert at[1:4] == pytest.approx(2 * model(there[1:4]), rel=0.1)
        assert at[5] == pytest.approx(2 * model(there)[5], rel=1e-3)

    def test_times_between_knots_stay_between_theirs(self) -> None:
        sizes = np.array([100, 100, 100, 400, 400, 400])
        found = curves(sizes, np.array([10.0, 10, 10, 12, 12, 12]))
        falling = np.array([9.0, 1, 1, 1, 1, 90])
        at = found.at(np.array([50.0, 150, 200, 300, 350, 390]), falling, np.array([5.0, 5.0]))
        assert at[1:].min() >= 10
        assert at.max() <= 12

    def test_kinds_groups_and_levels_have_their_own(self) -> None:
        sizes = np.tile(np.repeat([100, 200], 3), 2)
        ones, times = np.ones(12, np.int64), np.arange(1, 13)
        group = np.repeat([0, 1], 6)
        found = curves_of(ones, group, ones, sizes, times)
        assert found.at(np.full(12, 100.0), np.ones(12), np.ones(4)) == pytest.approx(
            [2] * 6 + [8] * 6
        )

    def test_few_calls_and_unknown_sizes_make_no_curve(self) -> None:
        sizes = np.array([100, 100, 400, 400, -1, -1, -1, 0, 0, 0])
        found = curves(sizes, np.full(10, 5.0))
        assert not found.known.any()
        assert np.isnan(found.at(np.full(10, 100.0), np.ones(10), np.ones(0))).all()

    def test_neighbours_that_fall_are_pooled(self) -> None:
        values = rising(np.array([1.0, 5.0, 3.0, 10.0, 9.0, 8.0]), np.array([1, 1, 3, 1, 1, 1.0]))
        assert values == pytest.approx([1, 3.5, 3.5, 9, 9, 9])


class TestACurveBeatsTheFormula:
    faster = replace(H100, scale_up_bytes_per_s=900e9)

    def test_where_half_of_the_bytes_take_as_long_a_faster_link_gains_nothing(self) -> None:
        flat = np.full(len(SIZES), 5e6)
        there = moved(flat, calls(SIZES), H100, calls(SIZES), self.faster, bound=Bound.NOMINAL)
        inside = SIZES.min() < SIZES
        assert there[inside] == pytest.approx(flat[inside], rel=0.02)

    def test_where_half_of_the_bytes_take_half_as_long_it_gains_half(self) -> None:
        steep = SIZES * 0.01 + 1
        there = moved(steep, calls(SIZES), H100, calls(SIZES), self.faster, bound=Bound.NOMINAL)
        large = SIZES >= 1 << 28
        assert there[large] == pytest.approx(steep[large] / 2, rel=0.02)


class TestAMachineTellsItsOwnConstants:
    two = calls(SIZES, members=16, nodes=2)
    four = calls(SIZES, members=32, nodes=4)

    def test_the_hop_between_two_nodes_holds_between_four(self) -> None:
        slow = replace(H100, net_latency_ns=92_000.0)
        measured, truth = model_ns(self.two, slow), model_ns(self.four, slow)
        there = moved(measured, self.two, H100, self.four, H100, bound=Bound.NOMINAL)
        plain = measured * model_ns(self.four, H100) / model_ns(self.two, H100)
        small = SIZES <= 1 << 16
        assert np.abs(there / truth - 1)[small].max() < 0.1
        assert np.abs(plain / truth - 1)[small].max() > 0.2

    def test_nics_that_reach_half_of_their_rate_do_so_at_twice_the_rate(self) -> None:
        half = replace(H100, nic_bytes_per_s=25e9)
        measured = model_ns(self.four, half)
        new, truth = replace(H100, nic_bytes_per_s=100e9), model_ns(self.four, H100)
        there = moved(measured, self.four, H100, self.four, new, bound=Bound.NOMINAL)
        large = SIZES >= 1 << 26
        assert np.abs(there / truth - 1)[large].max() < 0.1

    @pytest.mark.parametrize("bound", list(Bound))
    def test_nothing_changes_where_nothing_is_changed(self, bound: Bound) -> None:
        measured = np.rint(model_ns(self.two, H100) * 1.7)
        there = moved(measured, self.two, H100, self.two, H100, bound=bound)
        assert (there == measured).all()
