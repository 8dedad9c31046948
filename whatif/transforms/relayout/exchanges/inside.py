"""Collectives inside a replica that were not recorded: tensor, context and expert parallel."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ingest.errors import ScenarioError
from ingest.vocab import KernelClass
from replay.graph.arrays import NONE, Float64, Int64
from whatif.models.bound import Bound
from whatif.models.exchanges.volume import Along, Of, Spot, Volume, Way
from whatif.models.places import Part, Pass, Place
from whatif.parallelism import REPLICATED, Axis
from whatif.tape.inserting.rows import Insertions
from whatif.tape.segments import Tape
from whatif.transforms.relayout.exchanges.axes import STATE, Change, members, rows_along
from whatif.transforms.relayout.exchanges.links import Links
from whatif.transforms.relayout.exchanges.units import FORWARDS, Units
from whatif.transforms.relayout.parts import Ask

LAUNCH_NS = {Bound.NOMINAL: 20_000, Bound.LOW: 5_000, Bound.HIGH: 50_000}
"""What a thread spends on one more collective: an operator of PyTorch from Python (facts: about
20 us) with its launch; a launch alone is 4 to 6 us, and slow hosts take twice as long."""
_AXES = {
    Along.TENSOR: (Axis.TENSOR,),
    Along.CONTEXT: (Axis.CONTEXT,),
    Along.EXPERT: (Axis.EXPERT,),
    Along.SHARDS: (*REPLICATED, Axis.CONTEXT),
    Along.REPLICAS: (*REPLICATED, Axis.CONTEXT),
}
_PART = {
    Of.EMBEDDING: Part.EMBEDDING,
    Of.HEAD: Part.HEAD,
    Of.LAYER: Part.LAYER,
    Of.DENSE: Part.LAYER,
    Of.EXPERTS: Part.LAYER,
}
_INTO = {
    Spot.ATTENTION_IN: (Place.QKV,),
    Spot.ATTENTION: (Place.ATTENTION,),
    Spot.ATTENTION_OUT: (Place.PROJECTION,),
    Spot.FFN_IN: (Place.UP,),
    Spot.FFN_OUT: (Place.DOWN,),
    Spot.DISPATCH: (Place.EXPERT, Place.UP),
    Spot.COMBINE: (Place.EXPERT, Place.DOWN),
    Spot.EMBEDDING: (Place.EMBEDDING,),
    Spot.HEAD: (Place.LOGITS,),
    Spot.LOSS: (Place.LOSS, Place.LOGITS),
}
"""Work that a collective of a spot stands beside."""
_FIRST = {
    (Spot.ATTENTION_IN, Way.FORWARD),
    (Spot.FFN_IN, Way.FORWARD),
    (Spot.DISPATCH, Way.FORWARD),
    (Spot.HEAD, Way.FORWARD),
    (Spot.ATTENTION_OUT, Way.BACKWARD),
    (Spot.FFN_OUT, Way.BACKWARD),
    (Spot.COMBINE, Way.BACKWARD),
    (Spot.EMBEDDING, Way.BACKWARD),
}
"""Those that come before the work, not behind it."""
IN_PIECES = frozenset({Spot.ATTENTION_IN, Spot.ATTENTION_OUT, Spot.FFN_IN, Spot.FFN_OUT, Spot.HEAD})
"""Spots whose tensor collective runs piece by piece beside a product, with `async_tp`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where collectives come in: the tape's units, the new links, and who meets whom."""

    ask: Ask
    tape: Tape
    units: Units
    links: Links

    def keys(self, units: Int64, change: Change) -> Int64:
        """Equal for units whose ranks are members of one communicator of the axis.

        Where the axis is new each recorded rank stands for a communicator of its own.
        """
        rank = self.units.rank[units].astype(np.int64)
        if self._is_recorded(change):
            rank = self._without_axis(rank, change.along)
        columns = np.stack(
            [
                rank,
                self.units.step[units],
                self.units.part[units],
                self.units.way[units],
                self.units.layer[units],
                self.units.micro_batch[units],
            ]
        )
        _, key = np.unique(columns, axis=1, return_inverse=True)
        found: Int64 = key.ravel().astype(np.int64)
        return found

    def _is_recorded(self, change: Change) -> bool:
        """Several of the recorded ranks may be members."""
        if change.along not in STATE:
            return change.before > 1
        return any(members(self.ask.before, along) > 1 for along in STATE)

    def _without_axis(self, rank: Int64, along: Along) -> Int64:
        """Equal for ranks that differ in their place along the axis only."""
        described = self.ask.described
        left_out = _AXES[along]
        numbers: dict[tuple[object, ...], int] = {}
        of_rank = {}
        for each in np.unique(rank).tolist():
            places = described.layout.coordinates.get(each, {})
            rest = sorted((axis, place) for axis, place in places.items() if axis not in left_out)
            key = (described.stage_of_rank.get(each, 0), *rest)
            of_rank[each] = numbers.setdefault(key, len(numbers))
        return np.array([of_rank[each] for each in rank.tolist()], np.int64)


def inside(site: Site, change: Change) -> Iterator[Insertions]:
    """The collectives that come with an axis.

    Raises:
        ScenarioError: the run does not tell how large they are.
    """
    target = site.ask.target
    for row in rows_along(target, change.along):
        if row.size_bytes < 0:
            raise ScenarioError(
                f"how large the {change.along} collectives would be is not told by this run",
                hint="--describe FILE says it: model.hidden, batch.samples, batch.sequence",
            )
        units = _units(site, row)
        if len(units):
            yield _insertion(site, change, row, units)


def _units(site: Site, row: Volume) -> Int64:
    ways = FORWARDS if row.way is Way.FORWARD else (Pass.BACKWARD,)
    units = site.units.chosen(_PART[row.of], ways)
    dense = site.ask.target.model.dense_layers
    if row.of is Of.EXPERTS:
        return units[site.units.layer[units] >= dense]
    if row.of is Of.DENSE and site.ask.target.model.experts is not None:
        return units[site.units.layer[units] < dense]
    return units


def _insertion(site: Site, change: Change, row: Volume, units: Int64) -> Insertions:
    places = _INTO[row.spot]
    first = (row.spot, row.way) in _FIRST or row.beside
    after = site.units.before(units, places) if first else site.units.behind(units, places)
    waits = np.full(len(units), NONE, np.int64)
    if row.beside:
        waits = site.units.following(site.units.end_of(units, places))
    key = site.keys(units, change)
    n = row.count
    ring = np.tile(np.arange(n), len(units))
    size = np.full(len(units) * n, row.size_bytes, np.int64)
    group = site.links.group(site.ask.target, change.along, change.after)
    whole_ns = site.links.transfer_ns(row.kind, size, group.ranks)
    return Insertions(
        key=np.repeat(key, n) * n + ring,
        after=np.repeat(after, n).astype(np.int32),
        kind=row.kind,
        group=group,
        size_bytes=size,
        transfer_ns=_in_sight_ns(site, row, units, whole_ns),
        beside=row.beside,
        waits=np.repeat(waits, n).astype(np.int32),
        host_ns=np.full(len(size), site.links.launch_ns(LAUNCH_NS), np.int64),
        name=f"{row.along} {row.kind.name.lower()}",
        stream=f"{row.along} collectives",
    )


def _in_sight_ns(site: Site, row: Volume, units: Int64, whole_ns: Int64) -> Int64:
    """Of tensor collectives what their products do not hide, ns.

    With `async_tp` (Megatron-LM's overlap, torchtitan's asynchronous tensor parallelism) both are
    cut in as many pieces as there are ranks; the first or the last piece has nothing beside it.
    """
    if not site.ask.target.options.async_tp or row.spot not in IN_PIECES or row.beside:
        return whole_ns
    if row.along is not Along.TENSOR:
        return whole_ns
    pieces = row.members
    product_ns = _products_ns(site, row)[units] * (pieces - 1) / pieces
    left_ns = np.maximum(whole_ns - np.repeat(product_ns, row.count), whole_ns / pieces)
    return np.rint(left_ns).astype(np.int64)


def _products_ns(site: Site, row: Volume) -> Float64:
    """Per unit: time of the products at the spot of a row; of backward those of inputs, one half.

    The products of weights take the other half, and are not beside it.
    """
    units, tasks = site.units, site.tape.graph.tasks
    of_places = np.isin(units.place, [int(place) for place in _INTO[row.spot]])
    products = of_places & (tasks.kernel_class[units.line] == KernelClass.GEMM)
    at = np.flatnonzero(products & (units.of_unit >= 0))
    dur_ns = tasks.dur_ns[units.line[at]].astype(np.float64)
    found = np.zeros(len(units), np.float64)
    np.add.at(found, units.of_unit[at], dur_ns)
    return found / 2 if row.way is Way.BACKWARD else found
