"""Time of kernels on other hardware or in another precision: a roofline with carried utilisation.

    new = overhead * floor(new) / floor(base) + (measured - overhead) * ratio

The overhead is the part of a kernel that no kernel is shorter than. The ratio is that of the
binding roofs: `max(compute, memory)` on both sides where FLOPs and bytes are known, each roof at
the part of its peak that the architecture reaches (`shares.yaml`). What the kernel itself loses
against its roof cancels. Where only one roof can be told, the kernel's class decides: matrix
kernels without FLOPs lie between the two, by `COMPUTE_WEIGHT`; all others are bound by memory.

- A kernel that leaves a part of its roof unused follows the clock to that part, for what holds it
  back is latency (`LATENCY_WEIGHT`); a part-filled last wave of tiles is none.
- Tensors that the base served faster than its memory can came from a cache: they stay in one where
  they fit, and the caches' rates count.
- On the same architecture the same kernels run: products cut into known tiles pay for their last,
  part-filled wave of SMs on both sides. Elsewhere the library cuts them otherwise.
- Nothing is faster than its FLOPs at the published peak.

LOW and HIGH lie apart by what readings of the two architectures disagree, and by what kernels
differ beside (`KERNEL_SPREAD`), together at most a factor of two. For matrix kernels
without FLOPs they hold both roofs. `tests/bench/accuracy_kernels.py` judges it on what it has not
seen (docs/accuracy.md).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ingest.vocab import ElementType, KernelClass
from whatif.models.bound import Bound
from whatif.models.kernels.machine import Machine
from whatif.models.kernels.shares import Share, Work

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Int8 = NDArray[np.int8]
Bool = NDArray[np.bool_]
Choice = Callable[[Float64, Float64], Float64]

KNOWN_ERROR = (
    "kernels 12% at the median of 974 public measurements, 92% of them inside the model's ranges"
)
LOW_POWER_ERROR = "24% at the median for cards below 100 W"
OTHER_MAKER_ERROR = (
    "another maker's libraries run other kernels: convolutions, and kernels of a few us, are up to "
    "three times off"
)
MATRIX = (KernelClass.GEMM, KernelClass.ATTENTION, KernelClass.CONVOLUTION)
COMPUTE_WEIGHT: Mapping[KernelClass, float] = {
    KernelClass.GEMM: 0.8,
    KernelClass.ATTENTION: 0.8,
    KernelClass.CONVOLUTION: 0.6,
    KernelClass.OTHER: 0.3,
}
"""Where FLOPs are not known: weight of the compute roof (of the logarithm), the memory's is the
rest. Classes that are not named are bound by memory."""
KERNEL_SPREAD = 0.3
"""Standard deviation of the logarithm of ratios, beside what readings differ by: chosen so that
nine of ten truths of docs/accuracy.md lie inside."""
SAME_ARCHITECTURE_SPREAD = 0.15
"""Two models of one architecture run the same kernels: what is left is power and clocks."""
FULL_SPREAD = math.log(2) / 2
"""LOW and HIGH are at most a factor of two apart."""
LATENCY_WEIGHT = 0.7
"""Of the logarithm of a ratio, for a kernel that uses nothing of its roof. Products below 1 GFLOP
in fp32 reach 0.35 of the peak of an A100 and 0.21 of an H100, above 100 GFLOP 0.81 and 0.75: the
ratio of the small is that of the large to the power 0.63 where 0.57 of the roof is unused
(sitar-lab/NeuSight; V100 to H100 gives 0.9)."""
NONSENSE = 3.0
"""Bytes that would have moved at so many times the cache's rate were never moved: inputs of which
a kernel touches a part, such as a cache of keys and values."""


@dataclass(frozen=True, kw_only=True)
class Kernels:
    """Columns with one row per kernel; NaN and -1 are not known."""

    kernel_class: Int8
    dtype: Int8
    """ElementType."""
    flops: Float64
    bytes: Float64
    tiles: Int64


@dataclass(frozen=True, kw_only=True)
class Precision:
    """What another precision makes of kernels: their type, and their bytes as a factor."""

    dtype: Int8
    bytes_factor: Float64


def scaled_ns(
    measured_ns: Int64,
    kernels: Kernels,
    base: Machine,
    new: Machine,
    *,
    precision: Precision | None = None,
    bound: Bound = Bound.NOMINAL,
) -> Int64:
    """Time of each kernel on `new`, given its time on `base`, ns.

    The same machine in the same precision gives the same times, whatever the bound.
    """
    if base == new and precision is None:
        return measured_ns.copy()
    measured = measured_ns.astype(np.float64)
    overhead = np.minimum(measured, base.floor_ns)
    work = measured - overhead
    after = precision or _carried(kernels, base, new)
    roofs = _Roofs(kernels, after, base, new, work)
    ratio = roofs.ratio()
    if bound is not Bound.NOMINAL:
        is_low = bound is Bound.LOW
        wide = np.exp((-1.0 if is_low else 1.0) * spread(kernels, after, base, new))
        end = roofs.end(np.fmin if is_low else np.fmax)
        ratio = (np.fmin if is_low else np.fmax)(ratio * wide, end)
        if base.maker != new.maker:
            overhead = overhead * wide
    predicted = overhead * (new.floor_ns / base.floor_ns) + work * ratio
    return np.rint(np.maximum(predicted, roofs.least_ns(measured))).astype(np.int64)


def model_ns(kernels: Kernels, machine: Machine) -> Float64:
    """What the model gives each kernel by itself, ns; NaN where neither roof is known.

    The level that ratios leave out: for work that nobody measured.
    """
    compute = reached_flops_per_s(machine, kernels.kernel_class, kernels.dtype)
    share = machine.shares.of(machine.architecture, Work.MEMORY)
    memory = machine.memory_bytes_per_s * share.value
    roof: Float64 = np.fmax(kernels.flops / compute, kernels.bytes / memory)
    return machine.floor_ns + roof * 1e9


def spread(kernels: Kernels, after: Precision, base: Machine, new: Machine) -> Float64:
    """Half the width of the range of each ratio, of the logarithm."""
    if base == new:
        return np.full(len(kernels.flops), KERNEL_SPREAD)
    if base.architecture == new.architecture and base.power_share == new.power_share:
        return np.full(len(kernels.flops), SAME_ARCHITECTURE_SPREAD)
    before = _table(base, "spread")[_works(kernels.kernel_class, kernels.dtype)]
    there = _table(new, "spread")[_works(kernels.kernel_class, after.dtype)]
    total = np.sqrt(KERNEL_SPREAD**2 + before**2 + there**2)
    return np.minimum(total, FULL_SPREAD)


def gains_tf32(base: Machine, new: Machine) -> bool:
    """Convolutions of single precision run in TF32 there, which the base does not have."""
    had, has = (ElementType.TF32 in machine.native for machine in (base, new))
    return has and not had and new.maker == "nvidia"


def _carried(kernels: Kernels, base: Machine, new: Machine) -> Precision:
    """The same kernels; convolutions in what PyTorch by default makes of single precision."""
    single = np.isin(kernels.dtype, (ElementType.FP32, ElementType.SINGLE))
    moves = single & (kernels.kernel_class == KernelClass.CONVOLUTION) & gains_tf32(base, new)
    dtype = np.where(moves, ElementType.TF32, kernels.dtype).astype(np.int8)
    return Precision(dtype=dtype, bytes_factor=np.ones(len(dtype)))


_WORKS = tuple(Work)


def _works(kernel_class: Int8, dtype: Int8) -> Int64:
    """Index into `_WORKS` of what each kernel needs a share of."""
    work = np.full(len(kernel_class), _WORKS.index(Work.MEMORY))
    narrow = np.isin(dtype, (ElementType.FP8, ElementType.INT8, ElementType.FP4))
    gemm = kernel_class == KernelClass.GEMM
    work[gemm] = _WORKS.index(Work.MATMUL)
    work[gemm & narrow] = _WORKS.index(Work.FP8)
    work[gemm & (dtype == ElementType.FP32)] = _WORKS.index(Work.SINGLE)
    work[kernel_class == KernelClass.ATTENTION] = _WORKS.index(Work.ATTENTION)
    work[kernel_class == KernelClass.CONVOLUTION] = _WORKS.index(Work.CONVOLUTION)
    work[kernel_class == KernelClass.OTHER] = _WORKS.index(Work.MATMUL)
    return work


def _table(machine: Machine, what: str) -> Float64:
    shares: list[Share] = [machine.shares.of(machine.architecture, work) for work in _WORKS]
    return np.array([getattr(share, what) for share in shares])


def _peaks(machine: Machine, dtype: Int8) -> Float64:
    """Dense peak of each kernel's type, FLOP/s."""
    table = np.full(max(ElementType) + 1, np.nan)
    for element, peak in machine.flops_per_s.items():
        table[element] = peak
    usual = machine.flops_per_s.get(ElementType.BF16, max(machine.flops_per_s.values()))
    single = machine.flops_per_s.get(ElementType.FP32, usual)
    table[ElementType.UNKNOWN] = usual
    table[ElementType.SINGLE] = math.sqrt(
        single * machine.flops_per_s.get(ElementType.TF32, single)
    )
    return np.where(np.isnan(table), usual, table)[dtype]


def reached_flops_per_s(machine: Machine, kernel_class: Int8, dtype: Int8) -> Float64:
    """Rate at which the architecture usually computes, FLOP/s."""
    share = _table(machine, "value")[_works(kernel_class, dtype)]
    return _peaks(machine, dtype) * share * machine.power_share


class _Roofs:
    """Both roofs of every kernel on both machines."""

    def __init__(
        self, kernels: Kernels, after: Precision, base: Machine, new: Machine, work_ns: Float64
    ) -> None:
        # A kernel that computes or moves nothing has no roof there: none is known.
        self._kernels = replace(
            kernels,
            flops=np.where(kernels.flops > 0, kernels.flops, np.nan),
            bytes=np.where(kernels.bytes > 0, kernels.bytes, np.nan),
        )
        self._matrix = np.isin(kernels.kernel_class, MATRIX)
        self._base, self._new = base, new
        self._work = work_ns
        self._peak = _peaks(new, after.dtype)
        self._compute = (
            reached_flops_per_s(base, kernels.kernel_class, kernels.dtype),
            reached_flops_per_s(new, kernels.kernel_class, after.dtype),
        )
        self._bytes = self._moved(work_ns)
        self._factor = after.bytes_factor
        self._memory = self._memory_rates(work_ns)

    def ratio(self) -> Float64:
        """Time on the new machine over that on the base."""
        compute, memory = self._each()
        weight = np.zeros(max(KernelClass) + 1)
        for kind, value in COMPUTE_WEIGHT.items():
            weight[kind] = value
        share = weight[self._kernels.kernel_class]
        between = compute**share * memory ** (1 - share)
        flops = self._kernels.flops
        both = np.maximum(
            flops / self._compute[1] * self._waves(), self._factor * self._bytes / self._memory[1]
        ) / np.maximum(flops / self._compute[0], self._bytes / self._memory[0])
        ratio = np.where(np.isnan(both), np.where(np.isnan(flops), between, compute), both)
        clock = self._base.clock_hz / self._new.clock_hz
        latency = LATENCY_WEIGHT * self._unused()
        return ratio ** (1 - latency) * clock**latency

    def end(self, choose: Choice) -> Float64:
        """The lower or upper roof of kernels of which neither FLOPs nor class tell the roof."""
        compute, memory = self._each()
        unknown = np.isnan(self._kernels.flops) & np.isin(
            self._kernels.kernel_class, tuple(COMPUTE_WEIGHT)
        )
        return np.where(unknown, choose(compute, memory), np.nan)

    def _each(self) -> tuple[Float64, Float64]:
        """Ratio of each roof by itself."""
        compute = self._compute[0] / self._compute[1]
        return compute, self._factor * self._memory[0] / self._memory[1]

    def _waves(self) -> Float64:
        """Loss of products to their last wave of tiles, new over base; 1 where not known."""
        if self._base.architecture != self._new.architecture:
            return np.ones(len(self._kernels.tiles))
        return self._lost(self._new) / self._lost(self._base)

    def _lost(self, machine: Machine) -> Float64:
        """SMs for all waves of tiles over tiles; 1 where not known."""
        tiles, sms = self._kernels.tiles, machine.sms
        if sms is None:
            return np.ones(len(tiles))
        known = np.maximum(tiles, 1)
        return np.where(tiles > 0, -(-known // sms) * sms / known, 1.0)

    def _unused(self) -> Float64:
        """Part of the nearest roof that each kernel leaves; 0 where no roof is known.

        What the last wave of tiles loses is not latency.
        """
        compute = self._kernels.flops / self._compute[0] * self._lost(self._base)
        roof = np.fmax(compute, self._bytes / self._memory[0]) * 1e9
        used = np.clip(roof / np.maximum(self._work, 1.0), 0.0, 1.0)
        return np.where(np.isnan(used), 0.0, 1.0 - used)

    def least_ns(self, measured_ns: Float64) -> Float64:
        """What the FLOPs take at the published peak; 0 where FLOPs are not known.

        A causal mask skips half of the FLOPs of attention, and no trace tells of it. Where even the
        base was faster than its peak, the FLOPs are not those that were computed: no bound.
        """
        done = np.where(self._kernels.kernel_class == KernelClass.ATTENTION, 0.5, 1.0)
        flops = self._kernels.flops * done
        here = flops / _peaks(self._base, self._kernels.dtype) * 1e9
        known = self._matrix & ~np.isnan(flops) & (measured_ns >= here)
        return np.where(known, flops / self._peak * 1e9, 0.0)

    def _moved(self, work_ns: Float64) -> Float64:
        """Bytes, without those that cannot have been moved in the time."""
        limit = NONSENSE * self._base.cache_bytes_per_s * np.maximum(work_ns, 1.0) / 1e9
        return np.where(self._kernels.bytes <= limit, self._kernels.bytes, np.nan)

    def _memory_rates(self, work_ns: Float64) -> tuple[Float64, Float64]:
        seen = self._bytes / np.maximum(work_ns, 1.0) * 1e9
        main = (
            self._base.memory_bytes_per_s
            * self._base.shares.of(self._base.architecture, Work.MEMORY).value
        )
        there = (
            self._new.memory_bytes_per_s
            * self._new.shares.of(self._new.architecture, Work.MEMORY).value
        )
        cached = (self._bytes <= self._base.cache_bytes) & (seen > main)
        fits = cached & (self._bytes * self._factor <= self._new.cache_bytes)
        here = np.where(cached, np.where(fits, self._base.cache_bytes_per_s, seen), main)
        return here, np.where(fits, self._new.cache_bytes_per_s, there)
