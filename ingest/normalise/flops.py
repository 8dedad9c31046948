"""FLOPs of operators from their recorded shapes, counted as `torch.utils.flop_counter` counts them.

A multiplication and an addition are two operations, so a product of M x K and K x N is 2 M N K;
biases, masks, softmax and all elementwise work count nothing, and attention with a causal mask
counts in full. Three of torch's figures are not followed: attention in the layout (batch, sequence,
heads, width), which torch reads as (batch, heads, sequence, width); gradients of grouped
convolutions, which torch counts once per group too often; operators that torch never sees because
they have parts of their own (`linear`), which count here where no part was recorded.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from ingest.lexicon.shapes import decoded
from ingest.normalise.gather import Gathered

Shape = tuple[int, ...]

_MOST_DIMS = 8
_MULTIPLY_AND_ADD = 2
_DIMS_OF_ATTENTION = 4
_MATRIX = 2
_BATCH = 3


class _NotKnown(Exception):  # noqa: N818  (not an error: most operators have no such shapes)
    """The recorded inputs do not tell the FLOPs."""


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What was recorded of the inputs of one call, decoded; anything may stand in a file."""

    dims: object
    """Per input a list of sizes; empty for what is no tensor."""
    concrete: object
    """Per input its value as text; empty for tensors, and in files of older profilers."""

    def shape(self, at: int) -> Shape:
        """Sizes of one tensor."""
        sizes = _item(self.dims, at)
        if not isinstance(sizes, list) or not 0 < len(sizes) <= _MOST_DIMS:
            raise _NotKnown
        if not all(type(size) is int and size >= 0 for size in sizes):
            raise _NotKnown
        return tuple(sizes)

    def is_tensor(self, at: int) -> bool:
        """An input has sizes."""
        return bool(isinstance(self.dims, list) and at < len(self.dims) and self.dims[at])

    def numbers(self, at: int, length: int) -> Shape:
        """A list of whole numbers; a single one stands for all."""
        found = self._value(at)
        if not isinstance(found, list) or not all(isinstance(one, int) for one in found):
            raise _NotKnown
        if len(found) not in (1, length):
            raise _NotKnown
        return tuple(found) * (length if len(found) == 1 else 1)

    def flag(self, at: int) -> bool:
        """A truth value."""
        found = self._value(at)
        if not isinstance(found, bool):
            raise _NotKnown
        return found

    def flags(self, at: int) -> tuple[bool, ...]:
        """A list of truth values."""
        found = self._value(at)
        if not isinstance(found, list) or not all(isinstance(one, bool) for one in found):
            raise _NotKnown
        return tuple(found)

    def _value(self, at: int) -> object:
        text = _item(self.concrete, at)
        if not isinstance(text, str):
            raise _NotKnown
        try:
            return msgspec.json.decode(text.lower())
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
            raise _NotKnown from error


Formula = Callable[[_Inputs], int]


def _item(values: object, at: int) -> object:
    if not isinstance(values, list) or at >= len(values):
        raise _NotKnown
    return values[at]


def _require(*, fits: bool) -> None:
    if not fits:
        raise _NotKnown


def _product(first: int) -> Formula:
    """Two matrices, or as many as a batch holds, from input `first` on."""

    def count(inputs: _Inputs) -> int:
        left, right = inputs.shape(first), inputs.shape(first + 1)
        _require(fits=len(left) == len(right) and len(left) in (_MATRIX, _BATCH))
        _require(fits=left[-1] == right[-2] and left[:-2] == right[:-2])
        return _MULTIPLY_AND_ADD * prod(left) * right[-1]

    return count


def _grouped_product(inputs: _Inputs) -> int:
    """Rows (or columns) of the left matrix dealt out to groups: each meets one matrix."""
    left, right = inputs.shape(0), inputs.shape(1)
    _require(fits=_MATRIX <= len(left) <= len(right) <= _BATCH and left[-1] == right[-2])
    return _MULTIPLY_AND_ADD * prod(left) * right[-1]


def _linear(inputs: _Inputs) -> int:
    """Anything x K by N x K."""
    data, weight = inputs.shape(0), inputs.shape(1)
    _require(fits=len(weight) == _MATRIX and data[-1] == weight[1])
    return _MULTIPLY_AND_ADD * prod(data) * weight[0]


def _matmul(inputs: _Inputs) -> int:
    """As numpy: vectors are one row or column, and what is before the matrices is broadcast."""
    left, right = inputs.shape(0), inputs.shape(1)
    left = (1, *left) if len(left) == 1 else left
    right = (*right, 1) if len(right) == 1 else right
    _require(fits=left[-1] == right[-2])
    try:
        batch = np.broadcast_shapes(left[:-2], right[:-2])
    except ValueError as error:
        raise _NotKnown from error
    return _MULTIPLY_AND_ADD * prod(batch) * left[-2] * left[-1] * right[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Convolution:
    """Where the inputs of a convolution stand; called, its FLOPs."""

    stride: int
    padding: int
    dilation: int
    transposed: int | None = None
    """None for operators that never are."""

    def __call__(self, inputs: _Inputs) -> int:
        data, weight = inputs.shape(0), inputs.shape(1)
        _require(fits=len(data) == len(weight) > _MATRIX)
        if self.transposed is not None and inputs.flag(self.transposed):
            return _MULTIPLY_AND_ADD * prod(data) * prod(weight[1:])
        return _MULTIPLY_AND_ADD * data[0] * prod(self._places(inputs, data, weight)) * prod(weight)

    def _places(self, inputs: _Inputs, data: Shape, weight: Shape) -> Shape:
        """Size of the output without batch and channels."""
        n = len(data) - 2
        stride, padding = inputs.numbers(self.stride, n), inputs.numbers(self.padding, n)
        dilation = inputs.numbers(self.dilation, n)
        _require(fits=min(stride) > 0 and min(padding) >= 0 and min(dilation) > 0)
        sizes = tuple(
            (data[2 + at] + 2 * padding[at] - dilation[at] * (weight[2 + at] - 1) - 1) // stride[at]
            + 1
            for at in range(n)
        )
        _require(fits=min(sizes) >= 0)
        return sizes


def _convolution_backward(inputs: _Inputs) -> int:
    """One convolution for each gradient that was asked for: of the input, of the weight."""
    gradient, data, weight = inputs.shape(0), inputs.shape(1), inputs.shape(2)
    _require(fits=len(gradient) == len(data) == len(weight) > _MATRIX)
    asked = inputs.flags(10)[:2]
    meets_all = data if inputs.flag(7) else gradient
    return sum(asked) * _MULTIPLY_AND_ADD * prod(meets_all) * prod(weight[1:])


def _attention(*, backward: bool, heads_first: bool, packed: int | None = None) -> Formula:
    """Two products of sequence x sequence forward, five backward, where scores are made again.

    `packed` is the input that holds the ends of sequences packed into one: their lengths are
    values of a tensor, which no trace records.
    """

    def count(inputs: _Inputs) -> int:
        _require(fits=packed is None or not inputs.is_tensor(packed))
        first = 1 if backward else 0
        shapes = [inputs.shape(first + at) for at in range(3)]
        _require(fits={len(shape) for shape in shapes} == {_DIMS_OF_ATTENTION})
        if not heads_first:
            shapes = [(batch, heads, length, width) for batch, length, heads, width in shapes]
        (batch, heads, length, width), key, value = shapes
        _require(fits=key[0] == value[0] == batch and key[1:3] == value[1:3] and key[3] == width)
        _require(fits=key[1] > 0 and heads % key[1] == 0)
        widths = 3 * width + 2 * value[3] if backward else width + value[3]
        return _MULTIPLY_AND_ADD * batch * heads * length * key[2] * widths

    return count


_FORWARD = _attention(backward=False, heads_first=True)
_BACKWARD = _attention(backward=True, heads_first=True)
_AS_CALLED = _Convolution(stride=3, padding=4, dilation=5, transposed=6)
_WITH_BIAS = _Convolution(stride=4, padding=3, dilation=5)
_FORMULAS: Mapping[str, Formula] = {
    "aten::mm": _product(0),
    "aten::bmm": _product(0),
    "aten::_int_mm": _product(0),
    "aten::_scaled_mm": _product(0),
    "aten::addmm": _product(1),
    "aten::addmm_": _product(1),
    "aten::_addmm_activation": _product(1),
    "aten::baddbmm": _product(1),
    "aten::baddbmm_": _product(1),
    "aten::_grouped_mm": _grouped_product,
    "aten::_scaled_grouped_mm": _grouped_product,
    "aten::linear": _linear,
    "aiter::gemm_a16w16": _linear,
    "vllm::rocm_unquantized_gemm": _linear,
    "aten::matmul": _matmul,
    "aten::convolution": _AS_CALLED,
    "aten::_convolution": _AS_CALLED,
    "aten::cudnn_convolution": _Convolution(stride=3, padding=2, dilation=4),
    "aten::miopen_convolution": _WITH_BIAS,
    "aten::mkldnn_convolution": _WITH_BIAS,
    "aten::convolution_backward": _convolution_backward,
    "aten::scaled_dot_product_attention": _FORWARD,
    "aten::_scaled_dot_product_flash_attention": _FORWARD,
    "aten::_scaled_dot_product_flash_attention_for_cpu": _FORWARD,
    "aten::_scaled_dot_product_efficient_attention": _FORWARD,
    "aten::_scaled_dot_product_cudnn_attention": _FORWARD,
    "aten::_scaled_dot_product_flash_attention_backward": _BACKWARD,
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _BACKWARD,
    "aten::_scaled_dot_product_efficient_attention_backward": _BACKWARD,
    "aten::_scaled_dot_product_cudnn_attention_backward": _BACKWARD,
    "aten::_flash_attention_forward": _attention(backward=False, heads_first=False, packed=3),
    "aten::_efficient_attention_forward": _attention(backward=False, heads_first=False, packed=4),
    "aten::_flash_attention_backward": _attention(backward=True, heads_first=False),
    "aten::_efficient_attention_backward": _attention(backward=True, heads_first=False, packed=6),
    "flash_attn::_flash_attn_forward": _attention(backward=False, heads_first=False),
    "flash_attn::_flash_attn_backward": _attention(backward=True, heads_first=False),
}
"""Name of an operator -> what its inputs tell. Sequences of one length only: packed ones have
three sizes, and the operators are named otherwise or their shapes do not fit."""


def flops_of(name: str, dims: object, concrete: object) -> float | None:
    """FLOPs of one call by its name, `Input Dims` and `Concrete Inputs`, as decoded from JSON.

    None where the name has no formula or the inputs do not tell.
    """
    formula = _FORMULAS.get(name)
    if formula is None:
        return None
    try:
        return float(formula(_Inputs(dims, concrete)))
    except (_NotKnown, OverflowError):
        return None


def count_flops(gathered: Gathered, ops: pl.DataFrame) -> pl.Series:
    """FLOPs of each operator, NULL where not known and where an operator inside it has them.

    So no call counts twice, and the operator that launches has the figure. `ops` has `id`,
    `input_dims` and `concrete_inputs`, the two as numbers of the words' values.
    """
    names = gathered.words.names.texts
    has_formula = np.fromiter((name in _FORMULAS for name in names), np.bool_, len(names))
    ids = ops["id"].to_numpy()
    rows = np.flatnonzero(has_formula[gathered.name[ids]])
    calls = np.stack(
        [
            gathered.name[ids[rows]],
            _numbers(ops["input_dims"], rows),
            _numbers(ops["concrete_inputs"], rows),
        ]
    )
    distinct, which = np.unique(calls, axis=1, return_inverse=True)
    counted = [
        flops_of(names[name], _decoded(gathered, dims), _decoded(gathered, concrete))
        for name, dims, concrete in distinct.T.tolist()
    ]
    flops = np.full(len(ids), np.nan)
    flops[rows] = np.array(counted, np.float64)[which.reshape(-1)]
    return pl.Series(_innermost(gathered, ids, flops)).fill_nan(None)


def _numbers(column: pl.Series, rows: NDArray[np.int64]) -> NDArray[np.int32]:
    """Numbers of values, -1 for what was not recorded."""
    return column.gather(rows).fill_null(-1).to_numpy()


def _decoded(gathered: Gathered, number: int) -> object:
    return None if number < 0 else decoded(gathered.words.values.text(number))


def _innermost(
    gathered: Gathered, ids: NDArray[np.int64], flops: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The same without those of rows that are around another one with a figure."""
    known = ids[~np.isnan(flops)]
    around = np.zeros(len(gathered), np.bool_)
    at = np.unique(gathered.parent[known])
    while len(at := at[at >= 0]):
        around[at] = True
        above = gathered.parent[at]
        at = np.unique(above[(above >= 0) & ~around[above]])
    return np.where(around[ids], np.nan, flops)
