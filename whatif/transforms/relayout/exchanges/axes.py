"""Which recorded collectives are of which axis, and what becomes of each axis."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ingest.vocab import CollectiveKind
from replay.graph.arrays import NONE, Bool, Int64, TaskGraph
from whatif.models.exchanges.volume import Along, Volume
from whatif.models.shape import RunShape
from whatif.models.volumes import volumes
from whatif.parallelism import Axis, Layout

AXES = (Along.TENSOR, Along.CONTEXT, Along.EXPERT, Along.SHARDS, Along.REPLICAS)
"""Those that a relayout changes; norms over a replica stay as recorded."""
STATE = (Along.SHARDS, Along.REPLICAS)
_ALONG = {
    Axis.TENSOR: Along.TENSOR,
    Axis.CONTEXT: Along.CONTEXT,
    Axis.EXPERT: Along.EXPERT,
    Axis.SHARDED: Along.SHARDS,
    Axis.DATA: Along.REPLICAS,
}
_BETWEEN_TWO = (CollectiveKind.SEND, CollectiveKind.RECV)


def along_of(graph: TaskGraph, layout: Layout, shape: RunShape) -> Int64:
    """Per collective its axis, as a position in AXES; -1 for all others.

    Args:
        graph: with the collectives.
        layout: roles of the first of its communicators; later ones were put in.
        shape: of the run. With state shared among all replicas there are shards only.
    """
    only_shards = shape.degrees.zero > 0 and layout.degree(Axis.SHARDED) == 1
    of_group = np.full(len(graph.groups), NONE, np.int64)
    for number, role in enumerate(layout.roles):
        along = _ALONG.get(role.axis)
        if along is Along.REPLICAS and only_shards:
            along = Along.SHARDS
        if along is not None and role.size > 1:
            of_group[number] = AXES.index(along)
    found = of_group[graph.collectives.group]
    pipeline = np.isin(graph.collectives.kind, [int(kind) for kind in _BETWEEN_TWO])
    return np.where(pipeline, NONE, found)


def members(shape: RunShape, along: Along) -> int:
    """Ranks that a collective along an axis joins."""
    degrees = shape.degrees
    replicas = degrees.dp * degrees.cp
    shards = min(degrees.shards, replicas)
    return {
        Along.TENSOR: degrees.tp,
        Along.CONTEXT: degrees.cp,
        Along.EXPERT: degrees.ep,
        Along.SHARDS: shards,
        Along.REPLICAS: replicas // shards,
    }[along]


def ranks_along(shape: RunShape, along: Along, size: int) -> tuple[int, ...]:
    """Members of the first communicator along an axis.

    Ranks count as Megatron-LM numbers them: tensor, context, data, pipeline from the fastest to the
    slowest; experts lie on neighbouring replicas.
    """
    degrees = shape.degrees
    stride = {
        Along.TENSOR: 1,
        Along.REPLICAS: degrees.tp * members(shape, Along.SHARDS),
    }.get(along, degrees.tp)
    return tuple((stride * np.arange(size)).tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What becomes of an axis."""

    along: Along
    before: int
    """Members."""
    after: int
    replaced: bool
    """Other kinds of collectives, or the same at other places."""

    @property
    def leaves(self) -> bool:
        """The recorded collectives go."""
        return self.before > 1 and (self.after == 1 or self.replaced)

    @property
    def comes(self) -> bool:
        """Others are put in."""
        return self.after > 1 and (self.before == 1 or self.replaced)

    @property
    def stays(self) -> bool:
        """The recorded ones get other members and sizes."""
        return self.before > 1 and not self.leaves


def changes(before: RunShape, after: RunShape) -> tuple[Change, ...]:
    """What becomes of every axis."""
    return tuple(_changes(before, after))


def _changes(before: RunShape, after: RunShape) -> Iterator[Change]:
    other_state = _state_kind(before) != _state_kind(after)
    other_state |= before.options.sync_every != after.options.sync_every
    for along in AXES:
        sizes = members(before, along), members(after, along)
        replaced = {
            Along.TENSOR: before.degrees.sp != after.degrees.sp,
            Along.CONTEXT: before.degrees.cp_kind != after.degrees.cp_kind,
            Along.EXPERT: False,
        }.get(along, other_state)
        yield Change(along=along, before=sizes[0], after=sizes[1], replaced=replaced)


def _state_kind(shape: RunShape) -> int:
    """Layouts of state whose collectives differ: none shared, some, parameters too."""
    return (0, 1, 1, 2)[shape.degrees.zero] if members(shape, Along.SHARDS) > 1 else 0


def rows_along(shape: RunShape, along: Along) -> tuple[Volume, ...]:
    """The volumes of an axis."""
    return tuple(row for row in volumes(shape) if row.along is along)


def bytes_factor(before: RunShape, after: RunShape, along: Along) -> float:
    """How much larger its collectives become; 1 where no size is told.

    Sizes of both are those that two members would have, so that they are told where an axis is new.
    """
    sizes = [_typical_bytes(shape, along) for shape in (before, after)]
    if min(sizes) <= 0:
        return _by_degrees(before, after, along)
    return sizes[1] / sizes[0]


def _typical_bytes(shape: RunShape, along: Along) -> int:
    rows = rows_along(shape, along)
    return max((row.size_bytes for row in rows), default=0)


def _by_degrees(before: RunShape, after: RunShape, along: Along) -> float:
    if along in STATE:
        return before.degrees.tp / after.degrees.tp
    batches = [(each.batch.samples or 1.0) * (each.batch.sequence or 1) for each in (before, after)]
    return batches[1] / batches[0] * before.degrees.cp / after.degrees.cp


def chosen(along: Int64, wanted: Along) -> Bool:
    """Per collective: it is of that axis."""
    found: Bool = along == AXES.index(wanted)
    return found
