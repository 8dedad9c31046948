"""Task ids: host tasks first, then device tasks, then host-side members, then meetings."""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import CollectiveKind, EdgeKind
from replay.graph import thresholds
from replay.graph.arrays import Bool, Int8, Int64
from replay.graph.blocking import BlockingCalls
from replay.graph.events import EventPairs
from replay.graph.host_tasks import HostTasks
from replay.graph.lessons import Lessons
from replay.graph.queues import FullQueues
from replay.graph.recorded import MemberRows, Recorded, take
from replay.graph.silence import Stretches
from replay.graph.streams import Streams

PAIR_KINDS = (CollectiveKind.SEND, CollectiveKind.RECV, CollectiveKind.SEND_RECV)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where each recorded row stands among the tasks."""

    n_host: int
    first_of_device: Int64
    """Per device row: its task; for a member its ARRIVE."""
    last_of_device: Int64
    """Per device row: its task; for a member its TRANSFER."""
    arrive_of_member: Int64
    transfer_of_member: Int64
    meet_of_collective: Int64
    n_tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Meetings:
    """When those that each member waits for had arrived, and from when it moved data."""

    met_ns: Int64
    """Per collective: latest arrival of its members, those that are not in the files among them."""
    outside_ns: Int64
    """Per member: how much longer members that are not in the files let it wait."""
    go_ns: Int64
    """Per member: start of its transfer."""
    early: Bool
    """Per member that waits for all: its transfer began before all had arrived."""
    lacks_partner: Bool
    """Per member that waits for some: one of these is not in the files."""
    followed: Bool
    """Per pair of `Recorded.awaited`: the transfer began after the arrival waited for."""
    edge: Int8
    """Per member: EdgeKind of what it waits for, `P2P` for sends and receives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that the edge rules read."""

    recorded: Recorded
    lessons: Lessons
    streams: Streams
    host_tasks: HostTasks
    blocking: BlockingCalls
    stretches: Stretches
    queues: FullQueues
    events: EventPairs
    graph_gaps_ns: Int64
    """Per device row: unrecorded work of its CUDA graph before it."""
    layout: Layout
    meetings: Meetings
    ts_ns: Int64
    """Per task: recorded start."""
    dur_ns: Int64


def number_tasks(recorded: Recorded, n_host: int) -> Layout:
    """Give every task its id."""
    member, device = recorded.member, recorded.device
    on_device = np.flatnonzero(member.device_row >= 0)
    is_member = np.zeros(len(device), np.int64)
    is_member[member.device_row[on_device]] = 1
    width = 1 + is_member
    first = n_host + np.cumsum(width) - width
    last = first + is_member
    n_after_device = n_host + int(width.sum())
    arrive = np.empty(len(member), np.int64)
    arrive[on_device] = first[member.device_row[on_device]]
    elsewhere = np.flatnonzero(member.device_row < 0)
    arrive[elsewhere] = n_after_device + 2 * np.arange(len(elsewhere))
    n_before_meet = n_after_device + 2 * len(elsewhere)
    n_collectives = len(recorded.collective_ids)
    return Layout(
        n_host=n_host,
        first_of_device=first,
        last_of_device=last,
        arrive_of_member=arrive,
        transfer_of_member=arrive + 1,
        meet_of_collective=n_before_meet + np.arange(n_collectives),
        n_tasks=n_before_meet + n_collectives,
    )


def find_meetings(recorded: Recorded, members_expected: Int64, kind: Int64) -> Meetings:
    """Meeting times from the starts and transfers of the members.

    Args:
        recorded: columns of all ranks.
        members_expected: per collective, how many members it has in the job.
        kind: per collective, its CollectiveKind.
    """
    member, awaited = recorded.member, recorded.awaited
    go_ns = np.clip(member.end_ns - member.transfer_ns, member.ts_ns, member.end_ns)
    last_start_ns = np.full(len(recorded.collective_ids), np.iinfo(np.int64).min)
    np.maximum.at(last_start_ns, member.collective, member.ts_ns)
    lacks_partner = np.zeros(len(member), bool)
    lacks_partner[awaited.member[awaited.other < 0]] = True
    outside_ns = np.where(
        member.waits_for_all,
        _outside_of_all(member, last_start_ns, go_ns, members_expected)[member.collective],
        np.where(lacks_partner, go_ns - _last_awaited_ns(recorded), 0),
    )
    outside_ns = np.maximum(outside_ns, 0)
    met_ns = last_start_ns.copy()
    np.maximum.at(met_ns, member.collective, member.ts_ns + outside_ns)
    late_ns = go_ns + thresholds.MEETING_TOLERANCE_NS
    paired = np.isin(kind, PAIR_KINDS)[member.collective]
    return Meetings(
        met_ns=met_ns,
        outside_ns=outside_ns,
        go_ns=go_ns,
        early=member.waits_for_all & (late_ns < met_ns[member.collective]),
        lacks_partner=lacks_partner,
        followed=take(member.ts_ns, awaited.other) <= late_ns[awaited.member],
        edge=np.where(paired, EdgeKind.P2P, EdgeKind.COLLECTIVE).astype(np.int8),
    )


def _outside_of_all(
    member: MemberRows, last_start_ns: Int64, go_ns: Int64, members_expected: Int64
) -> Int64:
    """Per collective that lacks members: from its last start to the last transfer of who waits."""
    latest_go_ns = last_start_ns.copy()
    of_all = member.waits_for_all
    np.maximum.at(latest_go_ns, member.collective[of_all], go_ns[of_all])
    seen = np.bincount(member.collective, minlength=len(last_start_ns))
    return np.where(seen < members_expected, latest_go_ns - last_start_ns, 0)


def _last_awaited_ns(recorded: Recorded) -> Int64:
    """Per member: the latest start of those it waits for one by one, its own included."""
    member, awaited = recorded.member, recorded.awaited
    last_ns = member.ts_ns.copy()
    here = awaited.other >= 0
    np.maximum.at(last_ns, awaited.member[here], member.ts_ns[awaited.other[here]])
    return last_ns
