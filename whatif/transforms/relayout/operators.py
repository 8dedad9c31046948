"""Times of the operators of a run without device, whose sizes another layout changes.

    new = dispatch + best * ratio + slack * ((1 - STAYS) * ratio + STAYS)

The dispatch is what the shortest operators take. The best is an operator's FLOPs (of products and
attention) or bytes at the best rate that operators of the run reach; what it took longer is slack:
in part its own way of computing, which follows the ratio of sizes, in part what does not depend on
tokens (weights read into caches, pages of gradients that are made anew). One run does not tell the
two apart: half of each is taken, and the range holds all of either.
"""

import json
import math
from dataclasses import dataclass

import numpy as np

from ingest.vocab import KernelClass, TaskKind
from replay.graph.arrays import NONE, Bool, Int8, Int64, TaskGraph
from replay.graph.work import Float64
from whatif.models.bound import Bound
from whatif.tape.segments import Tape
from whatif.transforms.base import free
from whatif.transforms.relayout.factors import factor_of
from whatif.transforms.relayout.grouped import factors_of
from whatif.transforms.relayout.measured import Changed
from whatif.transforms.relayout.parts import Ask
from whatif.transforms.relayout.sizes import Sizes

ITEM_BYTES = 4.0
"""Of an element on a CPU: single precision."""
STAYS = 0.5
"""Of slack."""
DISPATCH_PERCENTILE, BEST_PERCENTILE = 5.0, 90.0
COMPUTING = (KernelClass.GEMM, KernelClass.ATTENTION)
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
BACKWARD_FLOPS = 2.5
"""Of attention, over those of forward."""


def operators_ns(tape: Tape, ask: Ask, sizes: Sizes) -> Changed:
    """New durations of host work inside operators; the rest of the host's work stays."""
    graph = tape.graph
    tasks = graph.tasks
    task = np.flatnonzero(free(graph, (tasks.kind == TaskKind.HOST_WORK) & (tasks.op != NONE)))
    operators = _operators(graph, task)
    factors = factors_of(
        tape, task, operators.kernel_class, ask.before.model, lambda each: factor_of(each, sizes)
    )
    bound = ask.context.bound
    new = operators.scaled_ns(tasks.dur_ns[task], factors.size(bound), bound)
    computes = np.isin(operators.kernel_class, COMPUTING)
    return Changed(
        task=task,
        dur_ns=np.where(factors.same, tasks.dur_ns[task], new),
        factors=factors,
        from_sizes=computes & (operators.amount > 0),
        modelled=np.zeros(len(task), bool),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operators:
    """Columns with one row per task."""

    kernel_class: Int8
    amount: Float64
    """FLOPs of products and attention, bytes of the inputs of others; NaN where not recorded."""

    def scaled_ns(self, measured_ns: Int64, ratio: Float64, bound: Bound) -> Int64:
        """Times with sizes that many times as large."""
        if not len(measured_ns):
            return measured_ns
        measured = measured_ns.astype(float)
        dispatch = np.minimum(measured, np.percentile(measured, DISPATCH_PERCENTILE))
        work = measured - dispatch
        slack = np.maximum(work - self._best_ns(work), 0.0)
        if bound is Bound.NOMINAL:
            stays = STAYS * slack
        else:
            grows = (ratio > 1.0) == (bound is Bound.HIGH)
            stays = np.where(grows, 0.0, slack)
        new: Int64 = np.rint(dispatch + stays + (work - stays) * ratio).astype(np.int64)
        return new

    def _best_ns(self, work: Float64) -> Float64:
        """Each at the best rate of its kind; all of its time where its amount is not known."""
        best = work.copy()
        computes = np.isin(self.kernel_class, COMPUTING)
        for chosen in (computes, ~computes):
            known: Bool = chosen & (self.amount > 0) & (work > 0)
            if known.any():
                rates = self.amount[known] / work[known]
                best[known] = self.amount[known] / np.percentile(rates, BEST_PERCENTILE)
        return np.minimum(best, work)


def _operators(graph: TaskGraph, task: Int64) -> _Operators:
    names = np.array([int(_class_of(name)) for name in graph.names], np.int8)
    shape = _shapes_of(graph, task)
    amounts = np.array([*(_amount(*each) for each in graph.scopes.shapes), math.nan])
    return _Operators(kernel_class=names[graph.tasks.op[task]], amount=amounts[shape])


def _shapes_of(graph: TaskGraph, task: Int64) -> Int64:
    """Into the recorded shapes; -1."""
    row = graph.scopes.rows_of(graph.tasks.slice_id[task])
    if not len(graph.scopes.shape):
        return np.full(len(task), -1, np.int64)
    return np.where(row >= 0, graph.scopes.shape[row], -1).astype(np.int64)


def _class_of(name: str) -> KernelClass:
    plain = name.rpartition("::")[2].lower()
    return next((found for word, found in CLASSES if word in plain), KernelClass.OTHER)


def _amount(name: str, dims: str) -> float:
    """FLOPs or bytes of an operator from the shapes of its inputs; NaN where these are not told."""
    try:
        shapes = [each for each in json.loads(dims) if _is_shape(each)]
    except ValueError:
        return math.nan
    kind = _class_of(name)
    if kind is KernelClass.GEMM:
        return _flops_of_product(name.rpartition("::")[2], shapes)
    if kind is KernelClass.ATTENTION:
        return _flops_of_attention(name, shapes)
    return ITEM_BYTES * sum(math.prod(each) for each in shapes) or math.nan


def _is_shape(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, int) for each in value)


def _flops_of_product(name: str, shapes: list[list[int]]) -> float:
    wide = [each for each in shapes if len(each) > 1]
    if len(wide) < 2:  # noqa: PLR2004  (two operands)
        return math.nan
    left, right = wide[:2] if name == "linear" else wide[-2:]
    return 2.0 * math.prod(left) * (right[0] if name == "linear" else right[-1])


def _flops_of_attention(name: str, shapes: list[list[int]]) -> float:
    wide = [each for each in shapes if len(each) > 2]  # noqa: PLR2004  (heads, rows, width)
    if len(wide) < 2:  # noqa: PLR2004  (queries and keys)
        return math.nan
    queries, keys = wide[:2]
    return 4.0 * math.prod(queries) * keys[-2] * (BACKWARD_FLOPS if "backward" in name else 1.0)
