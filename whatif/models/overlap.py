"""How much slower kernels are beside communication, read from the run that was recorded.

The same kernel (name, grid, block, input shapes) runs alone at one place of a step and beside a
collective at another. While a collective moves data it takes memory bandwidth and multiprocessors;
while it only waits for its other members it takes multiprocessors. So there are two factors.

Sources: kernels beside communication are 18.9 % slower on average over A100, H100, MI250 and MI210,
40 % at most (arXiv:2507.03114); multiplications whose last wave no longer fits lose up to 40 %
(NVIDIA forum, 132 blocks beside an all-gather that holds 24 multiprocessors).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

WAITING, MOVING = 0, 1
"""What a collective beside a kernel does: wait for its members, or move data."""
STATES = 2

SHORTEST_NS = 5_000
"""Shorter kernels are told by the clock and by what they cost to start (older profilers round to
1 us), not by what runs beside them."""
ALONE_FRAC = 0.02
"""A kernel with less of its time beside communication ran alone."""
BESIDE_FRAC = 0.5
"""A kernel with at least this part of its time beside communication tells a factor; from a
smaller part, noise of the whole kernel would be blown up."""
LEAST_PAIRS = 8
"""Kernels beside communication that must tell the factor of a class."""
LEAST_OF_KERNEL = 4
"""So many of one kernel tell its own factor; else that of its class stands."""
SIGNIFICANT_Z = 2.6
"""Sign test, one in two hundred by chance: as many factors must lie above 1."""
LEAST_FACTOR = 1.02
"""Slower by less is not told apart from clocks that change with the load."""
MOST_FACTOR = 5.0
"""A kernel that seems to stand nearly still waited for something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Kernels of a recording, one row each."""

    kernel: Int64
    """Number shared by equal kernels; dense, from 0."""
    kernel_class: Int64
    dur_ns: Int64
    beside_frac: Float64
    """Part of the duration beside communication, shape (kernels, STATES)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFactor:
    """What one class of kernels shows."""

    kernel_class: int
    state: int
    factor: float
    pairs: int
    """Kernels beside communication whose time alone is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowdown:
    """Factors, at least 1: a kernel advances by 1/factor beside communication."""

    of_kernel: Float64
    """Shape (distinct kernels, STATES)."""
    classes: tuple[ClassFactor, ...]
    """The classes that are significantly slower."""

    @property
    def any(self) -> bool:
        """Some kernel is slower beside communication."""
        return bool((self.of_kernel > 1).any())


def fit(observed: Observed) -> Slowdown:
    """The factors that a recording shows; 1 where it shows nothing significant.

    Of each state the class factor is the median over the kernels beside it, each weighed with its
    time alone, as the long ones make the step; a kernel with LEAST_OF_KERNEL samples of its own
    takes the median of these. A class with fewer than LEAST_PAIRS, or whose factors lie above 1 no
    more often than chance has it, is not slower.
    """
    n_kernels = int(observed.kernel.max()) + 1 if len(observed.kernel) else 0
    alone_ns = _alone_ns(observed, n_kernels)
    of_kernel = np.ones((n_kernels, STATES))
    classes: list[ClassFactor] = []
    class_of = np.zeros(n_kernels, np.int64)
    class_of[observed.kernel] = observed.kernel_class
    for state in (WAITING, MOVING):
        row, factor = _factors(observed, alone_ns, of_kernel, state)
        for number in np.unique(observed.kernel_class[row]).tolist():
            mine = observed.kernel_class[row] == number
            kernel, told = observed.kernel[row][mine], factor[mine]
            typical = weighted_median(told, alone_ns[kernel])
            if not _significant(told, typical):
                continue
            classes.append(
                ClassFactor(kernel_class=number, state=state, factor=typical, pairs=len(told))
            )
            of_kernel[class_of == number, state] = typical
            _set_own(of_kernel[:, state], kernel, told)
    return Slowdown(of_kernel=of_kernel, classes=tuple(classes))


def weighted_median(values: Float64, weights: Float64) -> float:
    """The least value with at least half of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    summed = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(summed, summed[-1] / 2)]])


def _alone_ns(observed: Observed, n_kernels: int) -> Float64:
    """Median duration of each kernel where it ran alone; NaN where it never did."""
    alone = observed.beside_frac.sum(axis=1) <= ALONE_FRAC
    result = np.full(n_kernels, np.nan)
    number, _, median_ns = _medians(
        observed.kernel[alone], observed.dur_ns[alone].astype(np.float64)
    )
    result[number] = median_ns
    return result


def _medians(kernel: Int64, value: Float64) -> tuple[Int64, Int64, Float64]:
    """Kernels that occur, how often, and the median value of each."""
    order = np.lexsort((value, kernel))
    number, first, count = np.unique(kernel[order], return_index=True, return_counts=True)
    low, high = order[first + (count - 1) // 2], order[first + count // 2]
    return number, count, (value[low] + value[high]) / 2


def _factors(
    observed: Observed, alone_ns: Float64, of_kernel: Float64, state: int
) -> tuple[Int64, Float64]:
    """Rows that tell the factor of a state, and the factor that each tells.

    alone = dur x (1 - all parts beside + sum of part / factor), solved for this state's factor.
    Waiting is told by kernels beside no transfer, moving with the factor of waiting known.
    """
    share = observed.beside_frac
    expected_ns = alone_ns[observed.kernel]
    tells = (share[:, state] >= BESIDE_FRAC) & (expected_ns >= SHORTEST_NS)
    if state == WAITING:
        tells &= share[:, MOVING] <= ALONE_FRAC
    row = np.flatnonzero(tells)
    other = 1 - state
    known = (
        1.0 - share[row].sum(axis=1) + share[row, other] / of_kernel[observed.kernel[row], other]
    )
    left = expected_ns[row] / observed.dur_ns[row] - known
    factor = share[row, state] / np.maximum(left, share[row, state] / MOST_FACTOR)
    return row, factor


def _significant(factor: Float64, typical: float) -> bool:
    above, below = int((factor > 1).sum()), int((factor < 1).sum())
    decided = above + below
    if len(factor) < LEAST_PAIRS or typical < LEAST_FACTOR:
        return False
    return bool(above - below >= SIGNIFICANT_Z * np.sqrt(decided))


def _set_own(of_kernel: Float64, kernel: Int64, factor: Float64) -> None:
    """Give kernels with enough samples the median of their own."""
    number, count, median = _medians(kernel, factor)
    enough = count >= LEAST_OF_KERNEL
    of_kernel[number[enough]] = np.maximum(median[enough], 1.0)
