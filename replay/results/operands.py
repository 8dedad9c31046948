"""Bytes that an operator reads and writes, and the type of its elements, from recorded inputs.

Inputs are recorded, outputs are not: they follow from what the operator does. Every tensor counts
once, as if it came from memory once, so that caches make the true figure smaller and kernels that
read twice make it larger. Views that repeat elements (expanded masks) count in full.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import msgspec
import numpy as np

from ingest.vocab import ElementType

Shape = tuple[int, ...]

_MOST_DIMS = 16
_TYPES = {
    "double": ElementType.FP64,
    "float": ElementType.SINGLE,
    "c10::Half": ElementType.FP16,
    "c10::BFloat16": ElementType.BF16,
    "signed char": ElementType.INT8,
    "c10::Float8_e4m3fn": ElementType.FP8,
    "c10::Float8_e5m2": ElementType.FP8,
    "c10::Float8_e4m3fnuz": ElementType.FP8,
    "c10::Float8_e5m2fnuz": ElementType.FP8,
    "c10::Float4_e2m1fn_x2": ElementType.FP4,
}
_BYTES = {
    "double": 8,
    "long int": 8,
    "long": 8,
    "c10::complex<float>": 8,
    "c10::complex<double>": 16,
    "float": 4,
    "int": 4,
    "unsigned int": 4,
    "c10::Half": 2,
    "c10::BFloat16": 2,
    "short": 2,
    "short int": 2,
    "bool": 1,
    "unsigned char": 1,
    "signed char": 1,
    "c10::Float8_e4m3fn": 1,
    "c10::Float8_e5m2": 1,
    "c10::Float8_e4m3fnuz": 1,
    "c10::Float8_e5m2fnuz": 1,
    "c10::Float8_e8m0fnu": 1,
    "c10::Float4_e2m1fn_x2": 1,
}
"""As profilers write element types; the last holds two elements."""
_LISTS = frozenset({"TensorList", "GenericList", "Tensor[]"})
_READ_ONLY = frozenset(
    {"sum", "mean", "amax", "amin", "max", "min", "norm", "linalg_vector_norm", "var", "std", "any"}
    | {"argmax", "argmin", "nonzero", "_local_scalar_dense", "item", "equal", "logsumexp", "all"}
)
"""Their output is small beside what they read."""
_INTO_FIRST = frozenset({"copy_", "_to_copy", "fill_", "zero_", "normal_", "uniform_"})
"""The first input is what is written, and nothing else is."""
_LOOKUPS = frozenset({"embedding", "index_select", "gather", "index", "_index_put_impl_"})
_PRODUCTS = {
    "mm": 0,
    "bmm": 0,
    "_scaled_mm": 0,
    "_int_mm": 0,
    "addmm": 1,
    "addmm_": 1,
    "baddbmm": 1,
    "baddbmm_": 1,
    "_addmm_activation": 1,
}
"""Matrix products -> where the first matrix stands."""


@dataclass(frozen=True, slots=True)
class Operands:
    """What the inputs of one operator tell; NaN and zeros where they do not."""

    bytes: float = float("nan")
    """Read and written."""
    operand_bytes: float = float("nan")
    """Of the inputs alone."""
    dtype: ElementType = ElementType.UNKNOWN
    product: tuple[int, int, int] = (0, 0, 0)
    """Batch, rows and columns of the output of a matrix product."""


NOT_KNOWN = Operands()


@dataclass(frozen=True, slots=True)
class _Tensor:
    shape: Shape
    bytes: float
    dtype: ElementType


def operands_of(name: str, dims: str, types: str) -> Operands:
    """Of one call by its name, `Input Dims` and `Input type`, both JSON as recorded."""
    tensors = list(_tensors(dims, types))
    if not tensors:
        return NOT_KNOWN
    library, _, short = name.rpartition("::")
    first = _PRODUCTS.get(short, 0)
    operands = tensors[first:] if len(tensors) > first else tensors
    read = sum(tensor.bytes for tensor in tensors)
    product = _product(short, tensors)
    return Operands(
        bytes=_moved(library, short, tensors, read, product),
        operand_bytes=sum(tensor.bytes for tensor in operands[:2]),
        dtype=operands[0].dtype,
        product=product,
    )


def _moved(
    library: str,
    short: str,
    tensors: Sequence[_Tensor],
    read: float,
    product: tuple[int, int, int],
) -> float:
    """Bytes read and written."""
    first = tensors[0].bytes
    if short in _INTO_FIRST:
        return read
    if short in _READ_ONLY:
        return read
    if short in _LOOKUPS and len(tensors) > 1:
        return _looked_up(tensors)
    if any(product):
        size = tensors[-1].bytes / max(prod(tensors[-1].shape), 1)
        return read + prod(product) * size
    if "attention" in short or "flash_attn" in short:
        return 2 * read if "backward" in short else read + first
    if library not in ("aten", ""):
        return read  # kernels of compilers get their outputs as arguments
    if short.startswith("_foreach") or short.startswith("_fused"):
        return read + read / _lists(tensors)
    if short.endswith("_"):
        return read + first
    if short == "cat":
        return 2 * read
    return read + _broadcast(tensors)


def _looked_up(tensors: Sequence[_Tensor]) -> float:
    """Rows of a table: each read once and written once."""
    table, index = tensors[0], tensors[1]
    row = table.bytes / max(table.shape[0], 1)
    return 2 * prod(index.shape) * row + index.bytes


def _lists(tensors: Sequence[_Tensor]) -> int:
    """How many lists of equal tensors an operator over lists got."""
    same = sum(tensor.shape == tensors[0].shape for tensor in tensors)
    return max(same, 1)


def _broadcast(tensors: Sequence[_Tensor]) -> float:
    """Size of an elementwise result."""
    size = tensors[0].bytes / max(prod(tensors[0].shape), 1)
    try:
        return prod(np.broadcast_shapes(*(tensor.shape for tensor in tensors[:3]))) * size
    except ValueError:
        return max(tensor.bytes for tensor in tensors)


def _product(short: str, tensors: Sequence[_Tensor]) -> tuple[int, int, int]:
    at = _PRODUCTS.get(short)
    if at is None or len(tensors) < at + 2:
        return (0, 0, 0)
    left, right = tensors[at].shape, tensors[at + 1].shape
    if len(left) != len(right) or len(left) not in (2, 3):
        return (0, 0, 0)
    return (left[0] if len(left) == 3 else 1, left[-2], right[-1])  # noqa: PLR2004  (a batch)


def _tensors(dims: str, types: str) -> Iterator[_Tensor]:
    """Every tensor among the inputs, those of lists too."""
    sizes, names = _decoded(dims), _decoded(types)
    known = [name for name in names if name in _BYTES]
    for size, name in zip(sizes, names, strict=False):
        if name in _BYTES:
            if (shape := _shape(size)) is not None:
                yield _tensor(shape, str(name))
        elif name in _LISTS and isinstance(size, list):
            element = str(known[0]) if known else "c10::BFloat16"
            yield from (_tensor(s, element) for one in size if (s := _shape(one)) is not None)


def _tensor(shape: Shape, name: str) -> _Tensor:
    return _Tensor(shape, prod(shape) * _BYTES[name], _TYPES.get(name, ElementType.UNKNOWN))


def _shape(sizes: object) -> Shape | None:
    """Sizes of a tensor; None for what is none (scalars have no sizes)."""
    if not isinstance(sizes, list) or not 0 < len(sizes) <= _MOST_DIMS:
        return None
    if not all(type(size) is int and 0 <= size < 2**48 for size in sizes):
        return None
    return tuple(sizes)


def _decoded(text: str) -> list[object]:
    if not text:
        return []
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return []
    return found if isinstance(found, list) else []
