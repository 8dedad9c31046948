"""The members of a collective meet; each moves its data when those it waits for have arrived."""

from dataclasses import replace

import numpy as np

from ingest.vocab import EdgeKind
from replay.graph.arrays import Bool, Int8, Int64
from replay.graph.csr import EdgeList, concatenate
from replay.graph.layout import Parts
from replay.graph.rules.base import Found, edge_list


def collective(parts: Parts) -> Found:
    """Edges arrival -> meeting -> transfer, or arrival -> transfer where not all wait for all.

    Who waits for some (partners of sends and receives, receivers of a root) gets an edge from the
    arrival of each; who waits for all and began before the last had arrived one from each arrival
    that its transfer followed. Members with an edge left out, because the recording contradicts
    it, are counted. Edges of sends and receives are of kind `P2P`.
    """
    layout, member, meetings = parts.layout, parts.recorded.member, parts.meetings
    meet = layout.meet_of_collective[member.collective]
    arrive, transfer = layout.arrive_of_member, layout.transfer_of_member
    whole = member.waits_for_all & ~meetings.early
    lists = [
        _edges(arrive, meet, meetings.edge),
        _edges(meet[whole], transfer[whole], meetings.edge[whole]),
        _of_early_members(parts),
        _from_own_arrival(parts),
        _from_awaited(parts),
    ]
    left_out = meetings.early.copy()
    awaited = parts.recorded.awaited
    left_out[awaited.member[(awaited.other >= 0) & ~meetings.followed]] = True
    return Found(edges=concatenate(lists), contradicted=int(left_out.sum()))


def _edges(src: Int64, dst: Int64, kind: Int8, *, from_start: Bool | bool = False) -> EdgeList:
    """Recorded edges without a lag; every end is a task."""
    edges = edge_list(src, dst, lag_ns=0, kind=EdgeKind.COLLECTIVE, from_start=from_start)
    return replace(edges, kind=kind)


def _from_own_arrival(parts: Parts) -> EdgeList:
    """Who does not wait for all moves no data before it is there; what it waits outside counts."""
    layout, meetings = parts.layout, parts.meetings
    some = np.flatnonzero(~parts.recorded.member.waits_for_all)
    return _edges(
        layout.arrive_of_member[some],
        layout.transfer_of_member[some],
        meetings.edge[some],
        from_start=~meetings.lacks_partner[some],
    )


def _from_awaited(parts: Parts) -> EdgeList:
    """Whom a member waits for let it go when they start, however long they wait themselves."""
    layout, meetings, awaited = parts.layout, parts.meetings, parts.recorded.awaited
    kept = np.flatnonzero((awaited.other >= 0) & meetings.followed)
    member = awaited.member[kept]
    return _edges(
        layout.arrive_of_member[awaited.other[kept]],
        layout.transfer_of_member[member],
        meetings.edge[member],
        from_start=True,
    )


def _of_early_members(parts: Parts) -> EdgeList:
    member, meetings, layout = parts.recorded.member, parts.meetings, parts.layout
    order = np.argsort(member.collective, kind="stable")
    first = np.searchsorted(member.collective[order], np.arange(len(layout.meet_of_collective) + 1))
    src, dst = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    kind = [np.zeros(0, np.int8)]
    for early in np.flatnonzero(meetings.early):
        number = member.collective[early]
        peers = order[first[number] : first[number + 1]]
        before = peers[(member.ts_ns[peers] <= meetings.go_ns[early])]
        src.append(layout.arrive_of_member[before])
        dst.append(np.full(len(before), layout.transfer_of_member[early]))
        kind.append(np.full(len(before), meetings.edge[early]))
    return _edges(np.concatenate(src), np.concatenate(dst), np.concatenate(kind), from_start=True)
