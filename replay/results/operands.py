"""Bytes that an operator reads and writes, and the type of its elements, from recorded inputs.

Inputs are recorded, outputs are not: they follow from what the operator does. Where the caller
gives the output (`out=`, as compiled code does) it stands last among the inputs. Every tensor
counts once, as if it came from memory once, so that caches make the true figure smaller and
kernels that read twice make it larger. Views that repeat elements (expanded masks) count in full.
"""

from collections.abc import Callable, Iterator, Sequence
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
_INTO_FIRST = frozenset({"copy_", "fill_", "zero_", "normal_", "uniform_"})
"""The first input is what is written, and not read."""
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
_PRODUCT_BYTES = {"_scaled_mm": 2, "_int_mm": 4}
"""Of an element of the product, where it is not that of the matrices: half precision, int32."""
_ELEMENTWISE = {
    **dict.fromkeys(("abs", "neg", "exp", "log", "sqrt", "rsqrt", "reciprocal", "tanh", "cos"), 1),
    **dict.fromkeys(("sigmoid", "sin", "relu", "gelu", "silu", "clamp", "clamp_min", "cumsum"), 1),
    **dict.fromkeys(("add", "sub", "rsub", "mul", "div", "maximum", "minimum", "fmod"), 2),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "logical_and"), 2),
    **dict.fromkeys(("bitwise_or", "logical_or", "sigmoid_backward", "tanh_backward"), 2),
    **dict.fromkeys(("gelu_backward", "silu_backward", "threshold_backward"), 2),
    **dict.fromkeys(("addcmul", "addcdiv", "where"), 3),
}
"""Operators by element -> the most tensors that they read: one more is their output."""
_MAKERS = frozenset({"arange", "linspace", "randperm", "full", "zeros", "ones", "rand", "randn"})
"""They read no tensor: one among their inputs is their output."""


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
    inner: int = 0
    """Length over which a matrix product sums."""


NOT_KNOWN = Operands()


@dataclass(frozen=True, slots=True)
class _Tensor:
    shape: Shape
    bytes: float
    dtype: ElementType


@dataclass(frozen=True, slots=True)
class _Call:
    """One operator with what was recorded of its inputs."""

    library: str
    name: str
    tensors: tuple[_Tensor, ...]
    product: tuple[int, int, int]
    ends_in_tensor: bool
    """The last input is one tensor, neither a scalar nor a list."""

    @property
    def has_out(self) -> bool:
        """The output is among the inputs."""
        if not self.ends_in_tensor:
            return False
        if any(self.product):
            return len(self.tensors) > _PRODUCTS[self.name] + 2 and self._last_is_product
        if self.name in _ELEMENTWISE:
            return len(self.tensors) > _ELEMENTWISE[self.name]
        return self.name == "cat" or self.name in _MAKERS

    @property
    def _last_is_product(self) -> bool:
        shape = self.tensors[-1].shape
        batched = len(self.tensors[_PRODUCTS[self.name]].shape) > 2  # noqa: PLR2004  (a matrix)
        return shape == self.product[0 if batched else 1 :]

    @property
    def read(self) -> float:
        """Bytes of all inputs."""
        return sum(tensor.bytes for tensor in self.tensors)

    @property
    def first(self) -> float:
        """Bytes of the first input."""
        return self.tensors[0].bytes


def operands_of(name: str, dims: str, types: str) -> Operands:
    """Of one call by its name, `Input Dims` and `Input type`, both JSON as recorded."""
    tensors = tuple(_tensors(dims, types))
    if not tensors:
        return NOT_KNOWN
    library, _, short = name.rpartition("::")
    at = _PRODUCTS.get(short, 0)
    operands = tensors[at:] if len(tensors) > at else tensors
    call = _Call(library, short, tensors, _product(short, tensors), _ends_in_tensor(dims, types))
    return Operands(
        bytes=next(rule(call) for applies, rule in _RULES if applies(call)),
        operand_bytes=sum(tensor.bytes for tensor in operands[:2]),
        dtype=operands[0].dtype,
        product=call.product,
        inner=tensors[at].shape[-1] if any(call.product) else 0,
    )


def _looked_up(call: _Call) -> float:
    """Rows of a table: each read once and written once."""
    table, index = call.tensors[0], call.tensors[1]
    row = table.bytes / max(table.shape[0], 1)
    return 2 * prod(index.shape) * row + index.bytes


def _multiplied(call: _Call) -> float:
    """Both matrices and their product."""
    right = call.tensors[_PRODUCTS[call.name] + 1]
    size = _PRODUCT_BYTES.get(call.name, right.bytes / max(prod(right.shape), 1))
    return call.read + prod(call.product) * size


def _over_lists(call: _Call) -> float:
    """Lists of equal tensors, of which one is written."""
    same = sum(tensor.shape == call.tensors[0].shape for tensor in call.tensors)
    return call.read + call.read / max(same, 1)


def _spread(call: _Call) -> float:
    """All inputs, and a result as large as they are together when broadcast."""
    size = call.first / max(prod(call.tensors[0].shape), 1)
    try:
        shape = np.broadcast_shapes(*(tensor.shape for tensor in call.tensors[:3]))
    except ValueError:
        return call.read + max(tensor.bytes for tensor in call.tensors)
    return call.read + prod(shape) * size


def _is_attention(call: _Call) -> bool:
    return "attention" in call.name or "attn" in call.name


_RULES: tuple[tuple[Callable[[_Call], bool], Callable[[_Call], float]], ...] = (
    (lambda call: call.name in _INTO_FIRST | _READ_ONLY, lambda call: call.read),
    (lambda call: call.name in _LOOKUPS and len(call.tensors) > 1, _looked_up),
    (lambda call: call.library == "aten" and call.has_out, lambda call: call.read),
    (lambda call: any(call.product), _multiplied),
    (lambda call: _is_attention(call) and "backward" in call.name, lambda call: 2 * call.read),
    (lambda call: _is_attention(call), lambda call: call.read + call.first),
    # Kernels of compilers and extensions get their outputs as arguments.
    (lambda call: call.library != "aten", lambda call: call.read),
    (lambda call: call.name.startswith(("_foreach", "_fused")), _over_lists),
    (lambda call: call.name.endswith("_"), lambda call: call.read + call.first),
    (lambda call: call.name == "cat", lambda call: 2 * call.read),
    (lambda _: True, _spread),
)
"""What an operator reads and writes: the first rule that applies."""


def _product(short: str, tensors: Sequence[_Tensor]) -> tuple[int, int, int]:
    at = _PRODUCTS.get(short)
    if at is None or len(tensors) < at + 2:
        return (0, 0, 0)
    left, right = tensors[at].shape, tensors[at + 1].shape
    if len(left) != len(right) or len(left) not in (2, 3):
        return (0, 0, 0)
    return (left[0] if len(left) == 3 else 1, left[-2], right[-1])  # noqa: PLR2004  (a batch)


def _ends_in_tensor(dims: str, types: str) -> bool:
    sizes, names = _decoded(dims), _decoded(types)
    if not names or len(sizes) != len(names):
        return False
    return names[-1] in _BYTES and _shape(sizes[-1]) is not None


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
