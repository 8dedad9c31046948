"""Kernels on other accelerators: known times, and what holds for all of them."""

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.vocab import ElementType, KernelClass
from whatif.models.bound import Bound
from whatif.models.hardware import require
from whatif.models.kernels.machine import Machine, machine_of
from whatif.models.kernels.roofline import (
    MATRIX,
    Kernels,
    Precision,
    gains_tf32,
    model_ns,
    scaled_ns,
)
from whatif.models.kernels.shares import Reading, Shares, Work, published

NAMES = ("V100", "A100 SXM4 80 GB", "H100 SXM5 80 GB", "H200", "B200", "MI300X", "MI355X", "L4")
MACHINES = {name: machine_of(require(name)) for name in NAMES}
A100, H100, B200, MI300X = (
    MACHINES[name] for name in ("A100 SXM4 80 GB", "H100 SXM5 80 GB", "B200", "MI300X")
)
MS = 1_000_000


def kernels(
    kind: KernelClass = KernelClass.GEMM,
    *,
    flops: float = math.nan,
    moved: float = math.nan,
    dtype: ElementType = ElementType.BF16,
    tiles: int = -1,
) -> Kernels:
    """One kernel."""
    return Kernels(
        kernel_class=np.array([kind], np.int8),
        dtype=np.array([dtype], np.int8),
        flops=np.array([flops]),
        bytes=np.array([moved]),
        tiles=np.array([tiles]),
    )


def on(new: Machine, measured_ns: int, work: Kernels, base: Machine = H100, **more: object) -> int:
    return int(scaled_ns(np.array([measured_ns]), work, base, new, **more)[0])


def share(machine: Machine, work: Work) -> float:
    return machine.shares.of(machine.architecture, work).value


def full(machine: Machine, work: Kernels) -> int:
    """A kernel that reaches what its architecture usually does."""
    return round(float(model_ns(work, machine)[0]))


def test_a_large_product_follows_the_peaks_that_are_reached() -> None:
    work = kernels(flops=1e13, moved=1e9)
    measured = full(A100, work)
    reached = 312e12 * share(A100, Work.MATMUL) / (989.5e12 * share(H100, Work.MATMUL))
    expected = (measured - A100.floor_ns) * reached + H100.floor_ns
    assert on(H100, measured, work, A100) == pytest.approx(expected, rel=1e-3)


def test_a_large_copy_follows_the_bandwidths_that_are_reached() -> None:
    work = kernels(KernelClass.ELEMENTWISE, moved=1e10)
    measured = full(A100, work)
    reached = 2039e9 * share(A100, Work.MEMORY) / (3350e9 * share(H100, Work.MEMORY))
    expected = (measured - A100.floor_ns) * reached + H100.floor_ns
    assert on(H100, measured, work, A100) == pytest.approx(expected, rel=1e-3)


def test_a_product_of_one_row_is_bound_by_memory() -> None:
    # 8192 x 8192 weights for one token: 134 MB, 0.13 GFLOP
    work = kernels(flops=2 * 8192.0**2, moved=2 * 8192.0**2)
    measured = full(H100, work)
    memory = 3350 * share(H100, Work.MEMORY) / (8000 * share(B200, Work.MEMORY))
    compute = 989.5 * share(H100, Work.MATMUL) / (2250 * share(B200, Work.MATMUL))
    found = (on(B200, measured, work) - B200.floor_ns) / (measured - H100.floor_ns)
    assert found == pytest.approx(memory, rel=0.01)
    assert abs(found - compute) > 0.05


def test_a_kernel_at_the_floor_does_not_scale() -> None:
    assert on(B200, 1_500, kernels(flops=1e6, moved=1e4)) == 1_500


def test_a_short_kernel_takes_what_the_other_maker_takes_at_least() -> None:
    work = kernels(KernelClass.ELEMENTWISE, moved=1e4)
    assert on(MI300X, 2_000, work) == MI300X.floor_ns


def test_what_leaves_its_roof_unused_gains_less() -> None:
    work = kernels(flops=1e12, moved=1e8)
    busy, idle = full(A100, work), 10 * full(A100, work)
    assert on(H100, idle, work, A100) / idle > 1.5 * on(H100, busy, work, A100) / busy


def test_a_tensor_out_of_the_cache_stays_in_a_cache() -> None:
    moved = 20e6
    work = kernels(KernelClass.ELEMENTWISE, moved=moved)
    measured = round(H100.floor_ns + moved / H100.cache_bytes_per_s * 1e9)
    cached = on(B200, measured, work)
    assert cached - 2_000 == pytest.approx(
        (measured - 2_000) * H100.cache_bytes_per_s / B200.cache_bytes_per_s, rel=0.01
    )


def test_a_tensor_that_no_longer_fits_the_cache_goes_to_memory() -> None:
    moved = 40e6
    work = kernels(KernelClass.ELEMENTWISE, moved=moved)
    small = replace(B200, cache_bytes=1e6)
    measured = round(H100.floor_ns + moved / 4e12 * 1e9)
    expected = moved / (8e12 * share(B200, Work.MEMORY)) * 1e9 + B200.floor_ns
    assert on(small, measured, work) == pytest.approx(expected, rel=0.01)


def test_bytes_that_nobody_can_have_moved_are_no_bytes() -> None:
    cache = kernels(KernelClass.ATTENTION, moved=1e12)
    assert on(B200, 20_000, cache) == on(B200, 20_000, kernels(KernelClass.ATTENTION))


@pytest.mark.parametrize("kind", [KernelClass.GEMM, KernelClass.ELEMENTWISE])
@pytest.mark.parametrize("bound", list(Bound))
def test_no_work_is_work_that_is_not_known(kind: KernelClass, bound: Bound) -> None:
    nothing, unknown = kernels(kind, flops=0.0, moved=0.0), kernels(kind)
    assert on(B200, MS, nothing, bound=bound) == on(B200, MS, unknown, bound=bound)


def test_the_last_wave_counts_on_the_same_architecture() -> None:
    pcie = machine_of(require("H100 PCIe 80 GB"))  # 114 SMs
    work = kernels(flops=1e12, moved=1e6, tiles=132)
    measured = full(H100, work)
    plain = on(pcie, measured, replace(work, tiles=np.array([-1])))
    with_waves = on(pcie, measured, work)
    assert with_waves / plain == pytest.approx(2 * 114 / 132, rel=0.01)


def test_the_range_of_a_product_without_shapes_holds_both_roofs() -> None:
    work = kernels(dtype=ElementType.FP32)
    low, high = (on(H100, MS, work, A100, bound=bound) for bound in (Bound.LOW, Bound.HIGH))
    compute = 19.5 * share(A100, Work.SINGLE) / (67 * share(H100, Work.SINGLE))
    memory = 2039 * share(A100, Work.MEMORY) / (3350 * share(H100, Work.MEMORY))
    assert low <= MS * compute * 1.01
    assert high >= MS * memory * 0.99


def test_a_card_of_little_power_keeps_a_part_of_its_peak() -> None:
    work = kernels(flops=1e13, moved=1e9)
    card = MACHINES["L4"]
    measured = full(A100, work)
    strong = on(replace(card, power_share=1.0), measured, work, A100)
    assert on(card, measured, work, A100) == pytest.approx(strong / 0.67, rel=0.01)


def test_convolutions_in_fp32_become_tf32_where_there_is_tf32() -> None:
    work = kernels(KernelClass.CONVOLUTION, flops=1e13, moved=1e6, dtype=ElementType.FP32)
    volta = MACHINES["V100"]
    measured = full(volta, work)
    assert on(A100, measured, work, volta) == pytest.approx(measured * 15.7 / 156, rel=0.02)


def test_eight_bits_take_half_the_time_of_sixteen() -> None:
    work = kernels(flops=1e13, moved=1e9)
    fp8 = Precision(dtype=np.array([ElementType.FP8], np.int8), bytes_factor=np.array([0.5]))
    relative = share(H100, Work.FP8) / share(H100, Work.MATMUL)
    measured = full(H100, work)
    found = on(H100, measured, work, precision=fp8) - H100.floor_ns
    assert found == pytest.approx((measured - H100.floor_ns) / 2 / relative, rel=1e-3)


work_of_any_kind = st.builds(
    kernels,
    st.sampled_from([kind for kind in KernelClass if kind != KernelClass.COLLECTIVE]),
    flops=st.one_of(st.just(math.nan), st.floats(1e6, 1e14)),
    moved=st.one_of(st.just(math.nan), st.floats(1e3, 1e11)),
    dtype=st.sampled_from(list(ElementType)),
    tiles=st.integers(-1, 5_000),
)
pairs = st.sampled_from(list(permutations(MACHINES.values(), 2)))
times = st.integers(0, 10**10)


@given(work_of_any_kind, st.sampled_from(list(MACHINES.values())), times)
def test_the_same_machine_changes_nothing(work: Kernels, machine: Machine, measured: int) -> None:
    assert {on(machine, measured, work, machine, bound=bound) for bound in Bound} == {measured}


@given(work_of_any_kind, pairs, times)
def test_bounds_lie_around_the_answer(
    work: Kernels, pair: tuple[Machine, Machine], measured: int
) -> None:
    low, nominal, high = (
        on(pair[1], measured, work, pair[0], bound=bound)
        for bound in (Bound.LOW, Bound.NOMINAL, Bound.HIGH)
    )
    assert low <= nominal <= high


@given(work_of_any_kind, pairs, times, st.floats(1, 10), st.sampled_from(list(Bound)))
def test_more_peak_or_bandwidth_never_takes_longer(
    work: Kernels, pair: tuple[Machine, Machine], measured: int, more: float, bound: Bound
) -> None:
    base, new = pair
    faster = replace(
        new,
        name="faster",
        flops_per_s={kind: peak * more for kind, peak in new.flops_per_s.items()},
    )
    wider = replace(
        new,
        name="wider",
        memory_bytes_per_s=new.memory_bytes_per_s * more,
        cache_bytes_per_s=new.cache_bytes_per_s * more,
    )
    now = on(new, measured, work, base, bound=bound)
    assert on(faster, measured, work, base, bound=bound) <= now
    assert on(wider, measured, work, base, bound=bound) <= now


@given(work_of_any_kind, pairs, times)
def test_what_took_longer_takes_longer_there(
    work: Kernels, pair: tuple[Machine, Machine], measured: int
) -> None:
    base, new = pair
    if math.isnan(float(work.flops[0])) and math.isnan(float(work.bytes[0])):
        assert on(new, measured, work, base) <= on(new, 2 * measured, work, base)


@given(work_of_any_kind, pairs, times)
def test_ratios_lie_between_those_of_the_roofs(
    work: Kernels, pair: tuple[Machine, Machine], measured: int
) -> None:
    """Of a kernel without its overhead: compute, memory, caches and clock; never below the peak."""
    base, new = pair
    kind, dtype = KernelClass(work.kernel_class[0]), work.dtype
    if base.architecture == new.architecture and int(work.tiles[0]) > 0:
        return  # waves are beside the roofs
    big = kernels(kind, flops=1e13, moved=math.nan, dtype=ElementType(int(dtype[0])))
    compute = full(new, big) - new.floor_ns, full(base, big) - base.floor_ns
    memory = share(base, Work.MEMORY) * base.memory_bytes_per_s
    there = share(new, Work.MEMORY) * new.memory_bytes_per_s
    overhead = min(measured, base.floor_ns)
    rest = measured - overhead
    seen = float(work.bytes[0]) / max(rest, 1) * 1e9
    rates = (memory, max(memory, base.cache_bytes_per_s if math.isnan(seen) else seen))
    best = (there, max(there, new.cache_bytes_per_s))
    if kind == KernelClass.CONVOLUTION and gains_tf32(base, new):
        return  # its type is another one there
    roofs = [compute[0] / compute[1], base.clock_hz / new.clock_hz]
    roofs += [here / far for here in (*rates, base.cache_bytes_per_s) for far in best]
    reached = float(work.flops[0]) / max(rest, 1) * 1e9
    if kind == KernelClass.GEMM and not math.isnan(reached):
        roofs.append(reached / (1e13 / (full(new, big) - new.floor_ns) * 1e9))
    found = on(new, measured, work, base)
    floor = overhead * new.floor_ns / base.floor_ns
    least = 0.0
    if kind in MATRIX and not math.isnan(float(work.flops[0])):
        least = float(work.flops[0]) / min(new.flops_per_s.values()) * 1e9 + 1
    assert found >= math.floor(floor + rest * min(roofs) * 0.999) - 1
    assert found <= max(math.ceil(floor + rest * max(roofs) * 1.001) + 1, least)


@given(st.floats(1e9, 1e15), pairs, times)
def test_no_product_is_faster_than_its_peak(
    flops: float, pair: tuple[Machine, Machine], measured: int
) -> None:
    base, new = pair
    work = kernels(flops=flops, moved=1e6)
    possible = measured >= flops / base.flops_per_s[ElementType.BF16] * 1e9
    for bound in Bound:
        found = on(new, measured, work, base, bound=bound)
        if possible:
            assert found >= math.floor(flops / new.flops_per_s[ElementType.BF16] * 1e9)


def test_every_reading_has_a_public_source_and_is_a_share() -> None:
    readings = published().readings
    assert all(each.source.startswith("https://") for each in readings)
    assert all(0 < each.value < 1.2 for each in readings)
    assert len({(each.architecture, each.work, each.what, each.group) for each in readings}) == len(
        readings
    )


def test_shares_are_geometric_means_and_say_how_far_readings_differ() -> None:
    def reading(value: float, group: str) -> Reading:
        return Reading(
            architecture="one",
            work=Work.MATMUL,
            value=value,
            what=group,
            group=group,
            source="https://example.com",
            date="2026-11",
        )

    shares = Shares((reading(0.4, "a"), reading(0.9, "b")))
    found = shares.of("one", Work.MATMUL)
    assert found.value == pytest.approx(0.6)
    assert found.spread == pytest.approx(math.log(0.9 / 0.4) / math.sqrt(2))
    assert shares.without("b").of("one", Work.MATMUL).value == pytest.approx(0.4)
    assert shares.of("another", Work.SINGLE).value == pytest.approx(0.6)
