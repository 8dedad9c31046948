"""How far the model may be wrong, by how far the new situation is from the measured one.

Nothing is in doubt where nothing changes. The widths are such that about nine of ten measured
truths lie inside, over pairs of public systems (`tests/bench/accuracy_collectives.py`).
"""

from dataclasses import dataclass

import numpy as np

from whatif.models.bound import Bound
from whatif.models.collectives.calls import Bool, Calls, Float64
from whatif.models.collectives.constants import OWN_HOP_NS, SHIPPED
from whatif.models.collectives.links import Tuning
from whatif.models.fabric import Fabric, with_stand_ins

SPLIT = 2.0
SPLIT_ON_CURVE = 1.25
"""Times all latencies, on both sides, or one over it: how the measured time splits into steps and
bytes, less in doubt where a curve tells."""

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
    fill: Float64

    def tuning(self, bound: Bound, width: float) -> Tuning:
        """The new side at its best (LOW) or worst (HIGH), logarithms times `width`."""
        power = -width if bound is Bound.LOW else width
        return Tuning(
            step=self.step**power,
            hop=self.hop**power,
            rate=self.rate**-power,
            net_rate=self.net_rate**-power,
            fill=self.fill**power,
        )


def doubt_of(before: Calls, base: Fabric, after: Calls, new: Fabric) -> Doubt:
    """From how much differs; each part is the logarithm of a factor."""
    other_chip = float(base.architecture != new.architecture)
    other_way = float((base.algorithm, base.in_network) != (new.algorithm, new.in_network))
    spread = np.minimum(_distance(before.nodes, after.nodes), FAR)
    members = np.minimum(_distance(before.members, after.members), FAR)
    in_node = np.minimum(_distance(before.largest_node, after.largest_node), FAR)
    leaves: Bool = (before.nodes <= 1) & (after.nodes > 1)
    blind = 1.1 if new.net_latency_ns is None else 0.3
    several = after.nodes > 1
    past, future = with_stand_ins(base), with_stand_ins(new)
    up = _gap(past.scale_up_bytes_per_s, future.scale_up_bytes_per_s)
    nic = _gap(past.nic_bytes_per_s, future.nic_bytes_per_s) * several
    wan = _gap(past.wan_bytes_per_s, future.wan_bytes_per_s) * (after.sites > 1)
    wire = _gap(_wire_ns(base), _wire_ns(new)) * (before.nodes > 1)
    return Doubt(
        step=np.exp(0.25 * other_chip + 0.35 * members),
        hop=np.exp(blind * leaves + 0.4 * spread + 0.5 * other_chip * several + 0.2 * wire),
        rate=np.exp(0.06 * other_chip + 0.04 * up + 0.08 * other_way + 0.2 * in_node),
        net_rate=np.exp(0.1 * leaves + 0.08 * (nic + wan) + 0.11 * spread),
        fill=np.exp(0.42 * other_chip + 0.1 * up + 0.6 * in_node + 0.2 * leaves + 0.4 * spread),
    )


USUAL_WIRE_NS = SHIPPED.hop_ns - OWN_HOP_NS
FAR = 1.0
"""Logarithm of a ratio of members beyond which no more doubt is added."""


def _distance(before: np.ndarray, after: np.ndarray) -> Float64:
    logs: Float64 = np.abs(np.log(np.maximum(after, 1) / np.maximum(before, 1)))
    return logs


def _wire_ns(fabric: Fabric) -> float:
    return USUAL_WIRE_NS if fabric.net_latency_ns is None else max(fabric.net_latency_ns, 1.0)


def _gap(before: float | None, after: float | None) -> float:
    return abs(float(np.log((after or 1.0) / (before or 1.0))))
