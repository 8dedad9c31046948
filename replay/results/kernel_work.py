"""Reads from the store what kernels compute and move: FLOPs, bytes, types, tiles."""

from pathlib import Path

import numpy as np

from ingest.store import Store
from ingest.vocab import ElementType, KernelClass
from replay.graph.arrays import Bool
from replay.graph.facts import GraphFacts
from replay.graph.work import UNKNOWN, Float64, Int8, Int64, KernelWork
from replay.results.kernel_names import element_type, tile
from replay.results.operands import NOT_KNOWN, Operands, operands_of

SQL = Path(__file__).parent / "sql"
MATRIX = (KernelClass.GEMM, KernelClass.ATTENTION, KernelClass.CONVOLUTION)
_SHORTENED = (ElementType.FP32, ElementType.TF32)


def find_kernel_work(store: Store, names: tuple[str, ...], facts: GraphFacts) -> KernelWork:
    """Work of all kernels of the chosen files; `names` are those of the graph.

    An operator's FLOPs go to its matrix kernels, by their time, and its bytes to the same kernels;
    what it launches beside them (changes of layout, sums of partial products) has unknown bytes.
    """
    params: dict[str, object] = {"trace_ids": [file.trace_id for file in facts.files]}
    found = store.arrays_from_file(SQL / "kernel_work.sql", params)
    memory = store.arrays_from_file(SQL / "memory_peak.sql", params)
    shape, op = found["shape"].astype(np.int64), found["op_id"].astype(np.int64)
    matrix = np.isin(found["class"], MATRIX)
    flops = found["flops"].astype(np.float64)
    of_shape = _operands(store, shape, op)
    counts = ~_beside_matrix(op, matrix)
    share = _shares(op, found["dur_ns"].astype(np.float64), counts)
    at = np.where(op >= 0, shape, len(of_shape) - 1)
    moved = np.array([one.bytes for one in of_shape])[at]
    operands = np.array([one.operand_bytes for one in of_shape])[at]
    return KernelWork(
        slice_id=found["slice_id"].astype(np.int64),
        flops=np.where(matrix, flops * share, np.nan),
        bytes=np.where(counts, moved * share, np.nan),
        operand_bytes=np.where(matrix, operands * share, np.nan),
        dtype=_dtypes(found["name_id"].astype(np.int64), names, of_shape, at),
        tiles=_tiles(found["name_id"].astype(np.int64), names, of_shape, at),
        product=_products(of_shape, at, matrix),
        peak_bytes=int(memory["peak_bytes"][0]),
        memory_bytes=int(memory["memory_bytes"][0]),
    )


def _operands(store: Store, shape: Int64, op: Int64) -> list[Operands]:
    """Per shape what its first operator's inputs tell; the last stands for no operator."""
    known = op >= 0
    table = [NOT_KNOWN] * (int(shape.max(initial=-1)) + 2)
    shapes, first = np.unique(shape[known], return_index=True)
    of_op = dict(zip(op[known][first].tolist(), shapes.tolist(), strict=True))
    rows = store.arrays_from_file(SQL / "operator_inputs.sql", {"op_ids": list(of_op)})
    columns = (rows[name].tolist() for name in ("op_id", "name", "dims", "types"))
    for op_id, name, dims, types in zip(*columns, strict=True):
        table[of_op[op_id]] = operands_of(name, dims, types)
    return table


def _shares(op: Int64, dur_ns: Float64, counts: Bool) -> Float64:
    """Part of its operator's work that each kernel does: by time, among those that count."""
    spent = np.where(counts & (op >= 0), np.maximum(dur_ns, 1.0), 0.0)
    _, group = np.unique(op, return_inverse=True)
    total = np.bincount(group, weights=spent)[group]
    return np.divide(spent, total, out=np.zeros_like(spent), where=total > 0)


def _beside_matrix(op: Int64, matrix: Bool) -> Bool:
    """Kernels that the operator of a matrix kernel launched, and that are none."""
    beside: Bool = ~matrix & np.isin(op, op[matrix]) & (op >= 0)
    return beside


def _dtypes(name: Int64, names: tuple[str, ...], of_shape: list[Operands], at: Int64) -> Int8:
    """By the operator's inputs; the kernel's name says what it made of single precision."""
    distinct, which = np.unique(name, return_inverse=True)
    named = np.array([element_type(names[one]) for one in distinct], np.int8)[which]
    recorded = np.array([one.dtype for one in of_shape], np.int8)[at]
    shortened = (recorded == ElementType.SINGLE) & np.isin(named, _SHORTENED)
    dtype: Int8 = np.where(shortened | (recorded == ElementType.UNKNOWN), named, recorded)
    return dtype


def _products(of_shape: list[Operands], at: Int64, matrix: Bool) -> Int64:
    """Batch, m, n and k of the product that each matrix kernel computes; shape (kernels, 4)."""
    table = np.array([(*one.product, one.inner) for one in of_shape], np.int64).reshape(-1, 4)
    product: Int64 = np.where(matrix[:, None], table[at], 0)
    return product


def _tiles(name: Int64, names: tuple[str, ...], of_shape: list[Operands], at: Int64) -> Int64:
    """Blocks of output, by the shape of the product and the tile in the kernel's name."""
    distinct, which = np.unique(name, return_inverse=True)
    sizes = np.array([tile(names[one]) for one in distinct], np.int64).reshape(-1, 2)[which]
    batch, rows, columns = np.array([one.product for one in of_shape], np.int64).T[:, at]
    known = (sizes > 0).all(axis=1) & (batch > 0)
    tall, wide = np.maximum(sizes, 1).T
    return np.where(known, batch * -(-rows // tall) * -(-columns // wide), UNKNOWN)
