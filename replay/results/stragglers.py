"""Who comes last to the collectives, what the others wait because of it, and why it was late."""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import LaneKind, TaskKind
from replay.engine.schedule import Schedule
from replay.graph import thresholds
from replay.graph.arrays import NONE, Bool, Int64, TaskGraph
from replay.graph.facts import GraphFacts
from replay.graph.outside import outside_waiters
from replay.results.causes import NOT_FETCHING, Cause, Fetching, fetching_ns, task_causes
from replay.results.cover import cover, disjoint
from replay.results.metrics import step_times
from replay.results.scans import walk_back

NOT_RESOLVED = -1
"""Cause of a lateness below what the clocks can tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meetings:
    """Collectives with two members or more in these files, in the order of `graph.collectives`.

    An exchange in which several members let their partners wait has one row for each of these.
    """

    collective: Int64
    """Index into `graph.collectives`."""
    step: Int64
    """Index into `graph.steps` of the step in which the last member was issued; -1 outside."""
    last_rank: Int64
    late_ns: Int64
    """Last arrival minus the median arrival of those that waited for it."""
    skew_ns: Int64
    """Last minus first arrival."""
    caused_wait_ns: Int64
    """Sum of what these waited."""
    exposed_wait_ns: Int64
    """Part of that inside the steps in which no compute and no transfer hid the waiting."""
    resolved: Bool
    """The skew is above the uncertainty of the clocks of its ranks."""
    cause: Int64
    """Cause of the lateness; NOT_RESOLVED below the clocks' uncertainty."""
    task: Int64
    """Task of the last rank that took most of the time before its arrival; -1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLateness:
    """What one rank made others wait, and waited itself."""

    rank: int
    others: int
    """Ranks that it meets."""
    meetings: int
    times_last: int
    times_resolved: int
    """Of these, by more than the clocks are uncertain."""
    late_ns: int
    """Median lateness of these, 0 without any."""
    caused_wait_ns: int
    """Sum over the other members of the collectives that it resolvedly came last to."""
    own_wait_ns: int
    """Sum over all its collectives."""
    cost_ns: int
    """What a rank that it meets waits for it, exposed, per step (mean over them)."""
    causes: dict[Cause, int]
    """Exposed wait that it caused inside the steps, by cause, largest first, ns in all."""
    task_name: str
    """The tasks of this name took most of the time before at least half of that wait; empty where
    no name did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stragglers:
    """Lateness by collective and by rank."""

    meetings: Meetings
    ranks: tuple[RankLateness, ...]
    """By cost, the most expensive first."""
    outside_wait_ns: int
    """What a rank waits per step, on average, for members that are not in these files: the fastest
    of equal calls is taken for the transfer."""
    outside_wait_high_ns: int
    """The same, if calls with too few equals to compare with did nothing but wait."""

    @property
    def worst(self) -> RankLateness | None:
        """The rank that costs the others most; None when no rank makes others wait."""
        return self.ranks[0] if self.ranks and self.ranks[0].cost_ns > 0 else None


@dataclass(frozen=True, slots=True)
class _Members:
    """Members of the collectives: arrival, start of the transfer, and what lies between."""

    arrive: Int64
    """Task; the transfer is the next one."""
    rank: Int64
    collective: Int64
    at_ns: Int64
    go_ns: Int64
    wait_ns: Int64
    """For members in these files."""
    outside_ns: Int64
    """For members that are not."""


def stragglers(
    graph: TaskGraph,
    schedule: Schedule,
    facts: GraphFacts,
    fetching: Fetching = NOT_FETCHING,
) -> Stragglers:
    """Lateness on the calibrated schedule.

    The last member of a collective is late. Why: the chain that its arrival hangs on is walked back
    to the moment at which its communicator had last met (a collective of it had ended before the
    first member came to this one; else the beginning) and its time added up by cause; the cause
    that exceeds the median of the other members most is named.
    """
    members = _members(graph, schedule)
    waits = _waits_for(graph, schedule, members)
    exposed_ns = _exposed(graph, schedule, members)
    spent_ns, longest = _segments(graph, schedule, members, fetching)
    uncertain_ns = _uncertainty(graph, facts)
    rows = [
        _meeting(members, mine, late, exposed_ns, spent_ns, uncertain_ns) for late, mine in waits
    ]
    last = np.array([late for late, _ in waits], np.int64)
    columns = np.array(rows, np.int64).reshape(-1, 6).T
    meetings = Meetings(
        collective=members.collective[last],
        step=graph.tasks.step[members.arrive[last]].astype(np.int64),
        last_rank=members.rank[last],
        late_ns=columns[0],
        skew_ns=columns[1],
        caused_wait_ns=columns[2],
        exposed_wait_ns=columns[3],
        resolved=columns[4].astype(bool),
        cause=columns[5],
        task=longest[last],
    )
    ranks = [_of_rank(graph, meetings, members, int(info.rank)) for info in graph.ranks]
    ranks.sort(key=lambda late: (-late.cost_ns, -late.caused_wait_ns, late.rank))
    outside_ns, most_ns = _outside(graph, schedule, members)
    return Stragglers(
        meetings=meetings,
        ranks=tuple(ranks),
        outside_wait_ns=outside_ns,
        outside_wait_high_ns=most_ns,
    )


def _members(graph: TaskGraph, schedule: Schedule) -> _Members:
    tasks = graph.tasks
    arrive = np.flatnonzero(tasks.kind == TaskKind.ARRIVE)
    at_ns, go_ns = schedule.start_ns[arrive], schedule.start_ns[arrive + 1]
    outside_ns = np.minimum(tasks.dur_ns[arrive], np.maximum(go_ns - at_ns, 0))
    return _Members(
        arrive=arrive,
        rank=tasks.rank[arrive].astype(np.int64),
        collective=tasks.collective[arrive].astype(np.int64),
        at_ns=at_ns,
        go_ns=go_ns,
        wait_ns=np.maximum(go_ns - at_ns, 0) - outside_ns,
        outside_ns=outside_ns,
    )


def _waits_for(graph: TaskGraph, schedule: Schedule, members: _Members) -> list[tuple[int, Int64]]:
    """Who let others wait: a late member, and it with all whose transfer its arrival held back.

    Where all wait for all that is the last one of a collective, with everyone. In an exchange of
    several pairs each late partner counts on its own. Where nobody waited for anybody: the last
    one. Ordered by collective and arrival.
    """
    order = np.lexsort((members.at_ns, members.collective))
    first = np.searchsorted(members.collective[order], np.arange(len(graph.collectives.kind) + 1))
    several = np.flatnonzero(np.diff(first) > 1)
    last = np.full(len(graph.collectives.kind), NONE, np.int64)
    last[several] = order[first[several + 1] - 1]
    held_by = _held_by(graph, schedule, members, last)
    by_holder = np.argsort(held_by, kind="stable")
    place = np.searchsorted(held_by[by_holder], np.arange(len(held_by) + 1))
    waited = held_by != np.arange(len(held_by))
    late = np.unique(held_by[waited & (last[members.collective] != NONE)])
    unwaited = np.setdiff1d(several, members.collective[late])
    found = [
        (one, np.union1d(by_holder[place[one] : place[one + 1]], one)) for one in late.tolist()
    ]
    found += [
        (int(last[number]), order[first[number] : first[number + 1]])
        for number in unwaited.tolist()
    ]
    return sorted(found, key=lambda row: (members.collective[row[0]], members.at_ns[row[0]]))


def _held_by(graph: TaskGraph, schedule: Schedule, members: _Members, last: Int64) -> Int64:
    """Per member the one whose arrival bound its transfer.

    The last of the collective where all wait for all, and where a wait follows the own arrival:
    the clocks do not tell for whom.
    """
    edge = schedule.blocked_by[members.arrive + 1]
    source = np.where(edge >= 0, graph.edges.src[edge], NONE)
    member_of_task = np.full(graph.n_tasks + 1, NONE, np.int64)
    member_of_task[members.arrive] = np.arange(len(members.arrive))
    held_by = member_of_task[source]
    own = (held_by == np.arange(len(held_by))) & (members.wait_ns > 0)
    return np.where((held_by == NONE) | own, last[members.collective], held_by)


def _meeting(
    members: _Members,
    mine: Int64,
    late: int,
    exposed_ns: Int64,
    spent_ns: Int64,
    uncertain_ns: dict[int, int],
) -> tuple[int, int, int, int, bool, int]:
    """Lateness, skew, caused and exposed wait, whether the clocks resolve it, and its cause."""
    others = mine[members.rank[mine] != members.rank[late]]
    if not len(others):
        return 0, 0, 0, 0, False, NOT_RESOLVED
    at_ns = members.at_ns[mine]
    skew_ns = int(at_ns.max() - at_ns.min())
    late_ns = int(members.at_ns[late] - np.median(members.at_ns[others]))
    resolved = skew_ns > max(uncertain_ns[int(rank)] for rank in members.rank[mine])
    grown_ns = spent_ns[late] - np.median(spent_ns[others], axis=0)
    cause = int(np.argmax(grown_ns))
    if grown_ns[cause] < thresholds.MOSTLY_FRAC * late_ns:
        cause = int(Cause.UNKNOWN)
    return (
        late_ns,
        skew_ns,
        int(members.wait_ns[others].sum()),
        int(exposed_ns[others].sum()),
        resolved,
        cause if resolved else NOT_RESOLVED,
    )


def _uncertainty(graph: TaskGraph, facts: GraphFacts) -> dict[int, int]:
    """Uncertainty of each rank's clock, ns; 0 where nothing had to be aligned."""
    known = {file.rank: file.clock_uncertainty_ns or 0 for file in facts.files}
    return {info.rank: known.get(info.rank, 0) for info in graph.ranks}


def _segments(
    graph: TaskGraph, schedule: Schedule, members: _Members, fetching: Fetching
) -> tuple[Int64, Int64]:
    """Per member: time by cause since its communicator had last met, and its longest task.

    Shapes (members, causes) and (members,).
    """
    tasks, edges = graph.tasks, graph.edges
    met_ns = _last_met(graph, schedule, members)
    spent_ns, longest = walk_back(
        members.arrive,
        met_ns[members.collective],
        schedule.start_ns,
        schedule.end_ns,
        schedule.blocked_by,
        edges.start,
        edges.src,
        edges.from_start,
        tasks.kind,
        tasks.rank,
        task_causes(graph),
        fetching_ns(graph, fetching),
    )
    return spent_ns, longest


def _last_met(graph: TaskGraph, schedule: Schedule, members: _Members) -> Int64:
    """Per collective: latest end of one of its group before the first member arrived, ns.

    The beginning of the recording where there is none.
    """
    n_collectives = len(graph.collectives.kind)
    begin_ns = int(schedule.start_ns.min()) if graph.n_tasks else 0
    first_ns = np.full(n_collectives, np.iinfo(np.int64).max)
    end_ns = np.full(n_collectives, begin_ns)
    np.minimum.at(first_ns, members.collective, members.at_ns)
    np.maximum.at(end_ns, members.collective, schedule.end_ns[members.arrive + 1])
    met_ns = np.full(n_collectives, begin_ns)
    for group in np.unique(graph.collectives.group):
        mine = np.flatnonzero(graph.collectives.group == group)
        ends_ns = np.sort(end_ns[mine])
        place = np.searchsorted(ends_ns, first_ns[mine], side="right") - 1
        met_ns[mine] = np.where(place >= 0, ends_ns[place], begin_ns)
    return met_ns


def _outside(graph: TaskGraph, schedule: Schedule, members: _Members) -> tuple[int, int]:
    """Waiting for members that are not in the files, ns per step and rank: estimate and most."""
    calls = graph.collectives
    boundary_ns = step_times(graph, schedule).boundary_ns
    inside = (members.at_ns >= boundary_ns[0]) & (members.at_ns < boundary_ns[-1])
    partial = inside & outside_waiters(graph).either[members.arrive + 1]
    estimate_ns = members.outside_ns[partial]
    after_ns = schedule.end_ns[members.arrive[partial] + 1] - members.at_ns[partial]
    after_ns = after_ns - members.wait_ns[partial]
    most_ns = after_ns - calls.outside_wait_low_ns[members.collective[partial]]
    share = len(graph.ranks) * len(graph.steps)
    return (
        round(int(estimate_ns.sum()) / share),
        round(int(np.maximum(most_ns, estimate_ns).sum()) / share),
    )


def _exposed(graph: TaskGraph, schedule: Schedule, members: _Members) -> Int64:
    """Per member: its waiting for others inside the steps that nothing of its rank hides.

    What two members of a rank wait at once counts for the one that came first. Without device
    work, host work of the threads that carry steps hides waiting.
    """
    window = step_times(graph, schedule).boundary_ns[[0, -1]]
    exposed_ns = np.zeros(len(members.arrive), np.int64)
    busy = _busy(graph)
    busy_rank = graph.tasks.rank[busy]
    for rank in np.unique(members.rank):
        mine = np.flatnonzero(members.rank == rank)
        mine = mine[np.argsort(members.at_ns[mine], kind="stable")]
        end_ns = members.at_ns[mine] + members.wait_ns[mine]
        lo_ns, hi_ns = disjoint(np.clip(members.at_ns[mine], *window), np.clip(end_ns, *window))
        own = busy[np.searchsorted(busy_rank, rank) : np.searchsorted(busy_rank, rank, "right")]
        hiding = cover(schedule.start_ns[own], schedule.end_ns[own])
        exposed_ns[mine] = hi_ns - lo_ns - hiding.within(lo_ns, hi_ns)
    return exposed_ns


def _busy(graph: TaskGraph) -> Int64:
    """Tasks beside which waiting of their rank costs nothing, by rank."""
    tasks = graph.tasks
    kind, links, carrying = tasks.kind, _lanes(graph, links=True), _lanes(graph, links=False)
    on_device = (kind >= TaskKind.KERNEL) & (kind <= TaskKind.TRANSFER) & ~links
    with_device = np.isin(tasks.rank, np.unique(tasks.rank[on_device]))
    host = ~with_device & ((kind == TaskKind.HOST_WORK) | (kind == TaskKind.HOST_CALL))
    with_steps = np.isin(tasks.rank, np.unique(tasks.rank[host & carrying]))
    host &= carrying | ~with_steps
    ids = np.flatnonzero((kind == TaskKind.KERNEL) | (kind == TaskKind.TRANSFER) | host)
    return ids[np.argsort(tasks.rank[ids], kind="stable")]


def _lanes(graph: TaskGraph, *, links: bool) -> Bool:
    """Per task: it runs on a link, or on a thread that carries steps."""
    chosen = [lane.kind == LaneKind.LINK if links else lane.steps for lane in graph.lanes]
    of_task: Bool = np.array([*chosen, False], bool)[graph.tasks.lane]
    return of_task


def _of_rank(graph: TaskGraph, meetings: Meetings, members: _Members, rank: int) -> RankLateness:
    mine = members.rank == rank
    met = mine & np.isin(members.collective, meetings.collective)
    last = meetings.last_rank == rank
    sure = last & meetings.resolved
    shared = np.isin(members.collective, members.collective[met])
    others = len(np.unique(members.rank[shared & ~mine]))
    causes = {
        cause: int(meetings.exposed_wait_ns[sure & (meetings.cause == cause)].sum())
        for cause in Cause
    }
    exposed_ns = int(meetings.exposed_wait_ns[sure].sum())
    by_size = sorted(causes.items(), key=lambda item: -item[1])
    return RankLateness(
        rank=rank,
        others=others,
        meetings=int(met.sum()),
        times_last=int(last.sum()),
        times_resolved=int(sure.sum()),
        late_ns=int(np.median(meetings.late_ns[sure])) if sure.any() else 0,
        caused_wait_ns=int(meetings.caused_wait_ns[sure].sum()),
        own_wait_ns=int(members.wait_ns[met].sum()),
        cost_ns=round(exposed_ns / (max(others, 1) * len(graph.steps))),
        causes={cause: ns for cause, ns in by_size if ns > 0},
        task_name=_name_of_most(graph, meetings, sure),
    )


def _name_of_most(graph: TaskGraph, meetings: Meetings, chosen: Bool) -> str:
    """Name of the longest tasks before most of the exposed wait."""
    wait_ns = np.where(chosen, meetings.exposed_wait_ns, 0)
    known = np.flatnonzero((wait_ns > 0) & (meetings.task >= 0))
    known = known[graph.tasks.name[meetings.task[known]] >= 0]
    if not len(known):
        return ""
    total_ns = np.bincount(graph.tasks.name[meetings.task[known]], weights=wait_ns[known])
    most = int(np.argmax(total_ns))
    return graph.names[most] if total_ns[most] >= thresholds.MOSTLY_FRAC * wait_ns.sum() else ""
