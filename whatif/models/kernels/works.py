"""Time of rows of work (`models.transformer`) on an accelerator, by the model of their kind.

For work that nobody recorded; of recorded work only ratios of these times are taken.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ingest.vocab import ElementType
from whatif.models.bound import Bound
from whatif.models.kernels import attention, moved, products
from whatif.models.kernels.machine import Machine
from whatif.models.kernels.shares import Work as Share
from whatif.models.places import BACKWARDS
from whatif.models.transformer.work import Work, WorkKind

Float64 = NDArray[np.float64]
KERNEL_SPREAD = 0.15
"""Standard deviation of the logarithm of a made time, beside what readings of shares differ by:
products of one device differ that much from the model (see `products.py`)."""
RATIO_SPREAD = 0.25
"""The same of a ratio of two very different sizes."""
_SHARES = {
    WorkKind.PRODUCT: Share.MATMUL,
    WorkKind.ATTENTION: Share.ATTENTION,
    WorkKind.MOVED: Share.MEMORY,
}


def element_type(name: str) -> ElementType:
    """Of `Elements.product`; bf16 where it names none."""
    return ElementType.__members__.get(name.upper(), ElementType.BF16)


def times_ns(
    works: Sequence[Work],
    machine: Machine,
    dtype: ElementType = ElementType.BF16,
    bound: Bound = Bound.NOMINAL,
) -> Float64:
    """Time of each row, all its kernels one after another, ns.

    Args:
        works: rows of one or several parts.
        machine: that they run on.
        dtype: of products and attention.
        bound: which end of the range of such made times.
    """
    time = np.zeros(len(works))
    for kind, model in _MODELS.items():
        rows = [row for row, work in enumerate(works) if work.kind is kind]
        if rows:
            made = model([works[row] for row in rows], machine, dtype)
            time[rows] = made * _end(kind, machine, bound)
    return time


def ratio_bound(ratio: Float64, bound: Bound) -> Float64:
    """The end of the range of a ratio of two modelled times; of 1 there is no doubt."""
    doubt = RATIO_SPREAD * (1.0 - np.exp(-np.abs(np.log(np.maximum(ratio, 1e-12)))))
    sign = {Bound.NOMINAL: 0.0, Bound.LOW: -1.0, Bound.HIGH: 1.0}[bound]
    ended: Float64 = ratio * np.exp(sign * doubt)
    return ended


def _end(kind: WorkKind, machine: Machine, bound: Bound) -> float:
    share = machine.shares.of(machine.architecture, _SHARES[kind])
    sign = {Bound.NOMINAL: 0.0, Bound.LOW: -1.0, Bound.HIGH: 1.0}[bound]
    return math.exp(sign * math.hypot(share.spread, KERNEL_SPREAD))


def _column(works: Sequence[Work], name: str) -> Float64:
    return np.array([getattr(work, name) for work in works], float)


def _products_ns(works: Sequence[Work], machine: Machine, dtype: ElementType) -> Float64:
    m, n, k, batch, size, count = (
        _column(works, name) for name in ("m", "n", "k", "batch", "bytes", "count")
    )
    rows = products.Products(m=m, n=n, k=k, batch=batch, bytes=size / count)
    return count * products.time_ns(rows, machine, dtype)


def _attention_ns(works: Sequence[Work], machine: Machine, dtype: ElementType) -> Float64:
    m, n, k, batch, flops, size, count = (
        _column(works, name) for name in ("m", "n", "k", "batch", "flops", "bytes", "count")
    )
    rows = attention.Cores(
        queries=m,
        keys=n,
        width=k,
        batch=batch,
        flops=flops / count,
        bytes=size / count,
        causal=np.array([work.causal for work in works]),
        backward=np.array([work.direction in BACKWARDS for work in works]),
    )
    return count * attention.time_ns(rows, machine, dtype)


def _moved_ns(works: Sequence[Work], machine: Machine, _: ElementType) -> Float64:
    size, count = _column(works, "bytes"), _column(works, "count")
    return count * moved.time_ns(size / count, machine)


_MODELS: dict[WorkKind, Callable[[Sequence[Work], Machine, ElementType], Float64]] = {
    WorkKind.PRODUCT: _products_ns,
    WorkKind.ATTENTION: _attention_ns,
    WorkKind.MOVED: _moved_ns,
}
