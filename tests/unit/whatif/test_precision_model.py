"""Kernels in a narrower type: who moves, what casts cost, what stays."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.vocab import ElementType, KernelClass
from whatif.models.bound import Bound
from whatif.models.hardware import require
from whatif.models.kernels.machine import machine_of
from whatif.models.kernels.precision import FOLLOWING, Recast, recast
from whatif.models.kernels.roofline import MATRIX, Kernels
from whatif.models.kernels.shares import Work

H100 = machine_of(require("H100 SXM5 80 GB"))
A100 = machine_of(require("A100 SXM4 80 GB"))
MS = 1_000_000


def in_type(  # noqa: PLR0913  (each argument is one property of a kernel)
    target: ElementType,
    kind: KernelClass = KernelClass.GEMM,
    dtype: ElementType = ElementType.BF16,
    *,
    flops: float = 1e12,
    moved: float = 1e8,
    operands: float = math.nan,
    measured: int = 2 * MS,
    bound: Bound = Bound.NOMINAL,
) -> Recast:
    matrix = kind in MATRIX
    kernels = Kernels(
        kernel_class=np.array([kind], np.int8),
        dtype=np.array([dtype], np.int8),
        flops=np.array([flops if matrix else math.nan]),
        bytes=np.array([moved]),
        tiles=np.array([-1]),
    )
    operand_bytes = np.array([operands if matrix else math.nan])
    return recast(np.array([measured]), kernels, operand_bytes, H100, target, bound)


def test_a_product_in_fp8_has_twice_the_peak() -> None:
    found = in_type(ElementType.FP8)
    reached = [H100.shares.of("hopper", work).value for work in (Work.MATMUL, Work.FP8)]
    used = 1e12 / (989.5e12 * reached[0]) * 1e9 / (2 * MS - H100.floor_ns)
    ratio = (0.5 * reached[0] / reached[1]) ** (1 - 0.7 * (1 - used))
    assert found.dur_ns[0] == pytest.approx(H100.floor_ns + ratio * (2 * MS - 2_000), rel=1e-3)
    assert found.dtype[0] == ElementType.FP8


@pytest.mark.parametrize(
    ("dtype", "read_and_written"), [(ElementType.BF16, 1.5), (ElementType.FP32, 1.25)]
)
def test_casts_of_operands_take_their_bytes_over_the_bandwidth(
    dtype: ElementType, read_and_written: float
) -> None:
    operands = 80e6
    plain = in_type(ElementType.FP8, dtype=dtype)
    cast = in_type(ElementType.FP8, dtype=dtype, operands=operands)
    rate = H100.memory_bytes_per_s * H100.shares.of("hopper", Work.MEMORY).value
    cast_ns = read_and_written * operands / rate * 1e9
    assert cast.dur_ns[0] - plain.dur_ns[0] == pytest.approx(cast_ns, rel=0.01)


def test_the_output_of_a_product_in_eight_bits_stays_as_wide() -> None:
    found = in_type(ElementType.FP8, moved=1e8, operands=8e7)
    assert found.operand_factor[0] == 0.5
    assert found.bytes_factor[0] == pytest.approx(0.6)


def test_the_bounds_leave_casts_out_and_double_them() -> None:
    times = [
        int(in_type(ElementType.FP8, operands=8e8, bound=bound).dur_ns[0])
        for bound in (Bound.LOW, Bound.NOMINAL, Bound.HIGH)
    ]
    assert times[0] < times[1] < times[2]
    without = in_type(ElementType.FP8, operands=math.nan, bound=Bound.LOW).dur_ns[0]
    assert times[0] == without


@pytest.mark.parametrize("kind", [KernelClass.ATTENTION, KernelClass.CONVOLUTION, *FOLLOWING])
def test_only_linear_layers_go_to_eight_bits(kind: KernelClass) -> None:
    assert not in_type(ElementType.FP8, kind).changed[0]


def test_attention_in_eight_bits_is_the_lower_bound() -> None:
    assert in_type(ElementType.FP8, KernelClass.ATTENTION, bound=Bound.LOW).dur_ns[0] < 2 * MS


@pytest.mark.parametrize("kind", FOLLOWING)
def test_half_the_bytes_take_half_the_time_in_sixteen_bits(kind: KernelClass) -> None:
    moved = 1e10
    rate = H100.memory_bytes_per_s * H100.shares.of("hopper", Work.MEMORY).value
    measured = round(moved / rate * 1e9 + H100.floor_ns)
    found = in_type(ElementType.BF16, kind, ElementType.SINGLE, moved=moved, measured=measured)
    assert found.dur_ns[0] - 2_000 == pytest.approx((measured - 2_000) / 2, rel=0.01)
    stays = in_type(ElementType.BF16, kind, ElementType.SINGLE, bound=Bound.HIGH)
    assert stays.dur_ns[0] == 2 * MS


@given(
    st.sampled_from([ElementType.FP8, ElementType.BF16, ElementType.FP16]),
    st.sampled_from([kind for kind in KernelClass if kind != KernelClass.COLLECTIVE]),
    st.sampled_from(list(ElementType)),
    st.integers(0, 10**9),
    st.sampled_from(list(Bound)),
)
def test_what_is_not_wider_stays_as_it_is(
    target: ElementType, kind: KernelClass, dtype: ElementType, measured: int, bound: Bound
) -> None:
    found = in_type(target, kind, dtype, measured=measured, operands=1e6, bound=bound)
    if not found.changed[0]:
        assert found.dur_ns[0] == measured
        assert found.dtype[0] == dtype
        assert found.bytes_factor[0] == 1
    else:
        assert dtype not in (target, ElementType.FP64, ElementType.UNKNOWN, ElementType.FP4)


def test_optimizers_keep_their_states() -> None:
    assert not in_type(ElementType.BF16, KernelClass.OPTIMIZER, ElementType.SINGLE).changed[0]


def test_a_device_without_the_type_says_so() -> None:
    assert ElementType.FP8 in H100.native
    assert ElementType.FP8 not in A100.native
