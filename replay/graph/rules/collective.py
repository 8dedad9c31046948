"""The members of a collective meet; each moves its data when all have arrived."""

import numpy as np

from ingest.vocab import EdgeKind, Evidence
from replay.graph.csr import EdgeList, concatenate
from replay.graph.layout import Parts
from replay.graph.rules.base import Found, edge_list


def collective(parts: Parts) -> Found:
    """Edges arrival -> meeting -> transfer; a member that began earlier meets only those before.

    Such a member (of a broadcast, or one that ended before the last arrived) gets edges from the
    arrivals that its transfer followed; the edges that it would contradict are counted.
    """
    layout, member, meetings = parts.layout, parts.recorded.member, parts.meetings
    meet = layout.meet_of_collective[member.collective]
    arrive, transfer = layout.arrive_of_member, layout.transfer_of_member
    whole = ~meetings.early
    lists = [
        edge_list(arrive, meet, lag_ns=0, kind=EdgeKind.COLLECTIVE),
        edge_list(meet[whole], transfer[whole], lag_ns=0, kind=EdgeKind.COLLECTIVE),
        _of_early_members(parts),
    ]
    return Found(edges=concatenate(lists), contradicted=int(meetings.early.sum()))


def _of_early_members(parts: Parts) -> EdgeList:
    member, meetings, layout = parts.recorded.member, parts.meetings, parts.layout
    order = np.argsort(member.collective, kind="stable")
    first = np.searchsorted(member.collective[order], np.arange(len(layout.meet_of_collective) + 1))
    src, dst = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for early in np.flatnonzero(meetings.early):
        number = member.collective[early]
        peers = order[first[number] : first[number + 1]]
        before = peers[(member.ts_ns[peers] <= meetings.go_ns[early])]
        src.append(layout.arrive_of_member[before])
        dst.append(np.full(len(before), layout.transfer_of_member[early]))
    return edge_list(
        np.concatenate(src),
        np.concatenate(dst),
        lag_ns=0,
        kind=EdgeKind.COLLECTIVE,
        evidence=Evidence.RECORDED,
        from_start=True,
    )
