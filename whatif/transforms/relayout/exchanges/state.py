"""Exchanges of gradients and parameters that were not recorded: DDP, ZeRO, FSDP."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ingest.errors import ScenarioError
from ingest.vocab import CollectiveKind
from replay.graph.arrays import NONE, Bool, Int64
from whatif.models.exchanges.state import BUCKET_BYTES, FIRST_BUCKET_BYTES
from whatif.models.exchanges.volume import Of, Spot, Volume, Way
from whatif.models.places import Part, Pass
from whatif.models.shape import SHARDS_PARAMETERS
from whatif.parallelism import REPLICATED
from whatif.tape.inserting.rows import Insertions
from whatif.transforms.relayout.exchanges.axes import Change, rows_along
from whatif.transforms.relayout.exchanges.inside import LAUNCH_NS, Site
from whatif.transforms.relayout.exchanges.units import Units

HOST_COPY_BYTES_PER_S = 10e9
"""Read or written by one core that copies: STREAM on one core of a server gives 10 to 12 GB/s."""
HOST_COPIES = 4.0
"""DDP copies each gradient into its bucket and back: two reads and two writes."""
SHARD_COPIES = 2.0
"""FSDP copies whole parameters out of what it gathers, and whole gradients into what it scatters;
and each rank its shard at the other end: reads and writes."""
_REDUCTIONS = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER)
AHEAD = 2
"""FSDP gathers parameters of a layer while the one before it runs: behind the last but one."""
_OF = {
    Part.LAYER: (Of.LAYER, Of.DENSE, Of.EXPERTS),
    Part.EMBEDDING: (Of.EMBEDDING,),
    Part.HEAD: (Of.HEAD,),
}


def state(site: Site, comes: tuple[Change, ...]) -> Iterator[Insertions]:
    """The exchanges that come with shards and replicas.

    Raises:
        ScenarioError: the run does not tell how large they are.
    """
    for change in comes:
        rows = rows_along(site.ask.target, change.along)
        for kind, spot, way in sorted({(row.kind, row.spot, row.way) for row in rows}):
            alike = tuple(row for row in rows if (row.kind, row.spot, row.way) == (kind, spot, way))
            _known(alike)
            maker = {Spot.GRADIENTS: _gradients, Spot.UPDATED: _updated}.get(spot, _parameters)
            yield from maker(site, change, alike)


def _known(rows: tuple[Volume, ...]) -> None:
    if any(row.size_bytes < 0 for row in rows):
        raise ScenarioError(
            "how many bytes the gradients have is not told by this run",
            hint="--describe FILE says it: model.parameters, or hidden, heads, ffn, vocab",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Units with the bytes that the exchange of each has, in the order in which it is due."""

    unit: Int64
    size_bytes: Int64


def _sized(site: Site, units: Int64, rows: tuple[Volume, ...]) -> _Parts:
    """Bytes of the gradients or parameters of each unit; units without any are left out.

    What a part of the model has that no unit shows (an embedding that is not told apart) falls to
    the last unit of its rank and step.
    """
    found = site.units
    size = np.zeros(len(units), np.int64)
    for part, ofs in _OF.items():
        mine = found.part[units] == part
        for row in rows:
            if row.of in ofs:
                size[mine & _has(site, units, row)] += row.size_bytes
    missing = sum(
        row.size_bytes
        for part, ofs in _OF.items()
        if not (found.part[units] == part).any()
        for row in rows
        if row.of in ofs
    )
    if missing and len(units):
        size[_ends(found, units)] += missing
    kept = size > 0
    return _Parts(unit=units[kept], size_bytes=size[kept])


def _has(site: Site, units: Int64, row: Volume) -> Bool:
    model = site.ask.target.model
    layer = site.units.layer[units]
    if model.experts is None or row.of not in (Of.DENSE, Of.EXPERTS):
        return np.ones(len(units), bool)
    return layer >= model.dense_layers if row.of is Of.EXPERTS else layer < model.dense_layers


def _ends(units: Units, chosen: Int64) -> Int64:
    """Positions of the last unit of every rank and step; units are in order of time."""
    key = _of_step(units, chosen)
    return np.flatnonzero(np.append(key[1:] != key[:-1], True))


def _of_step(units: Units, chosen: Int64) -> Int64:
    step = units.step[chosen].astype(np.int64)
    return units.rank[chosen].astype(np.int64) * (int(step.max(initial=0)) + 1) + step


def _backward(site: Site, *, each_micro_batch: bool) -> Int64:
    """Units of backward that end with an exchange: all, or those of the last micro-batch."""
    units = site.units
    found = np.concatenate([units.chosen(part, (Pass.BACKWARD,)) for part in _OF])
    found = found[np.argsort(units.last[found], kind="stable")]
    if each_micro_batch or not len(found):
        return found
    key = _of_step(units, found)
    _, number = np.unique(key, return_inverse=True)
    latest = np.full(int(number.max()) + 1, NONE, np.int64)
    np.maximum.at(latest, number, units.micro_batch[found])
    last: Int64 = found[units.micro_batch[found] == latest[number]]
    return last


def _gradients(site: Site, change: Change, rows: tuple[Volume, ...]) -> Iterator[Insertions]:
    """When a bucket is full it goes, beside backward; the step waits for all behind backward."""
    units = site.units
    chosen = _backward(site, each_micro_batch=rows[0].each_micro_batch)
    parts = _sized(site, chosen, rows)
    if not len(parts.unit):
        raise ScenarioError(
            "no backward pass was found whose gradients replicas would exchange",
            hint="`replay describe` shows what was found of this run",
        )
    fully = site.ask.target.degrees.zero == SHARDS_PARAMETERS
    bucket = parts if fully else _bucketed(site, parts)
    beside = rows[0].beside and not (fully and site.links.on_host)
    after = units.last_task(bucket.unit)
    at_end = _behind_backward(units, chosen, bucket.unit)
    waits = units.following(at_end)
    if not rows[0].beside:
        after = units.line[at_end]
    yield _insertion(
        site,
        change,
        rows[0],
        bucket,
        after=after,
        waits=np.where(beside, waits, NONE),
        ends=units.line[at_end],
        beside=beside,
    )


def _bucketed(site: Site, parts: _Parts) -> _Parts:
    """Units at which buckets are full, with their bytes; one that holds more has several."""
    options = site.ask.target.options
    cap = int(options.bucket_bytes or _recorded_bucket(site) or BUCKET_BYTES)
    unit, size = [], []
    key = _of_step(site.units, parts.unit)
    for first, last in _runs(key):
        held, limit = 0, min(FIRST_BUCKET_BYTES, cap)
        for at in range(first, last):
            held += int(parts.size_bytes[at])
            if held >= limit or at == last - 1:
                pieces = max(-(-held // (2 * cap)), 1)
                unit += [int(parts.unit[at])] * pieces
                size += _shared(held, pieces)
                held, limit = 0, cap
    return _Parts(unit=np.array(unit, np.int64), size_bytes=np.array(size, np.int64))


def _recorded_bucket(site: Site) -> int | None:
    """Bytes that replicas of the recorded run typically reduced at once; None: nothing in buckets.

    Half of the bytes are in reductions of at least so many. FSDP has a unit in each, no buckets.
    """
    layout = site.ask.described.layout
    if site.ask.before.degrees.zero == SHARDS_PARAMETERS:
        return None
    calls = site.tape.graph.collectives
    ours = np.array([role.axis in REPLICATED and role.size > 1 for role in layout.roles], bool)
    reduced = np.isin(calls.kind, [int(kind) for kind in _REDUCTIONS])
    size = np.sort(calls.size_bytes[ours[calls.group] & reduced & (calls.size_bytes > 0)])
    if not len(size):
        return None
    return int(size[np.searchsorted(np.cumsum(size), size.sum() / 2)])


def _shared(whole: int, pieces: int) -> list[int]:
    return [whole * (piece + 1) // pieces - whole * piece // pieces for piece in range(pieces)]


def _runs(key: Int64) -> Iterator[tuple[int, int]]:
    """Ranges of equal values."""
    bounds = np.flatnonzero(np.diff(key)) + 1
    edges = [0, *bounds.tolist(), len(key)]
    yield from pairwise(edges)


def _behind_backward(units: Units, backward: Int64, chosen: Int64) -> Int64:
    """Place in the line of the last task of backward in the step of each chosen unit."""
    key, wanted = _of_step(units, backward), _of_step(units, chosen)
    keys, number = np.unique(key, return_inverse=True)
    latest = np.full(len(keys), NONE, np.int64)
    np.maximum.at(latest, number, units.last[backward])
    return latest[np.searchsorted(keys, wanted)]


def _updated(site: Site, change: Change, rows: tuple[Volume, ...]) -> Iterator[Insertions]:
    """Parameters come back behind the optimizer, all of a rank one after another."""
    units = site.units
    chosen = _backward(site, each_micro_batch=False)
    parts = _sized(site, chosen, rows)
    if not len(parts.unit):
        return
    bucket = _bucketed(site, parts)
    ends = _step_ends(site)
    after = np.array(
        [ends[int(units.rank[unit]), int(units.step[unit])] for unit in bucket.unit.tolist()],
        np.int64,
    )
    waits = np.full(len(after), NONE, np.int64)
    made = _insertion(site, change, rows[0], bucket, after=after, waits=waits, beside=False)
    yield _per_step(site, made)


def _per_step(site: Site, made: Insertions) -> Insertions:
    """Of an exchange every Kth step each step has its part."""
    every = site.ask.target.options.sync_every
    if every == 1:
        return made
    return replace(
        made,
        size_bytes=made.size_bytes // every,
        transfer_ns=made.transfer_ns // every,
        host_ns=made.host_ns // every,
    )


def _step_ends(site: Site) -> dict[tuple[int, int], int]:
    """Last task of the computation of every rank in every step."""
    tasks = site.tape.graph.tasks
    line = site.units.line
    keys = zip(tasks.rank[line].tolist(), tasks.step[line].tolist(), strict=True)
    return dict(zip(keys, line.tolist(), strict=True))


def _parameters(site: Site, change: Change, rows: tuple[Volume, ...]) -> Iterator[Insertions]:
    """FSDP: before a unit runs its parameters are gathered, on devices while others still run."""
    units = site.units
    way = Pass.FORWARD if rows[0].way is Way.FORWARD else Pass.BACKWARD
    chosen = np.concatenate([units.chosen(part, (way,)) for part in _OF])
    chosen = chosen[np.argsort(units.first[chosen], kind="stable")]
    if not rows[0].each_micro_batch:
        chosen = chosen[units.micro_batch[chosen] == 0]
    parts = _sized(site, chosen, rows)
    if not len(parts.unit):
        return
    before = units.previous(units.first[parts.unit])
    beside = not site.links.on_host
    after = _ahead(units, parts.unit) if beside else before
    waits = units.line[units.first[parts.unit]]
    yield _insertion(
        site,
        change,
        rows[0],
        parts,
        after=after,
        waits=np.where(beside, waits, NONE),
        beside=beside,
    )


def _ahead(units: Units, chosen: Int64) -> Int64:
    """Task behind which the gather of each unit is issued: the last of the unit two before it."""
    key = _of_step(units, chosen)
    earlier = np.arange(len(chosen)) - AHEAD
    inside = (earlier >= 0) & (key[earlier] == key)
    return np.where(
        inside, units.line[units.last[chosen[earlier]]], units.previous(units.first[chosen])
    )


def _insertion(  # noqa: PLR0913  (each says one thing of where they come in)
    site: Site,
    change: Change,
    row: Volume,
    parts: _Parts,
    *,
    after: Int64,
    waits: Int64,
    beside: bool,
    ends: Int64 | None = None,
) -> Insertions:
    group = site.links.group(site.ask.target, change.along, change.after)
    key = site.keys(parts.unit, change)
    n_alike = int(np.bincount(parts.unit).max())
    n_a_step = int(np.unique(_of_step(site.units, parts.unit), return_counts=True)[1].min())
    host_ns = np.full(len(after), site.links.launch_ns(LAUNCH_NS), np.int64)
    if site.links.on_host:
        shared_ns = site.links.core_ns(row.kind, parts.size_bytes, group.size)
        moved = parts.size_bytes * _copies(row.kind, group.size)
        host_ns = np.rint(moved * 1e9 / HOST_COPY_BYTES_PER_S + shared_ns).astype(np.int64)
    return Insertions(
        key=key * n_alike + _turns(parts.unit),
        after=after.astype(np.int32),
        kind=row.kind,
        group=group,
        size_bytes=parts.size_bytes,
        transfer_ns=site.links.transfer_ns(
            row.kind, parts.size_bytes, group.ranks, in_a_row=beside and n_a_step > 1
        ),
        beside=beside,
        waits=waits.astype(np.int32),
        host_ns=host_ns,
        ends=None if ends is None else ends.astype(np.int32),
        name=f"{row.along} {row.kind.name.lower()}",
        stream=f"{row.along} {row.kind.name.lower()}s",
    )


def _copies(kind: CollectiveKind, n_members: int) -> float:
    """Times that a core reads or writes the bytes of an exchange beside sending them."""
    if kind is CollectiveKind.ALL_REDUCE:
        return HOST_COPIES
    return SHARD_COPIES * (1 + 1 / n_members)


def _turns(unit: Int64) -> Int64:
    """0, 1, .. of the rows of each unit; rows of one stand together."""
    starts = np.flatnonzero(np.append(True, unit[1:] != unit[:-1]))
    lengths = np.diff(np.append(starts, len(unit)))
    return np.arange(len(unit)) - np.repeat(starts, lengths)
