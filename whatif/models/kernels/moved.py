"""Time of a kernel that is bound by memory: norms, sums, activations, losses, optimizers.

Small tensors do not fill the memory's pipeline: up to `RAMP_S` of its rate is lost. The median
elementwise kernel on A100 reaches 0.59 of the peak with 10 to 50 MB and 0.87 above 1 GB, on V100
0.67 and 0.91 (sitar-lab/NeuSight).
"""

import numpy as np
from numpy.typing import NDArray

from whatif.models.kernels.machine import Machine
from whatif.models.kernels.shares import Work as Share

Float64 = NDArray[np.float64]
RAMP_S = 4e-6


def time_ns(moved_bytes: Float64 | float, machine: Machine) -> Float64:
    """Time of each of several kernels, ns.

    Args:
        moved_bytes: read and written.
        machine: that it runs on.
    """
    size = np.asarray(moved_bytes, float)
    ramp = ramp_bytes(machine)
    lost = ramp * size / (size + ramp)
    time: Float64 = machine.floor_ns + 1e9 * (size + lost) / _rate(machine)
    return time


def ramp_bytes(machine: Machine) -> float:
    """What moves at half the rate."""
    return RAMP_S * _rate(machine)


def _rate(machine: Machine) -> float:
    return machine.memory_bytes_per_s * machine.shares.of(machine.architecture, Share.MEMORY).value
