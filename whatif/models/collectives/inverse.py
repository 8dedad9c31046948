"""From times back to sizes: how many bytes a call of the recorded links must have had."""

import numpy as np

from whatif.models.collectives.algorithms import times_ns
from whatif.models.collectives.calls import Float64, distinct
from whatif.models.collectives.links import Links

STEPS = 1_025
"""Sizes at which each shape of call is timed; between them it is straight on log scales, which is
within 0.01 %."""
MOST_BYTES = 1e14


def sizes_taking(links: Links, wanted_ns: Float64) -> Float64:
    """Size of each call that takes the wanted time; 0 where its latency alone takes as long."""
    first, place = distinct(links.shape_columns())
    grid = np.exp(np.linspace(0.0, np.log(MOST_BYTES), STEPS))
    repeated = links.rows(np.repeat(first, STEPS))
    times = times_ns(repeated, np.tile(grid, len(first))).reshape(len(first), STEPS)
    found = np.zeros_like(wanted_ns)
    for number, curve in enumerate(times):
        mine = place == number
        if curve[0] <= 0:
            continue
        wanted = np.log(np.maximum(wanted_ns[mine], 1.0))
        found[mine] = np.exp(np.interp(wanted, np.log(curve), np.log(grid)))
    return np.where(times_ns(links, np.zeros_like(found)) >= wanted_ns, 0.0, found)
