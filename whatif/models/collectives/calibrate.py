"""What the curves of a trace say about the machine that recorded it.

The time of its smallest calls is that of the steps, the time of its largest ones that of the bytes:
they scale the latencies and say which part of their rate the links reach. Calls between nodes tell
of the NICs where those bind, else of the scale-up link.
"""

from collections.abc import Callable

import numpy as np

from whatif.models.collectives.calls import Float64
from whatif.models.collectives.curves import Curves
from whatif.models.collectives.links import Tuning

MOSTLY = 0.7
"""Part of the time that must depend on a number before the time may tell it."""
NUDGE = 1.25
STEP_LIMITS = (0.3, 8.0)
RATE_LIMITS = (0.4, 1.2)


def tuning_of(curves: Curves, model: Callable[[Tuning, Float64], Float64]) -> Tuning:
    """Corrections of the constants, per row; 1 where no curve tells.

    Args:
        curves: what was measured, by rows.
        model: times of the rows' calls for some tuning and sizes in bytes.
    """
    smallest, largest, least_ns, most_ns = curves.ends()
    slower = Tuning(step=NUDGE, hop=NUDGE)
    factor = np.clip(_factor(model, Tuning(), slower, smallest, least_ns), *STEP_LIMITS)
    tuning = Tuning(step=factor, hop=factor)
    for slower in (Tuning(net_rate=1.0 / NUDGE), Tuning(rate=1.0 / NUDGE)):
        factor = 1.0 / _factor(model, tuning, slower, largest, most_ns)
        factor = np.clip(factor, *RATE_LIMITS)
        one = Tuning(net_rate=factor) if slower.rate == 1.0 else Tuning(rate=factor)
        tuning = tuning.times(one)
    return tuning


def _factor(
    model: Callable[[Tuning, Float64], Float64],
    tuning: Tuning,
    slower: Tuning,
    size_bytes: Float64,
    measured_ns: Float64,
) -> Float64:
    """How much more of a cost explains the measured time; 1 where it is not most of the time.

    `slower` has NUDGE times that cost.
    """
    size = np.nan_to_num(size_bytes, nan=1.0)
    now = np.maximum(model(tuning, size), 1.0)
    share = (model(tuning.times(slower), size) / now - 1.0) / (NUDGE - 1.0)
    tells = (share > MOSTLY) & np.isfinite(measured_ns)
    excess = np.nan_to_num(measured_ns) / now - 1.0
    factor = 1.0 + excess / np.where(tells, share, 1.0)
    return np.where(tells, np.maximum(factor, 1e-3), 1.0)
