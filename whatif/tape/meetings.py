"""Collectives of the new ranks: which copies of members meet."""

from dataclasses import dataclass, fields, replace

import numpy as np

from ingest.vocab import TaskKind
from replay.graph.arrays import NONE, Collectives, Group, Int32, Int64
from replay.graph.csr import EdgeList
from whatif.tape.carried import moved
from whatif.tape.instances import Instances
from whatif.tape.reel import Reel
from whatif.tape.spans import Grouped, nth, numbered


@dataclass(frozen=True, slots=True, kw_only=True)
class Meetings:
    """New collectives; rows ascend with the recorded collective."""

    recorded: Int64
    """Per new collective: the recorded one."""
    member: Int64
    """New ids of the arrivals; the transfer of each comes right after it."""
    of_member: Int64
    """Collective of each of them."""
    meet: Int64
    """Per new collective: id of its meeting; -1 where the recorded one has none."""
    meet_source: Int64
    """Recorded meetings that the new ones are copies of, those of -1 left out."""

    def n_before(self, made: Instances) -> int:
        """New tasks but the meetings of messages."""
        return made.n_tasks + len(self.meet_source)

    def __len__(self) -> int:
        return len(self.recorded)


def meetings_of(reel: Reel, made: Instances) -> Meetings:
    """Members meet again: copies of one collective's, as many steps, layers, micro-batches on.

    Where a rank has several, its first meets the first of the others; where several ranks run
    copies of one recorded member, as the stages of a pipeline do, the first of those (by stage)
    meets the first of every other member's.
    """
    graph = reel.tape.graph
    tasks = graph.tasks
    source = made.task
    is_arrival = (source >= 0) & (tasks.kind[source] == TaskKind.ARRIVE)
    is_arrival &= tasks.collective[source] >= 0
    member = np.flatnonzero(is_arrival)
    call = tasks.collective[source[member]].astype(np.int64)
    instance = made.of_task[member]
    program = made.program[instance]
    names = ("step", "layer", "micro_batch")
    same = [call, *(made.shift(reel, name, instance) for name in names)]
    turn = nth(numbered([*same, program])[0])
    stage = np.array([one.stage for one in made.programs], np.int64)
    order = np.lexsort((member, stage[program]))
    copy = np.empty(len(member), np.int64)
    rank = tasks.rank[source[member]].astype(np.int64)
    copy[order] = nth(numbered([*same, turn, rank])[0][order])
    number, count = numbered([*same, turn, copy])
    recorded = np.full(count, NONE, np.int64)
    recorded[number] = call
    meet_of = np.full(len(graph.collectives.kind) + 1, NONE, np.int64)
    meetings = np.flatnonzero(tasks.kind == TaskKind.MEET)
    meet_of[tasks.collective[meetings]] = meetings
    meet_source = meet_of[recorded]
    has_meeting = meet_source >= 0
    meet = np.where(has_meeting, made.n_tasks + np.cumsum(has_meeting) - 1, NONE)
    return Meetings(
        recorded=recorded,
        member=member,
        of_member=number,
        meet=meet,
        meet_source=meet_source[has_meeting],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """Edges of collectives."""

    edges: EdgeList
    disturbed: Int64
    """New tasks that waited for a member that is not there now."""


def meeting_edges(reel: Reel, made: Instances, meetings: Meetings) -> Met:
    """Edges between members, and of members with their meeting, where both ends are there."""
    tasks, edges = reel.tape.graph.tasks, reel.edges
    row = np.flatnonzero(reel.meeting)
    of_call = Grouped.of(
        tasks.collective[edges.dst[row]].astype(np.int64), len(reel.tape.graph.collectives.kind)
    )
    call, at = of_call.gathered(meetings.recorded)
    row = row[at]
    n_recorded = reel.tape.graph.n_tasks
    ids = np.concatenate([meetings.member, meetings.member + 1, meetings.meet[meetings.meet >= 0]])
    calls = np.concatenate(
        [meetings.of_member, meetings.of_member, np.flatnonzero(meetings.meet >= 0)]
    )
    sources = np.concatenate([made.task[ids[: 2 * len(meetings.member)]], meetings.meet_source])
    key = calls * n_recorded + sources
    order = np.argsort(key, kind="stable")
    known, ids = key[order], ids[order]
    if not len(known):
        return Met(edges=moved(edges, row[:0], row[:0], row[:0]), disturbed=row[:0])

    def copies(task: Int32) -> Int64:
        wanted = call * n_recorded + task
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, ids[place], NONE)

    src, dst = copies(edges.src[row]), copies(edges.dst[row])
    both = (src >= 0) & (dst >= 0)
    return Met(
        edges=moved(edges, row[both], src[both], dst[both]),
        disturbed=dst[(src < 0) & (dst >= 0)],
    )


def collective_columns(
    reel: Reel, made: Instances, meetings: Meetings
) -> tuple[Collectives, tuple[Group, ...]]:
    """Columns of the new collectives; groups with the new ranks in place of the recorded."""
    graph = reel.tape.graph
    calls, recorded = graph.collectives, meetings.recorded
    columns = {field.name: getattr(calls, field.name)[recorded] for field in fields(calls)}
    n_now = np.bincount(meetings.of_member, minlength=len(recorded))
    arrivals = graph.tasks.collective[graph.tasks.kind == TaskKind.ARRIVE]
    n_then = np.bincount(arrivals[arrivals >= 0], minlength=len(calls.kind))
    seen = np.maximum(calls.members_seen[recorded] + n_now - n_then[recorded], 1)
    expected = np.maximum(calls.members_expected[recorded], seen)
    columns["members_seen"] = seen.astype(np.int32)
    columns["members_expected"] = expected.astype(np.int32)
    group, groups = _groups(reel, made, meetings)
    columns["group"] = group.astype(np.int32)
    return Collectives(**columns), groups


def _groups(reel: Reel, made: Instances, meetings: Meetings) -> tuple[Int64, tuple[Group, ...]]:
    """Group of each new collective: the recorded one, with new numbers where ranks have others."""
    graph = reel.tape.graph
    group = graph.collectives.group[meetings.recorded].astype(np.int64)
    program = made.program[made.of_task[meetings.member]]
    rank = np.array([one.rank for one in made.programs], np.int64)[program]
    was = graph.tasks.rank[made.task[meetings.member]]
    moves = np.zeros(len(group), bool)
    moves[meetings.of_member[rank != was]] = True
    groups = list(graph.groups)
    if not moves.any():
        return group, tuple(groups)
    by_call = Grouped.of(meetings.of_member, len(group))
    known: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
    for call in np.flatnonzero(moves).tolist():
        mine = by_call.row[by_call.first[call] : by_call.first[call + 1]]
        pairs = tuple(zip(was[mine].tolist(), rank[mine].tolist(), strict=True))
        key = (int(group[call]), pairs)
        if key not in known:
            known[key] = len(groups)
            groups.append(renamed(groups[int(group[call])], dict(pairs)))
        group[call] = known[key]
    return group, tuple(groups)


def renamed(group: Group, new: dict[int, int]) -> Group:
    """A group under new numbers; without members where they are not told.

    Of a group whose members are not all there its own ranks tell the distance between neighbours:
    the communicator of that shape which holds the new rank.
    """
    if not group.ranks:
        return group
    if all(rank in new for rank in group.ranks):
        return replace(group, ranks=tuple(new[rank] for rank in group.ranks))
    return replace(group, ranks=_holding(min(new.values()), group.ranks))


def _holding(rank: int, like: tuple[int, ...]) -> tuple[int, ...]:
    """Evenly spaced ranks as a communicator of that shape has them that holds a rank."""
    stride = like[1] - like[0] if len(like) > 1 else 1
    if stride < 1 or like != tuple(range(like[0], like[-1] + 1, stride)):
        return ()
    first = rank - rank // stride % len(like) * stride
    return tuple(range(first, first + stride * len(like), stride))
