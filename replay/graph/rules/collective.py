"""The members of a collective meet; each moves its data when all have arrived."""

from dataclasses import replace

import numpy as np

from ingest.vocab import EdgeKind
from replay.graph.arrays import Int8, Int64
from replay.graph.csr import EdgeList, concatenate
from replay.graph.layout import Parts
from replay.graph.rules.base import Found, edge_list


def collective(parts: Parts) -> Found:
    """Edges arrival -> meeting -> transfer; a member that began earlier meets only those before.

    Such a member (of a broadcast, one with partners of its own, or one that ended before the last
    arrived) gets edges from the arrivals that its transfer followed; the edges that it would
    contradict are counted. Those of sends and receives are of kind `P2P`.
    """
    layout, member, meetings = parts.layout, parts.recorded.member, parts.meetings
    meet = layout.meet_of_collective[member.collective]
    arrive, transfer = layout.arrive_of_member, layout.transfer_of_member
    whole = ~meetings.early
    lists = [
        _edges(arrive, meet, meetings.edge),
        _edges(meet[whole], transfer[whole], meetings.edge[whole]),
        _of_early_members(parts),
    ]
    return Found(edges=concatenate(lists), contradicted=int(meetings.early.sum()))


def _edges(src: Int64, dst: Int64, kind: Int8, *, from_start: bool = False) -> EdgeList:
    """Recorded edges without a lag; every end is a task."""
    edges = edge_list(src, dst, lag_ns=0, kind=EdgeKind.COLLECTIVE, from_start=from_start)
    return replace(edges, kind=kind)


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
