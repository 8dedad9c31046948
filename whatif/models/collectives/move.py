"""From one situation to another: what the model says, along what the trace measured."""

from dataclasses import dataclass, replace

import numpy as np

from ingest.vocab import CollectiveKind
from whatif.models.bound import Bound
from whatif.models.collectives.algorithms import times_ns, wire_floor_ns
from whatif.models.collectives.calibrate import tuning_of
from whatif.models.collectives.calls import Bool, Calls, Float64, Int64, recorded_bytes, take
from whatif.models.collectives.constants import SHIPPED, VENDOR, Constants
from whatif.models.collectives.curves import Curves
from whatif.models.collectives.doubt import SPLIT, SPLIT_FILL, SPLIT_ON_CURVE, doubt_of
from whatif.models.collectives.inverse import sizes_taking
from whatif.models.collectives.links import PAIR, Links, Tuning, hop_ns, links_of
from whatif.models.fabric import Fabric, Shape, with_stand_ins

MOST_LATENCY_FRAC = 0.5
"""Of the time of a call whose size or rate is not known, the most that a small message's latency
takes: where the model's takes more of what was measured, it is that which is too long, not the
bytes that are free."""
LEAST_LATENCY_FRAC = 0.01
"""The end of the range at which such a call is all bytes."""
SLOWEST = 200.0
"""No link is so many times slower than the one that stands in for it (`STAND_IN`): a few bytes of a
known size take no time on a link of unknown rate."""
FASTEST = 8.0
"""No link is so many times faster: 1.6 Tbps a GPU between nodes."""
MUCH = 0.1
"""Logarithm of a change by the formula from which on the curve alone decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Calls and what carries them."""

    calls: Calls
    fabric: Fabric


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """From one situation to another; the rows are those of both."""

    measured_ns: Float64
    before: Situation
    after: Situation
    curves: Curves | None = None
    constants: Constants = SHIPPED

    def rows(self, numbers: Int64) -> "Move":
        """Some rows, in the order given."""
        return replace(
            self,
            measured_ns=self.measured_ns[numbers],
            before=replace(self.before, calls=take(self.before.calls, numbers)),
            after=replace(self.after, calls=take(self.after.calls, numbers)),
            curves=self.curves.rows(numbers) if self.curves is not None else None,
        )

    def ratio(self, bound: Bound = Bound.NOMINAL) -> Float64:
        """New time over measured time; `floors_ns` is not heeded yet."""
        both = self._calibrated()
        found = self._ratio(both, both)
        if bound is Bound.NOMINAL:
            return found
        doubt = doubt_of(self.before.calls, self.before.fabric, self.after.calls, self.after.fabric)
        end = both.times(doubt.tuning(bound, self.constants.doubt))
        known = np.zeros(len(found), bool) if self.curves is None else self.curves.known
        wide = np.where(known, SPLIT_ON_CURVE, SPLIT)
        splits = [Tuning(step=split, hop=split) for split in (1.0 / wide, wide)]
        splits += [Tuning(fill=split) for split in SPLIT_FILL]
        ratios = [self._ratio(both.times(split), end.times(split)) for split in splits]
        if not self.told().all():
            fracs = (LEAST_LATENCY_FRAC, self._most_latency())
            ratios += [self._ratio(both, end, frac) for frac in fracs]
        pick = np.minimum if bound is Bound.LOW else np.maximum
        ends: Float64 = pick.reduce([found, self._ratio(both, end), *ratios])
        return ends

    def floors_ns(self) -> tuple[Float64, Float64]:
        """Time of the bytes alone at the signalled rates, before and after; 0 where not known."""
        size, after = recorded_bytes(self.before.calls), recorded_bytes(self.after.calls)
        least = (
            wire_floor_ns(_links(self.before, VENDOR, Tuning()), size),
            wire_floor_ns(_links(self.after, VENDOR, Tuning()), after),
        )
        known = self.told() & (self.after.calls.members > 1) & (self.before.calls.members > 1)
        before, new = (np.where(known, floor, 0.0) for floor in least)
        return before, new

    def _calibrated(self) -> Tuning:
        """What the curves say of the recorded machine; it holds after the change too.

        A hop is longer by so much, whatever latency the fabric names.
        """
        if self.curves is None or not self.curves.known.any():
            return Tuning()

        def recorded_ns(tuning: Tuning, size_bytes: Float64) -> Float64:
            return times_ns(_links(self.before, self.constants, tuning), size_bytes)

        found = tuning_of(self.curves, recorded_ns)
        more = (found.hop - 1.0) * hop_ns(self.before.fabric, self.constants)
        return replace(found, hop=1.0, more_hop_ns=more)

    def _most_latency(self) -> Float64:
        """The end of the range at which an untold call has most latency.

        A call of unknown size may be all latency; of one with a size the odds of latency against
        bytes are in doubt as much as anywhere.
        """
        return np.where(self._sized(), SPLIT / (1.0 + SPLIT), 1.0)

    def _ratio(
        self, base: Tuning, new: Tuning, latency_frac: float | Float64 = MOST_LATENCY_FRAC
    ) -> Float64:
        past = _links(self.before, self.constants, base)
        future = _links(self.after, self.constants, new)
        size = np.where(
            self.told(), recorded_bytes(self.before.calls), self._solved(past, latency_frac)
        )
        start = times_ns(past, size)
        goal = times_ns(future, self._sizes_after(size))
        alone = np.where(goal > 0, goal / np.maximum(self.measured_ns, 1.0), 1.0)
        ratio = np.divide(goal, start, out=alone, where=start > 0)
        on_curve = self._on_curve()
        if self.curves is None or not on_curve.any():
            return ratio
        by_curve = _by_curve(self.curves, past, size, start, goal)
        return np.where(on_curve, by_curve, ratio)

    def _on_curve(self) -> Bool:
        """Rows where only sizes, rates or latencies change: a curve tells how the time grows."""
        old, new = self.before, self.after
        same = _ways(old.fabric) == _ways(new.fabric)
        if self.curves is None or not same:
            return np.zeros(len(self.measured_ns), bool)
        on_curve = self.curves.known & self.told()
        for name in ("kind", "members", "nodes", "largest_node", "sites"):
            on_curve &= getattr(old.calls, name) == getattr(new.calls, name)
        return on_curve

    def told(self) -> Bool:
        """Rows whose size and binding rate are known before the change."""
        calls, fabric = self.before.calls, self.before.fabric
        told = self._sized()
        inside = np.full(len(told), fabric.scale_up_bytes_per_s is not None)
        by_pcie = np.full(len(told), fabric.scale_up_shape == Shape.NONE)
        by_pcie |= (fabric.scale_up_shape == Shape.PAIRS) & (calls.largest_node > PAIR)
        inside = np.where(by_pcie, fabric.pcie_bytes_per_s is not None, inside)
        told &= np.where(calls.nodes > 1, fabric.nic_bytes_per_s is not None, inside)
        told &= (calls.sites <= 1) | (fabric.wan_bytes_per_s is not None)
        told |= calls.kind == CollectiveKind.BARRIER
        return told

    def _sized(self) -> Bool:
        calls = self.before.calls
        sized: Bool = (calls.size_bytes >= 0) & (calls.kind != CollectiveKind.UNKNOWN)
        return sized

    def _solved(self, links: Links, latency_frac: float | Float64) -> Float64:
        """The size that takes the measured time on these links.

        Where the latencies would take more than their part of it, they are taken to be shorter in
        truth, before and after: of a time of which they take just that part the ratio is the same.
        A recorded size takes some of the time on any link, and no more than all of it.
        """
        if self.told().all():
            return np.zeros(len(self.measured_ns))
        size = recorded_bytes(self.before.calls)
        least_ns = wire_floor_ns(links, np.where(self._sized(), size / FASTEST, 0.0))
        most_frac = 1.0 - least_ns / np.maximum(self.measured_ns, 1.0)
        frac = np.clip(np.minimum(latency_frac, most_frac), LEAST_LATENCY_FRAC, 1.0)
        latency_ns = times_ns(links, np.zeros_like(size))
        found = sizes_taking(links, np.maximum(self.measured_ns, latency_ns / frac))
        return np.where(self._sized(), np.minimum(found, SLOWEST * size), found)

    def _sizes_after(self, size: Float64) -> Float64:
        """Sizes of the new calls; where those before were solved, as much more as recorded ones."""
        old, new = recorded_bytes(self.before.calls), recorded_bytes(self.after.calls)
        grown = np.divide(new, old, out=np.ones_like(new), where=(old > 0) & (new > 0))
        return np.where(self.told(), new, size * grown)


def _by_curve(
    curves: Curves, links: Links, size_bytes: Float64, start_ns: Float64, goal_ns: Float64
) -> Float64:
    """New over measured time along what was measured.

    The call becomes like one of another size on the recorded links. It cannot change by more than
    the bytes do, whatever the curve says.
    """
    like = np.where(goal_ns == start_ns, size_bytes, sizes_taking(links, goal_ns))
    like_ns = times_ns(links, like)
    knots_ns = times_ns(links.rows(curves.rows_of_knots()), curves.size_bytes)
    knots_ns = np.maximum(knots_ns, 1.0)
    measured = curves.at(like, like_ns, knots_ns) / curves.at(size_bytes, start_ns, knots_ns)
    bytes_ratio = np.maximum(like, 1.0) / np.maximum(size_bytes, 1.0)
    measured = np.clip(measured, np.minimum(bytes_ratio, 1.0), np.maximum(bytes_ratio, 1.0))
    by_curve = measured * goal_ns / np.maximum(like_ns, 1.0)
    formula = goal_ns / np.maximum(start_ns, 1.0)
    # Where hardly anything changes, the size that it is like is far and says nothing.
    weight = np.minimum(np.abs(np.log(np.maximum(formula, 1e-9))) / MUCH, 1.0)
    mixed: Float64 = formula ** (1.0 - weight) * np.maximum(by_curve, 1e-9) ** weight
    return mixed


def _ways(fabric: Fabric) -> tuple[object, ...]:
    """What decides on algorithms beside rates and latencies."""
    shape = (fabric.scale_up_shape, fabric.mesh_links)
    return fabric.architecture, *shape, fabric.algorithm, fabric.in_network


def _links(situation: Situation, constants: Constants, tuning: Tuning) -> Links:
    return links_of(situation.calls, with_stand_ins(situation.fabric), constants, tuning)
