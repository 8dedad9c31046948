"""The numbers of one accelerator that the time of a kernel depends on."""

from collections.abc import Mapping
from dataclasses import dataclass

from ingest.errors import ScenarioError
from ingest.vocab import ElementType
from whatif.models.hardware import Accelerator, Precision
from whatif.models.kernels.shares import Shares, published

FLOOR_NS: Mapping[str, float] = {"amd": 3_500.0, "nvidia": 2_000.0}
"""Time of a kernel that does next to nothing, by maker: the fastest tenth of the kernels in public
traces last 1.3 to 3 us on V100, A100, H100, H200 and B200, and 2.2 to 3.8 us on MI300X (PyTorch,
vLLM and xDiT; KellerJordan/modded-nanogpt, facebookresearch/HolisticTraceAnalysis,
AMD-AGI/TraceLens)."""
OTHER_FLOOR_NS = 2_500.0
CACHE_BYTES_PER_CYCLE = 32.0
"""Of one SM or compute unit out of the shared cache: 4.9 TB/s on A100, 7.7 on H100, between what
microbenchmarks reach and what the ports allow (64)."""
LOW_POWER_W = 100.0
LOW_POWER_SHARE = 0.67
"""Below so many watts clocks fall under load: part of the usual share of the peak that L4, T4 and
P4 keep in fp32 transformers (sitar-lab/NeuSight)."""
USUAL_CLOCK_HZ = 1.7e9
_PRECISIONS: Mapping[ElementType, tuple[Precision, ...]] = {
    ElementType.FP64: (Precision.FP64,),
    ElementType.FP32: (Precision.FP32,),
    ElementType.TF32: (Precision.TF32, Precision.FP32),
    ElementType.FP16: (Precision.FP16, Precision.BF16),
    ElementType.BF16: (Precision.BF16, Precision.FP16),
    ElementType.FP8: (Precision.FP8, Precision.BF16, Precision.FP16),
    ElementType.INT8: (Precision.INT8, Precision.BF16, Precision.FP16),
    ElementType.FP4: (Precision.FP4, Precision.FP8, Precision.BF16, Precision.FP16),
}
"""What a device multiplies them in: the first that its peaks are known of."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One accelerator; rates per second, times in ns."""

    name: str
    architecture: str
    maker: str
    flops_per_s: Mapping[ElementType, float]
    """Dense peaks of matrix products; without what the device cannot multiply in any way."""
    memory_bytes_per_s: float
    memory_bytes: float | None
    cache_bytes: float
    """Last shared cache; 0 where it is not known."""
    cache_bytes_per_s: float
    """Never below the memory's."""
    sms: int | None
    clock_hz: float
    floor_ns: float
    pcie_bytes_per_s: float | None
    shares: Shares
    native: frozenset[ElementType]
    """Types that the device multiplies themselves."""
    power_share: float
    """Part of its architecture's share of the peak that its power allows."""


def machine_of(device: Accelerator, shares: Shares | None = None) -> Machine:
    """What the catalog knows of a device.

    Raises:
        ScenarioError: it has no memory bandwidth or no matrix peak.
    """
    peaks = {
        dtype: found
        for dtype, precisions in _PRECISIONS.items()
        if (found := _first(device, precisions)) is not None
    }
    bandwidth = device.memory_bytes_per_s
    if bandwidth is None or not peaks:
        lacks = "memory bandwidth" if bandwidth is None else "peaks of matrix products"
        raise ScenarioError(
            f"the catalog has no {lacks} of {device.name}",
            hint="add it in a file of your own: --hardware FILE",
        )
    sms = None if device.sms is None else int(device.sms.value)
    clock_hz = USUAL_CLOCK_HZ if device.clock_hz is None else device.clock_hz.value
    cache = device.last_level_cache_bytes or device.l2_bytes
    maker = "amd" if device.architecture.startswith(("cdna", "rdna")) else _maker(device)
    return Machine(
        name=device.name,
        architecture=device.architecture,
        maker=maker,
        flops_per_s=peaks,
        native=frozenset(
            dtype for dtype, names in _PRECISIONS.items() if device.peak(names[0]) is not None
        ),
        memory_bytes_per_s=bandwidth.value,
        memory_bytes=None if device.memory_bytes is None else device.memory_bytes.value,
        cache_bytes=0.0 if cache is None or sms is None else cache.value,
        cache_bytes_per_s=max(CACHE_BYTES_PER_CYCLE * (sms or 0) * clock_hz, bandwidth.value),
        sms=sms,
        clock_hz=clock_hz,
        floor_ns=FLOOR_NS.get(maker, OTHER_FLOOR_NS),
        pcie_bytes_per_s=None if device.pcie is None else device.pcie.one_way_bytes_per_s.value,
        power_share=_power_share(device),
        shares=published() if shares is None else shares,
    )


def _first(device: Accelerator, precisions: tuple[Precision, ...]) -> float | None:
    return next(
        (peak for each in precisions if (peak := device.peak_flops_per_s(each)) is not None), None
    )


def _power_share(device: Accelerator) -> float:
    is_low = device.tdp_w is not None and device.tdp_w.value < LOW_POWER_W
    return LOW_POWER_SHARE if is_low else 1.0


def _maker(device: Accelerator) -> str:
    """NVIDIA names its architectures; what is neither is another maker's."""
    known = ("pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell")
    return "nvidia" if device.architecture.startswith(known) else device.architecture
