"""Time of a matrix product by its sizes: tiles, waves, and the memory roof.

A product of m x k and k x n is cut into tiles; each multiprocessor works on one tile at a time, so
that a step of the device is a wave of as many tiles as it has multiprocessors (arXiv:2401.14489;
NVIDIA, "Matrix multiplication background user's guide"). A tile costs its FLOPs at the rate that
the architecture reaches (`shares.yaml`), with `RAMP` more of its inner loop for filling the
pipeline. Libraries choose the tile, and cut the inner loop (`SPLITS`), for the shortest time: so
does the model. Libraries of today hand out parts of tiles in the last wave (stream-k): a part
`WAVE_WEIGHT` of its loss stays. Nothing is faster than its bytes at the memory's rate.

Tiles and ramp were set on the 183 products of an A100 in a public table and judged on the 514 of a
B200 (MooreThreads/SimuMax, configs/system): ratios of two products differ from measured ones by 4%
and 12% at the median, 14% and 48% at the ninth tenth; FLOPs alone give 6% and 12%, 26% and 43%.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ingest.vocab import ELEMENT_BYTES, ElementType, KernelClass
from whatif.models.kernels.machine import Machine
from whatif.models.kernels.roofline import reached_flops_per_s
from whatif.models.kernels.shares import Work as Share

Float64 = NDArray[np.float64]

TILES = ((256, 128), (128, 256), (128, 128), (64, 128), (128, 64), (64, 256), (256, 64), (64, 64))
REACHED: Mapping[int, float] = {32_768: 1.0, 16_384: 0.93, 8_192: 0.8, 4_096: 0.6}
"""Rate of a tile of so many outputs, of the largest's: smaller ones load more per product."""
SPLITS = (1, 2, 4)
RAMP = 128.0
"""Of the inner dimension."""
WAVE_WEIGHT = 0.5
USUAL_SMS = 108
SINGLE_BYTES = 4.0
"""Partial sums of a cut inner loop are kept in fp32, written and read."""


@dataclass(frozen=True, kw_only=True)
class Products:
    """Columns with one row per kernel; of grouped products `m` is the rows of one."""

    m: Float64
    """Rows of the output."""
    n: Float64
    """Columns of the output."""
    k: Float64
    """Summed dimension."""
    batch: Float64
    """Products alike that one kernel computes."""
    bytes: Float64
    """Read and written by all of them; NaN: operands once, and an output of 16 bits or wider."""


def one(m: float, n: float, k: float, batch: float = 1.0) -> Products:
    """A single product."""
    m_, n_, k_, batch_ = (np.array([float(each)]) for each in (m, n, k, batch))
    return Products(m=m_, n=n_, k=k_, batch=batch_, bytes=np.array([math.nan]))


def time_ns(products: Products, machine: Machine, dtype: ElementType = ElementType.BF16) -> Float64:
    """Time of each product, ns.

    Args:
        products: their sizes; those below 1 count as 1.
        machine: that they run on.
        dtype: of the operands.
    """
    m, n, k, batch = (
        np.maximum(each, 1.0) for each in (products.m, products.n, products.k, products.batch)
    )
    memory = _memory_bytes_per_s(machine)
    rate = _reached(machine, dtype)
    size = ELEMENT_BYTES.get(dtype, 2.0)
    usual = batch * ((m * k + k * n) * size + m * n * max(size, 2.0))
    moved = np.where(np.isnan(products.bytes), usual, products.bytes)
    compute = np.full(len(m), np.inf)
    for tile in TILES:
        for split in SPLITS:
            made = _cut_s(tile, split, (m, n, k, batch), machine.sms or USUAL_SMS, rate)
            if split > 1:
                made = made + 2 * SINGLE_BYTES * split * m * n * batch / memory
            compute = np.minimum(compute, made)
    time: Float64 = machine.floor_ns + 1e9 * np.maximum(compute, moved / memory)
    return time


def _cut_s(
    tile: tuple[int, int],
    split: int,
    sizes: tuple[Float64, Float64, Float64, Float64],
    sms: int,
    rate: float,
) -> Float64:
    """Time of the arithmetic when cut that way, s."""
    m, n, k, batch = sizes
    rows, columns = tile
    tiles = np.ceil(m / rows) * np.ceil(n / columns) * split * batch
    exact = np.maximum(tiles / sms, 1.0)
    waves = WAVE_WEIGHT * np.ceil(exact) + (1 - WAVE_WEIGHT) * exact
    each = 2 * rows * columns * (k / split + RAMP)
    made: Float64 = waves * each / (rate * REACHED[rows * columns] / sms)
    return made


def _reached(machine: Machine, dtype: ElementType) -> float:
    one = np.array([KernelClass.GEMM], np.int8)
    return float(reached_flops_per_s(machine, one, np.array([dtype], np.int8))[0])


def _memory_bytes_per_s(machine: Machine) -> float:
    return machine.memory_bytes_per_s * machine.shares.of(machine.architecture, Share.MEMORY).value
