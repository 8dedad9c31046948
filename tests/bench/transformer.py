"""Kernels of transformers from their shape, for tables that give whole-model times only."""

from dataclasses import dataclass, replace

import numpy as np

from ingest.vocab import ELEMENT_BYTES, ElementType, KernelClass
from whatif.models.kernels.roofline import Kernels

USUAL_TILE = (256, 128)
"""Of cuBLAS for large products in 16 bits, where a table does not name the kernel."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One layer."""

    hidden: int
    heads: int
    wide: int
    """Width of the feed-forward part."""
    key_heads: int | None = None
    gated: bool = False
    """SwiGLU: three products instead of two."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """Kernels of one step."""

    kernels: Kernels
    operand_bytes: np.ndarray


@dataclass(frozen=True)
class _Row:
    kind: KernelClass
    flops: float
    bytes: float
    times: int = 1
    operands: float = np.nan
    """Bytes of what a product multiplies."""


def kernels_of_model(  # noqa: PLR0913  (by keyword, each a property of the job)
    shape: Shape,
    *,
    batch: int,
    length: int,
    dtype: ElementType,
    layers: int,
    training: bool,
    flash: bool = True,
    recomputed: bool = False,
) -> "Model":
    """Kernels of all layers; backward has each product twice and moves twice the bytes."""
    size = ELEMENT_BYTES[dtype]
    tokens = batch * length
    rows = [*_products(shape, tokens, size), *_attention(shape, batch, length, size, flash=flash)]
    rows += _elementwise(shape, tokens, size)
    forward = (1 + recomputed + 2) if training else 1
    every = [replace(row, times=row.times * layers * forward) for row in rows]
    times = [row.times for row in every]
    return Model(
        kernels=_columns(every, dtype),
        operand_bytes=np.repeat([row.operands for row in every], times),
    )


def kernels_of_products(op: str, shape: str, row: dict[str, str]) -> tuple[float, Kernels]:
    """FLOPs and columns of one measured product or attention of SimuMax's tables, in bf16."""
    said = dict(part.split("=") for part in shape.split(", ") if "=" in part)
    if op.startswith("sdp"):
        length, heads = int(said["seq_len"]), int(said["head_num"])
        keys = int(said["kv_head_num"])
        wide = int(said["qk_head_dim"]) + int(said["v_head_dim"])
        flops = 2.0 * length * length * heads * wide * (2.5 if op == "sdp_bwd" else 1)
        moved = 2.0 * length * (heads + keys) * wide
        return flops, _columns([_Row(KernelClass.ATTENTION, flops, moved)], ElementType.BF16)
    if op == "group_matmul":
        groups, m, n, k = (int(said[name]) for name in ("ng", "M", "N", "K"))
    else:
        groups = int(row.get("b", 1))
        m, n, k = (int(row[name]) for name in ("m", "n", "k"))
    flops = 2.0 * groups * m * n * k
    moved = 2.0 * groups * (m * k + k * n + m * n)
    made = _columns([_Row(KernelClass.GEMM, flops, moved)], ElementType.BF16)
    tall, wide = USUAL_TILE
    return flops, replace(made, tiles=np.array([groups * -(-m // tall) * -(-n // wide)]))


def _products(shape: Shape, tokens: int, size: float) -> list[_Row]:
    keys = (shape.key_heads or shape.heads) * shape.hidden // shape.heads
    sizes = [
        (shape.hidden, shape.hidden + 2 * keys),
        (shape.hidden, shape.hidden),
        (shape.hidden, shape.wide),
        (shape.wide, shape.hidden),
    ]
    if shape.gated:
        sizes.append((shape.hidden, shape.wide))
    return [
        _Row(
            KernelClass.GEMM,
            2.0 * tokens * k * n,
            size * (tokens * (k + n) + k * n),
            operands=size * (tokens * k + k * n),
        )
        for k, n in sizes
    ]


def _attention(shape: Shape, batch: int, length: int, size: float, *, flash: bool) -> list[_Row]:
    flops = 4.0 * batch * length * length * shape.hidden
    small = 4 * size * batch * length * shape.hidden
    if flash:
        return [_Row(KernelClass.ATTENTION, flops, small)]
    scores = size * batch * shape.heads * length * length
    product = _Row(KernelClass.GEMM, flops / 2, scores + small / 2)
    softmax = _Row(KernelClass.REDUCTION, np.nan, 2 * scores)
    return [product, product, softmax, _Row(KernelClass.ELEMENTWISE, np.nan, 2 * scores, 2)]


def _elementwise(shape: Shape, tokens: int, size: float) -> list[_Row]:
    hidden, wide = size * tokens * shape.hidden, size * tokens * shape.wide
    return [
        _Row(KernelClass.NORMALISATION, np.nan, 2 * hidden, 2),
        _Row(KernelClass.ELEMENTWISE, np.nan, 3 * hidden, 2),
        _Row(KernelClass.ELEMENTWISE, np.nan, (3 if shape.gated else 2) * wide),
        _Row(KernelClass.ELEMENTWISE, np.nan, 4 * hidden),
    ]


def _columns(rows: list[_Row], dtype: ElementType) -> Kernels:
    """One row per kernel; equal ones stand for each other by their count."""
    times = np.array([row.times for row in rows])
    kind = np.repeat(np.array([row.kind for row in rows], np.int8), times)
    return Kernels(
        kernel_class=kind,
        dtype=np.full(len(kind), dtype, np.int8),
        flops=np.repeat(np.array([row.flops for row in rows], float), times),
        bytes=np.repeat(np.array([row.bytes for row in rows], float), times),
        tiles=np.full(len(kind), -1),
    )
