"""Time of attention in one kernel that writes no scores (arXiv:2205.14135, 2307.08691).

Each block of `BLOCK` queries of one head meets its keys one after another: under a causal mask
half of them and half a block more. Filling the pipeline costs a block the time of `RAMP_KEYS` keys.
Blocks go to multiprocessors as these get free; the device ends with its last block, which under a
mask may be the longest: half of that is added. Set on FlashAttention 2 on H100 (arXiv:2407.08608,
figures) and on kernels of 4 to 128 heads on A100 (MooreThreads/SimuMax).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ingest.vocab import ElementType, KernelClass
from whatif.models.kernels.machine import Machine
from whatif.models.kernels.products import USUAL_SMS
from whatif.models.kernels.roofline import reached_flops_per_s
from whatif.models.kernels.shares import Work as Share

Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

BLOCK = 128.0
RAMP_KEYS = 100.0
"""FlashAttention 2 without mask reaches 309 TFLOP/s at 512 keys, 370 at 16,384."""
FULL_WIDTH = 128.0
WIDTH_POWER = 0.3
"""Heads of 64 reach 0.72 to 0.89 of what heads of 128 do (FlashAttention 2 and 3, cuDNN)."""
FORWARD_SHARE, BACKWARD_SHARE = 1.12, 1.0
"""Of the share of the peak that `shares.yaml` has of both passes; measured 0.75 to 0.85 of one
another on A100 and B200."""


@dataclass(frozen=True, kw_only=True)
class Cores:
    """Columns with one row per kernel."""

    queries: Float64
    """Tokens of a sample on this rank."""
    keys: Float64
    """Tokens of a sample that they meet."""
    width: Float64
    """Of a head."""
    batch: Float64
    """Samples x heads."""
    flops: Float64
    """That the mask leaves."""
    bytes: Float64
    """Read and written."""
    causal: Bool
    """Whether a mask drops later keys."""
    backward: Bool


def time_ns(cores: Cores, machine: Machine, dtype: ElementType = ElementType.BF16) -> Float64:
    """Time of each kernel, ns.

    Args:
        cores: their sizes; those below 1 count as 1.
        machine: that they run on.
        dtype: of the operands.
    """
    queries, keys, width, batch = (
        np.maximum(each, 1.0) for each in (cores.queries, cores.keys, cores.width, cores.batch)
    )
    met = np.where(cores.causal, keys / 2, keys)
    waste = (met + np.where(cores.causal, BLOCK / 2, 0.0) + RAMP_KEYS) / met
    mean = np.ceil(queries / BLOCK) * batch / (machine.sms or USUAL_SMS)
    tail = np.maximum(mean + np.where(cores.causal, 1.0, 0.5), 1.0) / mean
    narrow = np.minimum(width / FULL_WIDTH, 1.0) ** WIDTH_POWER
    share = np.where(cores.backward, BACKWARD_SHARE, FORWARD_SHARE) * narrow
    compute = cores.flops * waste * tail / (_reached(machine, dtype) * share)
    memory = machine.memory_bytes_per_s * _memory_share(machine)
    time: Float64 = machine.floor_ns + 1e9 * np.maximum(compute, cores.bytes / memory)
    return time


def _reached(machine: Machine, dtype: ElementType) -> float:
    one = np.array([KernelClass.ATTENTION], np.int8)
    return float(reached_flops_per_s(machine, one, np.array([dtype], np.int8))[0])


def _memory_share(machine: Machine) -> float:
    return machine.shares.of(machine.architecture, Share.MEMORY).value
