"""Times of the operators of a run without device, whose sizes another layout changes.

    new = dispatch + bytes / rate + (measured - dispatch - bytes / rate) * FLOPs ratio

for products, whose weights are read, or their gradients written, however many tokens there are;
other operators follow their bytes beyond the dispatch. Dispatch and rate are the run's own: the
shortest operators, and the bytes per second of those that only move. In a range they move at the
rate of the slowest of these, or weights cost nothing.
"""

import json
import math
from dataclasses import dataclass

import numpy as np

from ingest.vocab import KernelClass, TaskKind
from replay.graph.arrays import NONE, Int8, Int64, TaskGraph
from replay.graph.work import Float64
from whatif.models.bound import Bound
from whatif.tape.segments import Tape
from whatif.transforms.base import free
from whatif.transforms.relayout.factors import Scaling, factor_of
from whatif.transforms.relayout.grouped import factors_of
from whatif.transforms.relayout.measured import Changed
from whatif.transforms.relayout.parts import Ask
from whatif.transforms.relayout.product_sizes import BATCH, K, M, N, product_sizes
from whatif.transforms.relayout.sizes import Sizes

ITEM_BYTES = 4.0
"""Of an element on a CPU: single precision."""
DISPATCH_PERCENTILE = 5.0
MOST_FIXED = 0.5
"""Of an operator's time that is taken as its weights', at most."""
SLOWEST_PERCENTILE, USUAL_PERCENTILE = 10.0, 50.0
CLASSES = (
    ("scaled_dot_product", KernelClass.ATTENTION),
    ("adam", KernelClass.OPTIMIZER),
    ("sgd", KernelClass.OPTIMIZER),
    ("_foreach", KernelClass.OPTIMIZER),
    ("mm", KernelClass.GEMM),
    ("linear", KernelClass.GEMM),
    ("matmul", KernelClass.GEMM),
    ("conv", KernelClass.CONVOLUTION),
    ("norm", KernelClass.NORMALISATION),
    ("embedding", KernelClass.EMBEDDING),
)
"""What an operator does, by the first word that its name holds; others move their tensors."""


def operators_ns(tape: Tape, ask: Ask, sizes: Sizes) -> Changed:
    """New durations of host work inside operators; the rest of the host's work stays."""
    graph = tape.graph
    tasks = graph.tasks
    task = np.flatnonzero(free(graph, (tasks.kind == TaskKind.HOST_WORK) & (tasks.op != NONE)))
    operators = _operators(graph, task)
    factors = factors_of(
        tape, task, operators.kernel_class, ask.before.model, lambda each: factor_of(each, sizes)
    )
    product = product_sizes(factors, operators.product, ask.before)
    measured = tasks.dur_ns[task].astype(float)
    bound = ask.context.bound
    names = {Bound.NOMINAL: "size", Bound.LOW: "low", Bound.HIGH: "high"}
    size = factors.of(names[bound])
    dispatch = np.minimum(measured, operators.dispatch_ns(measured))
    work = measured - dispatch
    is_product = (factors.of("scaling") == Scaling.PRODUCT) & ~np.isnan(product.before).any(axis=1)
    rate = operators.bytes_per_ns(measured, bound)
    of_products = _products_ns(work, product.before, product.after, rate)
    new = dispatch + np.where(is_product, of_products, work * size)
    return Changed(
        task=task,
        dur_ns=np.where(factors.same, tasks.dur_ns[task], np.rint(new)).astype(np.int64),
        factors=factors,
        from_sizes=product.recorded & is_product,
        modelled=is_product,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operators:
    """Columns with one row per task."""

    kernel_class: Int8
    product: Int64
    """Batch, m, n, k; zeros where it is none. Shape (tasks, 4)."""
    bytes: Float64
    """Of its inputs; NaN where not recorded."""

    def dispatch_ns(self, measured_ns: Float64) -> float:
        """What any operator takes."""
        return float(np.percentile(measured_ns, DISPATCH_PERCENTILE)) if len(measured_ns) else 0.0

    def bytes_per_ns(self, measured_ns: Float64, bound: Bound) -> float:
        """Rate of operators that only move; infinite where nothing tells, or weights are free."""
        moves = (self.kernel_class == KernelClass.OTHER) & (self.bytes > 0)
        if bound is Bound.HIGH or not moves.any():
            return math.inf
        rates = self.bytes[moves] / np.maximum(measured_ns[moves], 1.0)
        usual = bound is Bound.NOMINAL
        return float(np.percentile(rates, USUAL_PERCENTILE if usual else SLOWEST_PERCENTILE))


def _products_ns(work: Float64, before: Float64, after: Float64, rate: float) -> Float64:
    """Products: their bytes at the rate, the rest by FLOPs."""
    moved = np.minimum(_bytes(before) / rate, MOST_FIXED * work)
    grown = _bytes(after) / np.maximum(_bytes(before), 1.0)
    ratio = after.prod(axis=1) / np.maximum(before.prod(axis=1), 1.0)
    new: Float64 = moved * grown + (work - moved) * ratio
    return new


def _bytes(sizes: Float64) -> Float64:
    m, n, k = sizes[:, M], sizes[:, N], sizes[:, K]
    moved: Float64 = sizes[:, BATCH] * (m * k + k * n + m * n) * ITEM_BYTES
    return moved


def _operators(graph: TaskGraph, task: Int64) -> _Operators:
    names = np.array([int(_class_of(name)) for name in graph.names], np.int8)
    shape = _shapes_of(graph, task)
    told = [_told(*each) for each in graph.scopes.shapes]
    products = np.array([each[0] for each in told] + [(0, 0, 0, 0)], np.int64)
    sizes = np.array([each[1] for each in told] + [math.nan])
    return _Operators(
        kernel_class=names[graph.tasks.op[task]], product=products[shape], bytes=sizes[shape]
    )


def _shapes_of(graph: TaskGraph, task: Int64) -> Int64:
    """Into the recorded shapes; -1."""
    row = graph.scopes.rows_of(graph.tasks.slice_id[task])
    if not len(graph.scopes.shape):
        return np.full(len(task), -1, np.int64)
    return np.where(row >= 0, graph.scopes.shape[row], -1).astype(np.int64)


def _class_of(name: str) -> KernelClass:
    plain = name.rpartition("::")[2].lower()
    return next((found for word, found in CLASSES if word in plain), KernelClass.OTHER)


def _told(name: str, dims: str) -> tuple[tuple[int, int, int, int], float]:
    """Product and bytes of the inputs of an operator, from its recorded shapes."""
    try:
        shapes = [each for each in json.loads(dims) if _is_shape(each)]
    except ValueError:
        return (0, 0, 0, 0), math.nan
    moved = ITEM_BYTES * sum(math.prod(each) for each in shapes)
    return _product(name.rpartition("::")[2], shapes), moved or math.nan


def _is_shape(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, int) for each in value)


def _product(name: str, shapes: list[list[int]]) -> tuple[int, int, int, int]:
    """Batch, m, n, k of matrix operators; zeros of others."""
    wide = [each for each in shapes if len(each) > 1]
    if len(wide) < 2:  # noqa: PLR2004  (two operands)
        return (0, 0, 0, 0)
    if name == "linear":
        (*rows, k), (n, _) = wide[0], wide[1][:2]
        return (1, math.prod(rows), n, k)
    if name in ("mm", "addmm", "bmm", "baddbmm"):
        left, right = wide[-2:]
        return (math.prod(left[:-2]), left[-2], right[-1], left[-1])
    return (0, 0, 0, 0)
