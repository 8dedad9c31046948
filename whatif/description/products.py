"""Matrix products that tasks compute, from the recorded inputs of their operators."""

import msgspec
import numpy as np

from ingest.vocab import KernelClass, TaskKind
from replay.graph.arrays import Int64, TaskGraph

_FIRST = {
    **dict.fromkeys(("mm", "bmm", "_scaled_mm", "_int_mm", "matmul", "linear", "_grouped_mm"), 0),
    **dict.fromkeys(("addmm", "addmm_", "baddbmm", "baddbmm_", "_addmm_activation"), 1),
}
"""Operator -> where the first matrix stands among its inputs."""
_MATRIX, _BATCHED = 2, 3


def products_of(graph: TaskGraph) -> Int64:
    """Batch, m, n, k of the product that each task computes; shape (tasks, 4), zeros for none.

    Of device tasks only matrix kernels count (not the sums of their partial results); of host
    tasks those whose work is the operator.
    """
    scopes, tasks = graph.scopes, graph.tasks
    table = np.array([product(name, dims) for name, dims in scopes.shapes], np.int64)
    table = np.concatenate([table.reshape(-1, 4), np.zeros((1, 4), np.int64)])
    row = scopes.rows_of(tasks.slice_id)
    shape = np.append(scopes.shape, -1)[row]
    on_host = tasks.kind <= TaskKind.HOST_CALL
    counts = on_host | ((tasks.kind == TaskKind.KERNEL) & (tasks.kernel_class == KernelClass.GEMM))
    found: Int64 = np.where(counts[:, None], table[shape], 0)
    return found


def product(name: str, dims: str) -> tuple[int, int, int, int]:
    """Batch, m, n, k of one call by its name and `Input Dims`; zeros where it is no product.

    Of grouped products (tokens of all experts, a matrix for each) m is that of one in a balanced
    group.
    """
    short = name.rpartition("::")[2]
    at = _FIRST.get(short, 0)
    sizes = dims_of(dims)
    if short not in _FIRST or len(sizes) < at + 2:
        return (0, 0, 0, 0)
    left, right = sizes[at], sizes[at + 1]
    grouped = len(left) == _MATRIX and len(right) == _BATCHED
    if not left or (len(right) not in (_MATRIX, len(left)) and not grouped):
        return (0, 0, 0, 0)
    if short == "linear":
        # Weights lie as (out, in); a recorder that writes the operands of the product keeps k.
        m, k = _rows(left[:-1]), left[-1]
        n = right[0] if right[-1] == k else right[-1]
        return (1, m, n, k)
    if grouped:
        return (right[0], left[0] // max(right[0], 1), right[2], left[1])
    if len(right) == _MATRIX:
        return (1, _rows(left[:-1]), right[1], left[-1])
    return (_rows(left[:-2]), left[-2], right[-1], left[-1])


def dims_of(text: str) -> list[tuple[int, ...]]:
    """Sizes of the tensors among the inputs; () for what is none."""
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return []
    if not isinstance(found, list):
        return []
    return [
        tuple(one) if isinstance(one, list) and all(type(n) is int for n in one) else ()
        for one in found
    ]


def _rows(sizes: tuple[int, ...]) -> int:
    return int(np.prod(sizes)) if sizes else 1
