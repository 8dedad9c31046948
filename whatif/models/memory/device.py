"""Whether what a rank holds fits its device."""

from dataclasses import dataclass

RESERVED_LOW, RESERVED, RESERVED_HIGH = 1.0, 1.045, 1.07
"""What PyTorch's allocator reserves over what tensors hold at most: 1.03 to 1.07 in the eight kinds
of runs of Megatron-LM on B200 that SimuMax measured both of
(https://github.com/MooreThreads/SimuMax, docs/b200/b200_release_v1.2_summary.json); never less."""
CONTEXT_BYTES = 1 << 30
"""Of the driver's context, of libraries and of NCCL's channels, outside the allocator; at most:
0.5 GiB of context on H100, and NCCL's buffers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """Memory of a device that so many bytes in tensors need."""

    low_bytes: float
    """Tensors alone."""
    bytes: float
    """With what the allocator usually reserves beside them."""
    high_bytes: float
    """With the most that it was seen to reserve, and context and libraries."""


def needed(peak_bytes: float, *, beside_bytes: float = 0.0) -> Needed:
    """Of the most that tensors hold at once, and of what may lie there as well."""
    return Needed(
        low_bytes=peak_bytes * RESERVED_LOW,
        bytes=peak_bytes * RESERVED,
        high_bytes=(peak_bytes + beside_bytes) * RESERVED_HIGH + CONTEXT_BYTES,
    )


def fits(peak_bytes: float, device_bytes: float, *, beside_bytes: float = 0.0) -> bool | None:
    """Whether it does; None where that is a matter of what the allocator reserves."""
    need = needed(peak_bytes, beside_bytes=beside_bytes)
    if need.high_bytes <= device_bytes:
        return True
    return False if need.low_bytes > device_bytes else None
