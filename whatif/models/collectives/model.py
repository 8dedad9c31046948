"""Times of collectives, and measured times moved to other links, members or sizes.

Only ratios of the model are used where there is a measured time: `measured * model(new) /
model(base)`, so that its level cancels and only its shape counts. Algorithms and their costs are in
`algorithms.py`, what the links carry in `links.py`, the numbers and their sources in
`constants.py`, the width of the range in `doubt.py`.
"""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import CollectiveKind
from whatif.models.bound import Bound
from whatif.models.collectives.algorithms import fastest_ns, wire_floor_ns
from whatif.models.collectives.calls import Bool, Calls, Float64, Int64, columns_of, distinct, take
from whatif.models.collectives.constants import SHIPPED, VENDOR, Constants
from whatif.models.collectives.curves import Curves
from whatif.models.collectives.doubt import ABSOLUTE, SPLITS, doubt_of
from whatif.models.collectives.links import Links, Tuning, links_of
from whatif.models.fabric import Fabric, Shape, with_stand_ins

SOURCE = "collective model: NCCL's algorithms and latencies, rates as NCCL and RCCL plan with"
HALVINGS = 50
"""Of the interval of sizes, on a log scale, that holds one which was not recorded."""
MOST_BYTES = 1e15
PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Calls and what carries them."""

    calls: Calls
    fabric: Fabric


def model_ns(calls: Calls, fabric: Fabric, bound: Bound = Bound.NOMINAL) -> Float64:
    """Time of each call in ns.

    NaN where its size or the rate of a link that it crosses is not known; 0 for a call alone.
    """
    links = links_of(calls, fabric, SHIPPED, ABSOLUTE[bound])
    known = (calls.size_bytes >= 0) | (calls.kind == CollectiveKind.BARRIER)
    known &= calls.kind != CollectiveKind.UNKNOWN
    return np.where(known, _times_ns(links, _recorded(calls)), np.nan)


def scaled_ns(  # noqa: PLR0913  (two situations, each calls and links)
    measured_ns: Int64,
    *,
    before: Calls,
    base: Fabric,
    after: Calls,
    new: Fabric,
    bound: Bound = Bound.NOMINAL,
    curves: Curves | None = None,
) -> Int64:
    """Measured times of `before` on `base`, moved to `after` on `new`; rounded half to even.

    Where the size, or on both sides the rate that binds, is not known, the measured time tells how
    long the bytes took: what the latency leaves. LOW <= NOMINAL <= HIGH, row by row.

    Args:
        measured_ns: transfers without waiting.
        before: what was measured.
        base: where it was measured.
        after: row by row, what the calls become (members, nodes and sizes may differ).
        new: the links then; where a rate is None, its `factors` say how much faster the link is.
        bound: NOMINAL, or the end of the range.
        curves: what the calls themselves measured, by rows of `before`: inside its sizes a curve
            says how the time grows with the bytes, and how long the steps take.
    """
    columns = [measured_ns, *columns_of(before), *columns_of(after)]
    assert all(len(column) == len(measured_ns) for column in columns)
    if curves is not None:
        columns.append(curves.curve)
    first, place = distinct(columns)
    move = Move(
        measured_ns=measured_ns[first].astype(np.float64),
        before=Situation(calls=take(before, first), fabric=base),
        after=Situation(calls=take(after, first), fabric=new),
        curves=curves.rows(first) if curves is not None else None,
    )
    return np.rint(measured_ns * move.ratio(bound)[place]).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """From one situation to another; the rows are those of both."""

    measured_ns: Float64
    before: Situation
    after: Situation
    curves: Curves | None = None
    constants: Constants = SHIPPED

    def ratio(self, bound: Bound = Bound.NOMINAL) -> Float64:
        """New time over measured time."""
        found = self._ratio(Tuning(), Tuning())
        if bound is not Bound.NOMINAL:
            doubt = doubt_of(
                self.before.calls, self.before.fabric, self.after.calls, self.after.fabric
            )
            end = doubt.tuning(bound)
            splits = [Tuning(step=split, hop=split) for split in SPLITS]
            ratios = [self._ratio(split, split.times(end)) for split in splits]
            pick = np.minimum if bound is Bound.LOW else np.maximum
            found = pick.reduce([found, self._ratio(Tuning(), end), *ratios])
        return np.maximum(found, self._least())

    def _ratio(self, base: Tuning, new: Tuning) -> Float64:
        past = _links(self.before, self.constants, base)
        size = np.where(self._told(), _recorded(self.before.calls), self._solved(past))
        start = _times_ns(past, size)
        goal = _times_ns(_links(self.after, self.constants, new), self._sizes_after(size))
        alone = np.where(goal > 0, goal / np.maximum(self.measured_ns, 1.0), 1.0)
        return np.divide(goal, start, out=alone, where=start > 0)

    def _told(self) -> Bool:
        """Rows whose size and binding rate are known before the change."""
        calls, fabric = self.before.calls, self.before.fabric
        told: Bool = (calls.size_bytes >= 0) & (calls.kind != CollectiveKind.UNKNOWN)
        inside = np.full(len(told), fabric.scale_up_bytes_per_s is not None)
        by_pcie = np.full(len(told), fabric.scale_up_shape == Shape.NONE)
        by_pcie |= (fabric.scale_up_shape == Shape.PAIRS) & (calls.largest_node > PAIR)
        inside = np.where(by_pcie, fabric.pcie_bytes_per_s is not None, inside)
        told &= np.where(calls.nodes > 1, fabric.nic_bytes_per_s is not None, inside)
        told &= (calls.sites <= 1) | (fabric.wan_bytes_per_s is not None)
        told |= calls.kind == CollectiveKind.BARRIER
        return told

    def _solved(self, links: Links) -> Float64:
        """The size that takes the measured time on these links; 0 where the steps alone do."""
        if self._told().all():
            return np.zeros(len(self.measured_ns))
        return size_taking(links, self.measured_ns)

    def _sizes_after(self, size: Float64) -> Float64:
        """Sizes of the new calls; where those before were solved, as much more as recorded ones."""
        old, new = _recorded(self.before.calls), _recorded(self.after.calls)
        grown = np.divide(new, old, out=np.ones_like(new), where=(old > 0) & (new > 0))
        return np.where(self._told(), new, size * grown)

    def _least(self) -> Float64:
        """Ratio below which the bytes would beat the signalled rate of the links.

        A measured time that itself beats them (wrong base) keeps its lead.
        """
        size, after = _recorded(self.before.calls), _recorded(self.after.calls)
        floor = wire_floor_ns(_links(self.after, VENDOR, Tuning()), after)
        base = wire_floor_ns(_links(self.before, VENDOR, Tuning()), size)
        known = self._told() & (self.after.calls.members > 1)
        return np.where(known, floor / np.maximum(np.maximum(self.measured_ns, base), 1.0), 0.0)


def size_taking(links: Links, wanted_ns: Float64) -> Float64:
    """Size of calls that take the wanted time; 0 where their latency alone takes more."""
    low, high = np.zeros_like(wanted_ns), np.full_like(wanted_ns, np.log(MOST_BYTES))
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        over = _times_ns(links, np.exp(middle)) > wanted_ns
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return np.where(_times_ns(links, np.zeros_like(low)) >= wanted_ns, 0.0, np.exp(low))


def _links(situation: Situation, constants: Constants, tuning: Tuning) -> Links:
    return links_of(situation.calls, with_stand_ins(situation.fabric), constants, tuning)


def _recorded(calls: Calls) -> Float64:
    """Sizes, 0 where there is none."""
    barrier = calls.kind == CollectiveKind.BARRIER
    return np.where(barrier, 0, np.maximum(calls.size_bytes, 0)).astype(np.float64)


def _times_ns(links: Links, size_bytes: Float64) -> Float64:
    return np.where(links.calls.members > 1, fastest_ns(links, size_bytes), 0.0)
