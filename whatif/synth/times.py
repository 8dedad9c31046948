"""How long the works of a transformer take on one accelerator, by the models of kernels."""

from whatif.models.kernels.machine import Machine
from whatif.models.kernels.works import element_type, times_ns
from whatif.models.transformer.work import Work, WorkKind

NARROW = "fp8"


def kernel_ns(work: Work, machine: Machine, product: str) -> float:
    """Time of one kernel.

    Args:
        work: of one kernel.
        machine: that runs it.
        product: type of matrix products (`Elements.product`); attention keeps 16 bits.
    """
    is_product = work.kind is WorkKind.PRODUCT
    dtype = element_type(product if is_product or product != NARROW else "bf16")
    return float(times_ns([work], machine, dtype)[0])
