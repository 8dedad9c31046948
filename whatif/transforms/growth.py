"""Another degree along one axis: new numbers of ranks, new members and sizes of collectives.

The graph keeps its tasks: recorded ranks stand for those of the new layout at the same places.
"""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ingest.vocab import CollectiveKind, Phase, TaskKind
from replay.graph.arrays import Bool, Collectives, Group, Int32, Int64, TaskGraph
from replay.graph.outside import incomplete
from whatif.parallelism import INNER, Axis, Layout

_GATHERING = (CollectiveKind.ALL_GATHER, CollectiveKind.GATHER, CollectiveKind.SCATTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The axis whose degree changes, and how its ranks are numbered."""

    axis: Axis
    before: int
    after: int
    stride: int
    """From a rank to its counterpart in the next replica."""
    world_before: int
    world_after: int

    def moved(self, ranks: Int64) -> Int64:
        """New numbers of ranks at the same places; of replicas that are gone those of the last."""
        low = ranks % self.stride
        place = ranks // self.stride % self.before
        high = ranks // (self.stride * self.before)
        new: Int64 = low + self.stride * (np.minimum(place, self.after - 1) + high * self.after)
        return new

    def along(self, ranks: Int64) -> int:
        """Positions that the members of a communicator have, where they differ in nothing else.

        1 for members that lie across the axis, inside a replica among them.
        """
        outside = ranks % self.stride + ranks // (self.stride * self.before) * self.stride
        return len(ranks) if len(ranks) and (outside == outside[0]).all() else 1

    def is_inside(self, ranks: Int64) -> bool:
        """The members lie in one replica, side by side."""
        return bool((ranks // self.stride == ranks[:1] // self.stride).all())

    def members(self, ranks: Int64) -> Int64:
        """New members of a communicator along the axis, whose members were `ranks`."""
        first = int(self.moved(ranks[:1] - ranks[:1] // self.stride % self.before * self.stride)[0])
        return first + self.stride * np.arange(self.after, dtype=np.int64)


def stride_of(graph: TaskGraph, layout: Layout, axis: Axis) -> int:
    """By a communicator whose ranks are known; else ranks that share a replica are neighbours."""
    for number, (group, role) in enumerate(zip(graph.groups, layout.roles, strict=True)):
        if role.axis is axis and len(group.ranks) > 1 and layout.span(number, axis) > 1:
            ranks = sorted(group.ranks)
            return max(ranks[1] - ranks[0], 1)
    outside = layout.degree(Axis.SHARDED) if axis is Axis.DATA else 1
    return outside * prod(layout.degree(inner) for inner in INNER if inner is not Axis.PIPELINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Replicas that the members of each collective belong to, along the axis that changes."""

    chosen: Bool
    """The number changes."""
    before: Int64
    after: Int64


def spans_of(graph: TaskGraph, layout: Layout, growth: Growth) -> Spans:
    """Which collectives have other members, and how many replicas these are of."""
    of_group = np.array(
        [
            (growth.before, growth.after)
            if _grows(layout, number, growth)
            else _part(group, growth)
            for number, group in enumerate(graph.groups)
        ],
        np.int64,
    ).reshape(-1, 2)
    calls = graph.collectives
    # A send or an exchange between two has them, however many its communicator joins.
    sizes = np.array([role.size for role in layout.roles], np.int64)
    whole = calls.members_expected == sizes[calls.group]
    before, after = of_group[calls.group].T
    return Spans(
        chosen=whole & (before != after),
        before=np.where(whole, before, 1),
        after=np.where(whole, after, 1),
    )


def _part(group: Group, growth: Growth) -> tuple[int, int]:
    """Positions of a communicator that joins some of them: as many, as long as there are."""
    n_along = growth.along(np.array(group.ranks, np.int64))
    return n_along, min(n_along, growth.after)


def _grows(layout: Layout, group: int, growth: Growth) -> bool:
    """The members of a communicator lie in all replicas along the axis."""
    return layout.span(group, growth.axis) > 1


def resized(graph: TaskGraph, layout: Layout, growth: Growth, spans: Spans) -> TaskGraph:
    """The graph with the new members and sizes of its collectives."""
    groups = tuple(
        _moved_group(group, layout, number, growth) for number, group in enumerate(graph.groups)
    )
    return replace(
        graph,
        groups=groups,
        collectives=_moved_calls(graph, layout, spans),
        world_size=growth.world_after,
    )


def _moved_group(group: Group, layout: Layout, number: int, growth: Growth) -> Group:
    role, ranks = layout.roles[number], np.array(sorted(group.ranks), np.int64)
    if not _grows(layout, number, growth):
        before, after = _part(group, growth)
        moved = growth.moved(ranks)
        if after < before:
            return replace(group, ranks=tuple(np.unique(moved)[:after].tolist()), size=after)
        if growth.after < growth.before and growth.is_inside(ranks):
            return group  # those of a replica that stays do not move to another node
        return replace(group, ranks=tuple(moved.tolist()))
    size = role.size * growth.after // growth.before
    if role.size == growth.world_before:
        ranks = np.arange(growth.world_after, dtype=np.int64)
    elif len(ranks) == growth.before:
        ranks = growth.members(ranks)
    else:
        ranks = np.zeros(0, np.int64)
    return replace(group, ranks=tuple(ranks.tolist()), size=size)


def _moved_calls(graph: TaskGraph, layout: Layout, spans: Spans) -> Collectives:
    """Members by the replicas, sizes by what the bytes are."""
    calls = graph.collectives
    expected: Int32 = (calls.members_expected * spans.after // spans.before).astype(np.int32)
    seen = np.where(incomplete(calls), np.minimum(calls.members_seen, expected), expected)
    grows = spans.chosen & _grows_with_members(graph, layout) & (calls.size_bytes > 0)
    size_bytes = np.where(grows, calls.size_bytes * spans.after // spans.before, calls.size_bytes)
    return replace(
        calls,
        members_expected=np.where(spans.chosen, expected, calls.members_expected),
        members_seen=np.where(spans.chosen, seen, calls.members_seen).astype(np.int32),
        size_bytes=size_bytes,
    )


def _grows_with_members(graph: TaskGraph, layout: Layout) -> Bool:
    """Per collective: each member adds bytes of its own.

    All-gathers of anything but parameters, and reduce-scatters of activations in forward (row-wise
    sharded tables). Gradients and parameters have the same bytes over any number of replicas; an
    all-to-all sends as much from each member, to more of them.
    """
    tasks, calls = graph.tasks, graph.collectives
    phase = np.full(len(calls.kind), Phase.UNKNOWN, np.int8)
    transfer = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)
    phase[tasks.collective[transfer]] = tasks.phase[transfer]
    parameters = np.array([role.parameters_gathered for role in layout.roles], bool)[calls.group]
    gathered = np.isin(calls.kind, [int(kind) for kind in _GATHERING]) & ~parameters
    scattered = (calls.kind == CollectiveKind.REDUCE_SCATTER) & (phase == Phase.FORWARD)
    grows: Bool = gathered | scattered
    return grows
