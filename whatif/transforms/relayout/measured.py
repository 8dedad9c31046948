"""Measured times of kernels, moved by the ratio of a model's time after to before.

    new = overhead + (measured - overhead - slack) * ratio + slack

The overhead is that of an empty kernel. What a kernel took longer than the model gives it is slack:
of kernels that fill the device it follows the ratio (their code reaches less of the roof), of
smaller ones it is latency and stays, by how much of the device they fill: what moves as much as
the memory does in `moved.RAMP_S` half fills it, a product by its tiles. Of a kernel of which
neither FLOPs nor bytes are known the time itself tells: one as long as that half fills it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.errors import ScenarioError
from ingest.vocab import ElementType, KernelClass, TaskKind
from replay.graph.arrays import Bool, Int8, Int64, TaskGraph
from replay.graph.work import Float64
from whatif.models.bound import Bound
from whatif.models.kernels import attention, moved, products, roofline
from whatif.models.kernels.machine import Machine, machine_of
from whatif.models.kernels.works import ratio_bound
from whatif.models.places import BACKWARDS
from whatif.models.shape import ContextKind, RunShape
from whatif.models.transformer.dims import Dims
from whatif.tape.segments import Tape
from whatif.transforms.base import free
from whatif.transforms.relayout.factors import Scaling, Where, factor_of
from whatif.transforms.relayout.grouped import Factors, factors_of
from whatif.transforms.relayout.parts import Ask
from whatif.transforms.relayout.product_sizes import BATCH, K, M, N, ProductSizes, product_sizes
from whatif.transforms.relayout.sizes import Sizes, known_dims
from whatif.transforms.shards import SHORTEST_KERNEL_NS

TILE = 128.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """New durations of tasks."""

    task: Int64
    dur_ns: Int64
    factors: Factors
    from_sizes: Bool
    """Products whose sizes the trace has."""
    modelled: Bool
    """Whose ratio a model gave; others follow their FLOPs or bytes."""
    product_after: Int64 | None = None
    """Batch, m, n, k of recorded products afterwards, zeros of others; shape (tasks, 4)."""


def kernels_ns(tape: Tape, ask: Ask, sizes: Sizes) -> Changed:
    """New durations of the computing tasks of devices."""
    graph = tape.graph
    task = _computing(graph)
    kernel_class = _classes(graph, task)
    factors = factors_of(
        tape, task, kernel_class, ask.before.model, lambda where: factor_of(where, sizes)
    )
    kernels = _Kernels(graph, task, factors, ask, sizes)
    dur_ns = graph.tasks.dur_ns[task]
    new_ns = np.where(factors.same, dur_ns, kernels.new_ns(dur_ns))
    return Changed(
        task=task,
        dur_ns=new_ns,
        factors=factors,
        from_sizes=kernels.product.recorded,
        modelled=~np.isnan(kernels.before_ns),
        product_after=kernels.product.recorded_after,
    )


def _computing(graph: TaskGraph) -> Int64:
    tasks = graph.tasks
    kernel = (tasks.kind == TaskKind.KERNEL) & (tasks.kernel_class != KernelClass.COLLECTIVE)
    copy = (tasks.kind == TaskKind.MEMCPY) | (tasks.kind == TaskKind.MEMSET)
    return np.flatnonzero(free(graph, kernel | copy))


def _classes(graph: TaskGraph, task: Int64) -> Int8:
    """Class of each; copies and memsets by their kind."""
    kind, found = graph.tasks.kind[task], graph.tasks.kernel_class[task].copy()
    found[kind == TaskKind.MEMCPY] = KernelClass.MEMCPY
    found[kind == TaskKind.MEMSET] = KernelClass.MEMSET
    return found


def _machine(ask: Ask) -> Machine | None:
    """None where no accelerator is known: ratios of FLOPs and bytes serve then."""
    if ask.context.device is None:
        return None
    try:
        return machine_of(ask.context.device)
    except ScenarioError:
        return None


class _Kernels:
    """Model times of kernels before and after, NaN where none can be told."""

    def __init__(
        self, graph: TaskGraph, task: Int64, factors: Factors, ask: Ask, sizes: Sizes
    ) -> None:
        self._factors, self._ask = factors, ask
        self._bound = ask.context.bound
        self._machine = _machine(ask)
        self._scaling = factors.of("scaling").astype(np.int64)
        self._kernel_class = _classes(graph, task)
        work, row = graph.work, graph.work.rows_of(graph.tasks.slice_id[task])
        self._flops: Float64 = _column(work.flops, row, np.nan)
        self._bytes: Float64 = self._moved(
            graph.tasks.dur_ns[task], _column(work.bytes, row, np.nan)
        )
        self._dtype: Int8 = _column(work.dtype, row, ElementType.UNKNOWN)
        recorded: Int64 = _column(work.product, row, 0)
        self.product: ProductSizes = product_sizes(factors, recorded, ask.before, sizes)
        self.before_ns = np.full(len(task), np.nan)
        self._after_ns = np.full(len(task), np.nan)
        self._fill = np.ones(len(task))
        if self._machine is not None:
            self._model(self._machine)

    def new_ns(self, measured_ns: Int64) -> Int64:
        """Times after."""
        floor = SHORTEST_KERNEL_NS if self._machine is None else self._machine.floor_ns
        overhead = np.minimum(measured_ns, floor)
        work = (measured_ns - overhead).astype(float)
        before = np.maximum(self.before_ns - floor, 1.0)
        ratio = np.maximum(self._after_ns - floor, 1.0) / before
        ratio = np.where(np.isnan(ratio), self._size(), ratio)
        ratio = ratio_bound(ratio, self._bound)
        known = ~np.isnan(before)
        fill = np.where(known, self._fill, work / (work + 1e9 * moved.RAMP_S))
        new = overhead + self._with_slack(work, np.where(known, before, 0.0), ratio, fill)
        least = np.minimum(measured_ns, SHORTEST_KERNEL_NS)
        return np.rint(np.maximum(new, least)).astype(np.int64)

    def _with_slack(
        self, work: Float64, model: Float64, ratio: Float64, filled: Float64
    ) -> Float64:
        slack = np.maximum(work - model, 0.0)

        def ended(fill: Float64) -> Float64:
            stays = slack * (1.0 - fill)
            return stays + (work - stays) * ratio

        if self._bound is Bound.NOMINAL:
            return ended(filled)
        choose = np.minimum if self._bound is Bound.LOW else np.maximum
        end: Float64 = choose(ended(filled**2), ended(filled**0.5))
        return end

    def _size(self) -> Float64:
        """Factor of FLOPs or bytes, at the end of the range that is asked."""
        return self._factors.size(self._bound)

    def _moved(self, measured_ns: Int64, size: Float64) -> Float64:
        """Bytes, without those that cannot have been moved in the time: of rows picked."""
        if self._machine is None:
            return size
        rate = max(self._machine.cache_bytes_per_s, self._machine.memory_bytes_per_s)
        return np.where(size <= roofline.NONSENSE * rate * measured_ns / 1e9, size, np.nan)

    def _model(self, machine: Machine) -> None:
        self._model_moved(machine)
        self._model_products(machine)
        self._model_cores(machine)
        self._model_others(machine)

    def _model_moved(self, machine: Machine) -> None:
        rows = np.flatnonzero((self._scaling == Scaling.MOVED) & (self._bytes > 0))
        size = self._bytes[rows]
        self.before_ns[rows] = moved.time_ns(size, machine)
        self._after_ns[rows] = moved.time_ns(size * self._size()[rows], machine)
        self._fill[rows] = size / (size + moved.ramp_bytes(machine))

    def _model_products(self, machine: Machine) -> None:
        known = ~np.isnan(self.product.before).any(axis=1)
        wanted = (self._scaling == Scaling.PRODUCT) & known
        for dtype in np.unique(self._dtype[wanted]):
            rows = np.flatnonzero(wanted & (self._dtype == dtype))
            element = ElementType(int(dtype))
            for times, sizes in (
                (self.before_ns, self.product.before),
                (self._after_ns, self.product.after),
            ):
                times[rows] = products.time_ns(_products(sizes[rows]), machine, element)
            self._fill[rows] = _filled(self.product.before[rows], machine)

    def _model_others(self, machine: Machine) -> None:
        """Products and attention whose sizes are not known, by their FLOPs and bytes."""
        told = (self._flops > 0) | (self._bytes > 0)
        rows = np.flatnonzero(np.isnan(self.before_ns) & told & (self._scaling != Scaling.MOVED))
        kernels = roofline.Kernels(
            kernel_class=self._kernel_class[rows],
            dtype=self._dtype[rows],
            flops=self._flops[rows],
            bytes=self._bytes[rows],
            tiles=np.full(len(rows), -1, np.int64),
        )
        before = roofline.model_ns(kernels, machine)
        self.before_ns[rows] = before
        self._after_ns[rows] = machine.floor_ns + (before - machine.floor_ns) * self._size()[rows]
        work = before - machine.floor_ns
        self._fill[rows] = work / (work + 1e9 * moved.RAMP_S)

    def _model_cores(self, machine: Machine) -> None:
        before, after = _Core.of(self._ask.before), _Core.of(self._ask.target)
        if before is None or after is None:
            return
        for index, where in enumerate(self._factors.where):
            if self._factors.factors[index].scaling is Scaling.CORE:
                rows = self._factors.row == index
                self.before_ns[rows] = before.time_ns(where, machine)
                self._after_ns[rows] = after.time_ns(where, machine)


def _column(column: NDArray[Any], row: Int64, unknown: float) -> NDArray[Any]:
    """Rows of a column, and what stands where there is none."""
    if not len(column):
        return np.full((len(row), *column.shape[1:]), unknown, column.dtype)
    found = column[row].copy()
    found[row < 0] = unknown
    return found


def _products(sizes: Float64) -> products.Products:
    return products.Products(
        m=sizes[:, M],
        n=sizes[:, N],
        k=sizes[:, K],
        batch=sizes[:, BATCH],
        bytes=np.full(len(sizes), np.nan),
    )


def _filled(sizes: Float64, machine: Machine) -> Float64:
    """Part of the device that a product's tiles fill."""
    tiles = np.ceil(sizes[:, M] / TILE) * np.ceil(sizes[:, N] / TILE) * sizes[:, BATCH]
    return np.minimum(tiles / (machine.sms or products.USUAL_SMS), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Core:
    """Attention of one layer and micro-batch on a rank."""

    dims: Dims
    causal: bool
    rounds: int
    """Kernels, one per block of keys that comes round a ring."""
    gathered: int
    """Context ranks whose queries a rank has while it has a part of the heads."""

    @classmethod
    def of(cls, shape: RunShape) -> "_Core | None":
        """None where model or batch are not known."""
        dims, degrees = known_dims(shape), shape.degrees
        if dims is None:
            return None
        ring = degrees.cp_kind is ContextKind.RING
        return cls(
            dims=dims,
            causal=shape.model.causal,
            rounds=degrees.cp if ring else 1,
            gathered=1 if ring else degrees.cp,
        )

    def time_ns(self, where: Where, machine: Machine) -> float:
        """Of all rounds: the first with a rank's own keys under the mask, whole blocks after it."""
        dims, one = self.dims, np.ones(self.rounds)
        width = (dims.head_dim + dims.v_head_dim) / 2
        batch = dims.samples * dims.heads
        flops = 4 * batch * dims.queries * dims.keys * width * (0.5 if self.causal else 1.0)
        core = attention.Cores(
            queries=one * dims.queries * self.gathered,
            keys=one * dims.keys / self.rounds,
            width=one * width,
            batch=one * batch / self.gathered,
            flops=one * flops / self.rounds,
            bytes=np.zeros(self.rounds),
            causal=self.causal & (np.arange(self.rounds) == 0),
            backward=np.full(self.rounds, where.direction in BACKWARDS),
        )
        return float(attention.time_ns(core, machine).sum())
