"""How long the works of a transformer take on one accelerator, by the models of kernels."""

import numpy as np

from whatif.models.kernels import moved
from whatif.models.kernels.machine import Machine
from whatif.models.kernels.shares import Work as Share
from whatif.models.kernels.works import element_type, times_ns
from whatif.models.places import Pass, Place
from whatif.models.shape import RunShape
from whatif.models.transformer.work import Work, WorkKind

NARROW = "fp8"
READ_AND_CAST_BYTES = 5
"""Of each element that becomes 8 bits: read for the largest value, read again, written (dynamic
scaling of whole tensors, pytorch/ao float8)."""
CAST_BYTES = 3
"""Of an element whose scale is known from the forward pass."""


def is_narrow(work: Work, product: str) -> bool:
    """A product in 8 bits: those of linear layers but the head's (torchtitan, docs/float8.md)."""
    is_linear = work.kind is WorkKind.PRODUCT and work.place not in _WIDE
    return is_linear and product == NARROW


_WIDE = frozenset({Place.LOGITS, Place.ATTENTION, Place.ROUTER})
_GATHERED = {
    Pass.FORWARD: (Place.QKV, Place.UP),
    Pass.RECOMPUTE: (Place.QKV, Place.UP),
    Pass.BACKWARD_INPUT: (Place.PROJECTION, Place.DOWN),
}
"""Products whose first operand sequence parallelism gathers: cast before, in pieces."""


def kernel_ns(work: Work, machine: Machine, shape: RunShape) -> float:
    """Time of one kernel; of products in 8 bits with the casts of their operands.

    Args:
        work: of one kernel.
        machine: that runs it.
        shape: of the run.
    """
    product = shape.elements.product
    narrow = is_narrow(work, product)
    wide = "bf16" if product == NARROW else product
    time = float(times_ns([work], machine, element_type(NARROW if narrow else wide))[0])
    frac = shape.options.attention_frac
    if work.kind is WorkKind.ATTENTION and frac is not None:
        time *= machine.shares.of(machine.architecture, Share.ATTENTION).value / frac
    if narrow:
        time += float(moved.time_ns(np.array(_cast_bytes(work, shape)), machine))
    return time


def _cast_bytes(work: Work, shape: RunShape) -> float:
    """Both operands forward; then gradients of outputs and weights, and inputs once more."""
    first, second = work.m * work.k * work.batch, work.k * work.n * work.batch
    if shape.degrees.sp and work.place in _GATHERED.get(work.direction, ()):
        first /= shape.degrees.tp
    match work.direction:
        case Pass.BACKWARD_INPUT:
            return READ_AND_CAST_BYTES * first + CAST_BYTES * second
        case Pass.BACKWARD_WEIGHT:
            return CAST_BYTES * (first + second)
        case _:
            return READ_AND_CAST_BYTES * (first + second)
