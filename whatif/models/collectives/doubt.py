"""How far the model may be wrong, by how far the new situation is from the measured one.

Nothing is in doubt where nothing changes. The widths are such that about nine of ten measured
truths lie inside, over pairs of public systems (`tests/bench/accuracy_collectives.py`).
"""

from dataclasses import dataclass

import numpy as np

from whatif.models.bound import Bound
from whatif.models.collectives.calls import Bool, Calls, Float64
from whatif.models.collectives.links import Tuning
from whatif.models.fabric import Fabric, with_stand_ins

SPLITS = (0.5, 2.0)
"""Times all latencies, on both sides: how the measured time splits into steps and bytes."""

ABSOLUTE = {
    Bound.NOMINAL: Tuning(),
    Bound.LOW: Tuning(step=0.5, hop=0.4, rate=1.15, net_rate=1.08),
    Bound.HIGH: Tuning(step=2.0, hop=4.0, rate=0.75, net_rate=0.65),
}
"""Where no measured time anchors the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Factors of 1 or more, per call: the new side may be better or worse by as much."""

    step: Float64
    hop: Float64
    rate: Float64
    net_rate: Float64

    def tuning(self, bound: Bound) -> Tuning:
        """The new side at its best (LOW) or worst (HIGH)."""
        power = -1.0 if bound is Bound.LOW else 1.0
        return Tuning(
            step=self.step**power,
            hop=self.hop**power,
            rate=self.rate**-power,
            net_rate=self.net_rate**-power,
        )


def doubt_of(before: Calls, base: Fabric, after: Calls, new: Fabric) -> Doubt:
    """From how much differs; each part is the logarithm of a factor."""
    other_chip = float(base.architecture != new.architecture)
    other_way = float(
        (base.algorithm, base.in_network, base.scale_up_shape)
        != (new.algorithm, new.in_network, new.scale_up_shape)
    )
    spread = _distance(before.nodes, after.nodes)
    members = _distance(before.members, after.members)
    in_node = _distance(before.largest_node, after.largest_node)
    leaves: Bool = (before.nodes <= 1) & (after.nodes > 1)
    past, future = with_stand_ins(base), with_stand_ins(new)
    up = _gap(past.scale_up_bytes_per_s, future.scale_up_bytes_per_s)
    nic = _gap(past.nic_bytes_per_s, future.nic_bytes_per_s)
    return Doubt(
        step=np.exp(0.35 * other_chip + 0.1 * members),
        hop=np.exp(1.1 * leaves + 0.15 * spread),
        rate=np.exp(0.05 * other_chip + 0.05 * up + 0.06 * other_way + 0.06 * in_node),
        net_rate=np.exp(0.2 * leaves + 0.05 * nic + 0.02 * spread),
    )


def _distance(before: np.ndarray, after: np.ndarray) -> Float64:
    logs: Float64 = np.abs(np.log(np.maximum(after, 1) / np.maximum(before, 1)))
    return logs


def _gap(before: float | None, after: float | None) -> float:
    return abs(float(np.log((after or 1.0) / (before or 1.0))))
