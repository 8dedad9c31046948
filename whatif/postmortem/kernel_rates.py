"""What kernels reach of the roofs of their device, from the rows of query `kernel_rates`."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ingest.errors import ScenarioError
from ingest.vocab import ElementType
from replay.graph.arrays import TaskGraph
from replay.results.kernel_names import element_type
from replay.results.operands import operands_of
from whatif.models.kernels.machine import Machine, machine_of
from whatif.recorded import NOTHING_SAID, Recorded
from whatif.transforms.machine import recorded_device

NS_PER_S = 1e9
MATRIX = ("gemm", "attention", "convolution")
ON_MATRIX_UNITS = "matrix units"
ON_VECTOR_UNITS = "vector units"
NOT_TOLD = "not told"
MOST_TENSORS = 5
"""Of an operator, that are shown."""
_NAMED_MATRIX = re.compile(
    r"(?i)tensorop|[^0-9](884|1688|16816|16832|8816)|wgmma|gmma|[hid]mma|_MI\d|nvjet|enable_sm90"
)
_NAMED_VECTOR = re.compile(r"(?i)simt|[sd]gemm|hgemm|ffma|scudnn")
_SHORTENED = (ElementType.FP32, ElementType.TF32)
_MATRIX_TYPES = (
    ElementType.TF32,
    ElementType.FP16,
    ElementType.BF16,
    ElementType.FP8,
    ElementType.INT8,
    ElementType.FP4,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRate:
    """Kernels of one name that operators with one set of shapes launched."""

    name: str
    short_name: str
    kernel_class: str
    op: str | None
    shape: str | None
    """Sizes of the operator's tensors, in words."""
    dtype: ElementType
    units: str
    """What multiplies: matrix units, vector units, or not told; empty for other kernels."""
    instances: int
    total_ns: int
    step_ns: float
    """Per step and device."""
    flops: float | None
    """Of all of them."""
    bytes: float | None
    """Each tensor of the operators once."""

    @property
    def is_matrix(self) -> bool:
        """It multiplies matrices, attends or convolves."""
        return self.kernel_class in MATRIX

    @property
    def flops_per_s(self) -> float | None:
        """Over its own time."""
        return _per_second(self.flops, self.total_ns)

    @property
    def bytes_per_s(self) -> float | None:
        """Over its own time."""
        return _per_second(self.bytes, self.total_ns)

    @property
    def intensity(self) -> float | None:
        """FLOPs for each byte of the tensors."""
        return self.flops / self.bytes if self.flops and self.bytes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """How near kernels come to the roof that binds them."""

    frac: float
    """Of that roof; above 1 where data came from a cache."""
    roof: str
    """`compute` or `memory`."""


def kernel_rates(records: Iterable[Mapping[str, Any]]) -> tuple[KernelRate, ...]:
    """Rates of the rows of query `kernel_rates`, in their order."""
    return tuple(map(_rate, records))


def machine_recorded(graph: TaskGraph, recorded: Recorded = NOTHING_SAID) -> Machine | None:
    """The device of the run; None where the catalog lacks it or its roofs, or the ranks differ."""
    device = recorded_device(graph, recorded)
    if device is None:
        return None
    try:
        return machine_of(device)
    except ScenarioError:
        return None


def peak_flops_per_s(machine: Machine, dtype: ElementType) -> float | None:
    """Dense peak of matrix products of a type; None where it was not recorded.

    Single precision of which the name does not say whether the matrix units shortened it is held
    to the peak of fp32 where that is all the device has, else it is not known.
    """
    if dtype is ElementType.SINGLE:
        has_tf32 = ElementType.TF32 in machine.native
        return None if has_tf32 else machine.flops_per_s.get(ElementType.FP32)
    return machine.flops_per_s.get(dtype)


def reached(rate: KernelRate, machine: Machine) -> Reached | None:
    """Of the binding roof; None where neither can be told.

    A matrix kernel without known FLOPs or type is not held to the memory alone.
    """
    peak = peak_flops_per_s(machine, rate.dtype)
    compute = rate.flops_per_s / peak if rate.flops_per_s is not None and peak else None
    memory = None if rate.bytes_per_s is None else rate.bytes_per_s / machine.memory_bytes_per_s
    if rate.is_matrix and compute is None:
        return None
    if compute is not None and (memory is None or compute >= memory):
        return Reached(frac=compute, roof="compute")
    return None if memory is None else Reached(frac=memory, roof="memory")


def _rate(row: Mapping[str, Any]) -> KernelRate:
    is_matrix = row["class"] in MATRIX
    operands = operands_of(row["op"] or "", row["input_dims"] or "", row["input_type"] or "")
    named = element_type(row["name"]) if is_matrix else ElementType.UNKNOWN
    dtype = _type(operands.dtype, named)
    moved = operands.bytes * row["op_calls"]
    return KernelRate(
        name=row["name"],
        short_name=row["short_name"] or row["name"],
        kernel_class=row["class"],
        op=row["op"],
        shape=shape_text(row["input_dims"]),
        dtype=dtype,
        units=matrix_units(row["name"], dtype) if is_matrix else "",
        instances=row["instances"],
        total_ns=row["total_dur"],
        step_ns=row["step_dur"],
        flops=row["flops"] or None,
        bytes=None if math.isnan(moved) or not moved else moved,
    )


def _type(recorded: ElementType, named: ElementType) -> ElementType:
    """By the operator's inputs; the kernel's name says what it made of single precision."""
    shortened = recorded == ElementType.SINGLE and named in _SHORTENED
    return named if shortened or recorded == ElementType.UNKNOWN else ElementType(recorded)


def matrix_units(name: str, dtype: ElementType) -> str:
    """What a matrix kernel multiplies with, by its name, else by the type of its operands."""
    if _NAMED_MATRIX.search(name):
        return ON_MATRIX_UNITS
    if _NAMED_VECTOR.search(name) or dtype is ElementType.FP32:
        return ON_VECTOR_UNITS
    return ON_MATRIX_UNITS if dtype in _MATRIX_TYPES else NOT_TOLD


def shape_text(dims: str | None) -> str | None:
    """`[[16, 3], [3, 4], []]` as `16x3, 3x4`; None where no tensor is recorded."""
    if not dims:
        return None
    shapes = [re.sub(r"\s*,\s*", "x", sizes) for sizes in re.findall(r"\[([\d\s,]*\d)\]", dims)]
    more = f" and {len(shapes) - MOST_TENSORS} more" if len(shapes) > MOST_TENSORS else ""
    return ", ".join(shapes[:MOST_TENSORS]) + more or None


def _per_second(amount: float | None, dur_ns: int) -> float | None:
    return amount / dur_ns * NS_PER_S if amount is not None and dur_ns else None
