"""How long the works of a transformer take on one accelerator, by the models of kernels."""

from ingest.vocab import ElementType
from whatif.models.kernels.machine import Machine
from whatif.models.kernels.shares import Work as Sort
from whatif.models.transformer.work import Work, WorkKind

_TYPES = {
    "fp32": ElementType.FP32,
    "tf32": ElementType.TF32,
    "fp16": ElementType.FP16,
    "bf16": ElementType.BF16,
    "fp8": ElementType.FP8,
}


def kernel_ns(work: Work, machine: Machine, product: str) -> float:
    """Time of one of the work's kernels.

    Args:
        work: of `count` kernels alike.
        machine: that runs it.
        product: type of matrix products (`Elements.product`).
    """
    flops, moved = work.flops / work.count, work.bytes / work.count
    dtype = _TYPES[product]
    peak = machine.flops_per_s[dtype]
    shares = machine.shares
    arch = machine.architecture
    compute = 0.0
    if work.kind is WorkKind.PRODUCT:
        compute = flops / (peak * shares.of(arch, Sort.MATMUL).value) * 1e9
    elif work.kind is WorkKind.ATTENTION:
        peak = machine.flops_per_s[ElementType.BF16]
        compute = flops / (peak * shares.of(arch, Sort.ATTENTION).value) * 1e9
    memory = moved / (machine.memory_bytes_per_s * shares.of(arch, Sort.MEMORY).value) * 1e9
    return max(compute, memory) + machine.floor_ns
