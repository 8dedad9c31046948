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
PARTLY = 0.15
"""The same for hops between nodes, once the steps inside are settled."""
NUDGE = 1.25
STEP_LIMITS = (0.2, 20.0)
STEP_LIMITS_BETWEEN = (0.6, 1.4)
"""Steps inside a node differ little between machines of one generation, hops between nodes much:
what a call between nodes takes beyond this is the hops'."""
RATE_LIMITS = (0.4, 1.2)


def tuning_of(curves: Curves, model: Callable[[Tuning, Float64], Float64]) -> Tuning:
    """Corrections of the constants, per row; 1 where no curve tells.

    Args:
        curves: what was measured, by rows.
        model: times of the rows' calls for some tuning and sizes in bytes.
    """
    smallest, largest, least_ns, most_ns = curves.ends()
    both = np.clip(
        _factor(model, Tuning(), Tuning(step=NUDGE, hop=NUDGE), smallest, least_ns), *STEP_LIMITS
    )
    leaves = _share(model, Tuning(), Tuning(hop=NUDGE), smallest) > 0
    step = np.where(leaves, np.clip(both, *STEP_LIMITS_BETWEEN), both)
    tuning = Tuning(step=step, hop=both)
    rest = _factor(model, tuning, Tuning(hop=NUDGE), smallest, least_ns, mostly=PARTLY)
    tuning = tuning.times(Tuning(hop=np.clip(rest, *STEP_LIMITS)))
    longer = _factor(model, tuning, Tuning(net_rate=1.0 / NUDGE), largest, most_ns)
    tuning = tuning.times(Tuning(net_rate=np.clip(1.0 / longer, *RATE_LIMITS)))
    longer = _factor(model, tuning, Tuning(rate=1.0 / NUDGE), largest, most_ns)
    return tuning.times(Tuning(rate=np.clip(1.0 / longer, *RATE_LIMITS)))


def _share(
    model: Callable[[Tuning, Float64], Float64],
    tuning: Tuning,
    slower: Tuning,
    size_bytes: Float64,
) -> Float64:
    """Part of the time that grows with a cost; `slower` has NUDGE times that cost."""
    size = np.nan_to_num(size_bytes, nan=1.0)
    now = np.maximum(model(tuning, size), 1.0)
    share: Float64 = (model(tuning.times(slower), size) / now - 1.0) / (NUDGE - 1.0)
    return share


def _factor(
    model: Callable[[Tuning, Float64], Float64],
    tuning: Tuning,
    slower: Tuning,
    size_bytes: Float64,
    measured_ns: Float64,
    *,
    mostly: float = MOSTLY,
) -> Float64:
    """How much more of a cost explains the measured time; 1 where it is a small part of it."""
    share = _share(model, tuning, slower, size_bytes)
    tells = (share > mostly) & np.isfinite(measured_ns)
    now = np.maximum(model(tuning, np.nan_to_num(size_bytes, nan=1.0)), 1.0)
    excess = np.nan_to_num(measured_ns) / now - 1.0
    factor = 1.0 + excess / np.where(tells, share, 1.0)
    return np.where(tells, np.maximum(factor, 1e-3), 1.0)
