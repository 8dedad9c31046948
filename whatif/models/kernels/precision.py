"""Time of kernels in a narrower type on the same accelerator.

Matrix products move to the peak of the new type, by the roofline. In 8 bits attention and
convolution stay as they are: libraries multiply only linear layers in it; the lower bound moves
attention too. In 16 bits all matrix kernels move, and what is bound by memory moves half its bytes
where its elements were single precision; the upper bound leaves those in single precision, as
automatic mixed precision does with norms and losses. Optimizers keep their states.

A product in 8 bits needs its operands made narrow. They are read and written once more
(`CASTS`), which the lower bound leaves out, as where the kernel before writes them narrow, and the
upper bound doubles, with a launch for each operand, as where scales are found first.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ingest.vocab import ELEMENT_BYTES, ElementType, KernelClass
from whatif.models.bound import Bound
from whatif.models.kernels import roofline
from whatif.models.kernels.machine import Machine
from whatif.models.kernels.roofline import Bool, Float64, Int8, Int64, Kernels, Precision
from whatif.models.kernels.shares import Work

KNOWN_ERROR = {
    ElementType.FP8: "fp8 products, and steps with tensorwise scales, 3%; rowwise scales gain far "
    "less",
    ElementType.FP16: "work in 16 bits not judged: no measurements of the same work in both types",
    ElementType.BF16: "work in 16 bits not judged: no measurements of the same work in both types",
}
CASTS: Mapping[Bound, float] = {Bound.NOMINAL: 1.0, Bound.LOW: 0.0, Bound.HIGH: 2.0}
"""Passes over the operands of a product in 8 bits."""
SINGLE = (ElementType.FP32, ElementType.TF32, ElementType.SINGLE)
SIXTEEN = (ElementType.FP16, ElementType.BF16)
FOLLOWING = (
    KernelClass.ELEMENTWISE,
    KernelClass.NORMALISATION,
    KernelClass.REDUCTION,
    KernelClass.EMBEDDING,
)
"""Classes whose bytes follow the type of the model."""


@dataclass(frozen=True, kw_only=True)
class Recast:
    """Kernels in another type, one row per kernel."""

    dur_ns: Int64
    dtype: Int8
    bytes_factor: Float64
    """Bytes, new over old."""
    operand_factor: Float64
    """Bytes of what matrix kernels multiply, new over old."""
    changed: Bool


def recast(
    measured_ns: Int64,
    kernels: Kernels,
    operand_bytes: Float64,
    machine: Machine,
    target: ElementType,
    bound: Bound = Bound.NOMINAL,
) -> Recast:
    """Each kernel with its elements in `target`, where they are wider and libraries would.

    Args:
        measured_ns: times as recorded.
        kernels: what is known of them.
        operand_bytes: of what matrix kernels multiply, as recorded; NaN where not known.
        machine: that they run on, and whose matrix units take the target.
        target: FP8, FP16 or BF16.
        bound: which end.
    """
    wider = _wider(kernels.dtype, target)
    matrix = wider & np.isin(kernels.kernel_class, _movable(target, bound))
    moves_all = target in SIXTEEN and bound is not Bound.HIGH
    follows = wider & np.isin(kernels.kernel_class, FOLLOWING) & moves_all
    changed: Bool = matrix | follows
    dtype = np.where(changed, target, kernels.dtype).astype(np.int8)
    narrower = np.where(changed, _narrower(kernels.dtype, target), 1.0)
    factor = _factors(kernels, operand_bytes, narrower, target)
    dur_ns = measured_ns.copy()
    rows = np.flatnonzero(changed)
    if len(rows):
        dur_ns[rows] = roofline.scaled_ns(
            measured_ns[rows],
            _rows(kernels, rows),
            machine,
            machine,
            precision=Precision(dtype=dtype[rows], bytes_factor=factor[rows]),
            bound=bound,
        )
    if target == ElementType.FP8:
        dur_ns = dur_ns + np.where(matrix, _cast_ns(operand_bytes, narrower, machine, bound), 0)
    return Recast(
        dur_ns=dur_ns, dtype=dtype, bytes_factor=factor, operand_factor=narrower, changed=changed
    )


def _wider(dtype: Int8, target: ElementType) -> Bool:
    """Known to be wider; fp64 stays, as what needs it cannot do with less."""
    wider: Bool = np.isin(dtype, SINGLE)
    return wider | np.isin(dtype, SIXTEEN) if target == ElementType.FP8 else wider


def _movable(target: ElementType, bound: Bound) -> tuple[KernelClass, ...]:
    if target in SIXTEEN:
        return roofline.MATRIX
    return (KernelClass.GEMM, KernelClass.ATTENTION) if bound is Bound.LOW else (KernelClass.GEMM,)


def _narrower(dtype: Int8, target: ElementType) -> Float64:
    """Size of one element, new over old."""
    size = np.array([ELEMENT_BYTES.get(each, np.nan) for each in ElementType])
    narrower: Float64 = ELEMENT_BYTES[target] / size[dtype]
    return narrower


def _factors(
    kernels: Kernels, operand_bytes: Float64, narrower: Float64, target: ElementType
) -> Float64:
    """Bytes, new over old; of a product in 8 bits the output stays as wide as it was."""
    if target in SIXTEEN:
        return narrower
    operands = np.minimum(operand_bytes, kernels.bytes)
    part = np.nan_to_num(operands / kernels.bytes, nan=1.0)
    return 1.0 - part * (1.0 - narrower)


def _cast_ns(operand_bytes: Float64, narrower: Float64, machine: Machine, bound: Bound) -> Int64:
    """Reading operands as wide as they are and writing them in 8 bits, ns."""
    share = machine.shares.of(machine.architecture, Work.MEMORY).value
    moved = (1.0 + narrower) * np.nan_to_num(operand_bytes)
    launches = 2 * machine.floor_ns if bound is Bound.HIGH else 0.0
    each = moved / (machine.memory_bytes_per_s * share) * 1e9
    return np.rint(CASTS[bound] * each + launches).astype(np.int64)


def _rows(kernels: Kernels, rows: Int64) -> Kernels:
    return Kernels(
        kernel_class=kernels.kernel_class[rows],
        dtype=kernels.dtype[rows],
        flops=kernels.flops[rows],
        bytes=kernels.bytes[rows],
        tiles=kernels.tiles[rows],
    )
