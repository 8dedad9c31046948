"""Edges of the recording between and inside segments, carried over to their copies."""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import EdgeKind
from replay.graph.arrays import NONE, Bool, Int64
from replay.graph.csr import EdgeList
from whatif.tape.counterparts import alike, class_of, counterparts, followed
from whatif.tape.instances import Instances
from whatif.tape.lanes import NewLanes, Stretches
from whatif.tape.reel import ORDER, Reel
from whatif.tape.spans import Grouped, latest, numbered

OF_A_FULL_DEVICE = (EdgeKind.QUEUE_FULL, EdgeKind.SM_FULL)
"""What was full then need not be so in another order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """Edges of the new graph, and what became of those of the recording."""

    edges: EdgeList
    backward: EdgeList
    """Edges from work that the host issues later: without them the graph is free of cycles."""
    disturbed: Bool
    """Per new task: an edge into it is gone, or comes from something that only stands for what the
    recording had."""
    dropped: int


def moved(edges: EdgeList, row: Int64, src: Int64, dst: Int64) -> EdgeList:
    """Recorded edges between other tasks."""
    return EdgeList(
        src=src.astype(np.int32),
        dst=dst.astype(np.int32),
        lag_ns=edges.lag_ns[row],
        kind=edges.kind[row],
        evidence=edges.evidence[row],
        from_start=edges.from_start[row],
    )


def inner_edges(reel: Reel, made: Instances) -> EdgeList:
    """Edges inside each instance."""
    instance, segment = made.by_segment
    at, row = reel.inside.gathered(segment)
    base = made.base[instance[at]]
    edges = reel.edges
    src, dst = base + reel.local[edges.src[row]], base + reel.local[edges.dst[row]]
    return moved(edges, row, src, dst)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Links:
    """Pairs of segments that edges join, each with its edges."""

    src: Int64
    dst: Int64
    edges: Grouped
    """Rows of the edges of each pair."""


def outer_edges(reel: Reel, made: Instances, lanes: NewLanes, stretches: Stretches) -> Carried:
    """Edges between segments but those of collectives, from the counterpart of their source.

    That is a task of the latest instance of the same segment, before the destination in its
    program, whose step, layer and micro-batch stand to the destination's as in the recording; else
    of any segment of the same part and direction that does; else of the latest of that part and
    direction; else there is none. What waited for all that its source's lane had been given does so
    again (`followed`). Order along a lane is carried over only where the lane's neighbours are as
    recorded.
    """
    links = _links(reel)
    of_destination = Grouped.of(links.dst, reel.n_segments)
    instance, segment = made.by_segment
    at, link = of_destination.gathered(segment)
    found = _sources(reel, made, instance[at], link, links)
    turn, row = links.edges.gathered(link)
    dst, later = instance[at][turn], found.later[turn]
    edges = reel.edges
    task = edges.src[row].astype(np.int64)
    source = counterparts(reel, made, found.instance[turn], task)
    sure = found.sure[turn] & (source >= 0)
    ends = followed(reel, made, lanes, stretches, dst, row)
    takes = (ends >= 0) & ~later
    takes &= (edges.kind[row] != EdgeKind.EVENT_WAIT) | ~sure | alike(reel, made, ends, task)
    source = np.where(takes, ends, source)
    sure = np.where(takes, made.task[ends] == task, sure)
    new_dst = made.base[dst] + reel.local[edges.dst[row]]
    order = np.isin(edges.kind[row], ORDER) & _same_lane(reel, row)
    keep = (source >= 0) & (~order | _kept_order(reel, made, stretches, dst, row))
    keep &= sure | ~np.isin(edges.kind[row], OF_A_FULL_DEVICE)
    disturbed = np.zeros(made.n_tasks, bool)
    disturbed[new_dst[~keep | ~sure]] = True
    chosen, back = keep & ~later, keep & later
    return Carried(
        edges=moved(edges, row[chosen], source[chosen], new_dst[chosen]),
        backward=moved(edges, row[back], source[back], new_dst[back]),
        disturbed=disturbed,
        dropped=int((~keep & ~order).sum()),
    )


def _same_lane(reel: Reel, row: Int64) -> Bool:
    lane = reel.tape.graph.tasks.lane
    same: Bool = lane[reel.edges.src[row]] == lane[reel.edges.dst[row]]
    return same


def _links(reel: Reel) -> _Links:
    edges = reel.edges
    src, dst = reel.segment[edges.src], reel.segment[edges.dst]
    row = np.flatnonzero((src != dst) & (src >= 0) & (dst >= 0) & ~reel.meeting)
    number, n_links = numbered((dst[row], src[row]))
    grouped = Grouped.of(number, n_links)
    some = row[grouped.row[grouped.first[:-1]]] if n_links else row
    return _Links(
        src=src[some], dst=dst[some], edges=Grouped(first=grouped.first, row=row[grouped.row])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sources:
    """Rows are pairs of an instance and a link into it."""

    instance: Int64
    """The counterpart of the source; -1 for none."""
    sure: Bool
    """It stands to the destination as in the recording."""
    later: Bool
    """It comes later in its program, or is of another one."""


def _sources(reel: Reel, made: Instances, instance: Int64, link: Int64, links: _Links) -> _Sources:
    src, dst = links.src[link], links.dst[link]
    across = reel.rank[src] != reel.rank[dst]
    later = across | (reel.place[src] > reel.place[dst])
    program = made.program[instance]
    if across.any():
        stands_for = {one.like: at for at, one in reversed(list(enumerate(made.programs)))}
        program = program.copy()
        rank = reel.rank[src[across]].tolist()
        program[across] = [stands_for.get(one, NONE) for one in rank]
    found = np.full(len(link), NONE, np.int64)
    sure = np.zeros(len(link), bool)
    whole = _Wanted(reel=reel, made=made, program=program, instance=instance, src=src, dst=dst)
    for exact in (True, False):
        left = np.flatnonzero(found < 0) if exact else np.flatnonzero((found < 0) & ~later)
        found[left] = whole.some(left).found(later[left], exact=exact)
        sure[left] = found[left] >= 0
    left = np.flatnonzero((found < 0) & ~later)
    found[left] = whole.some(left).of_class()
    return _Sources(instance=found, sure=sure, later=later)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """Sources looked for: rows with the destination's instance and the recorded segments."""

    reel: Reel
    made: Instances
    program: Int64
    instance: Int64
    src: Int64
    dst: Int64

    def some(self, rows: Int64) -> "_Wanted":
        """Some of them."""
        return _Wanted(
            reel=self.reel,
            made=self.made,
            program=self.program[rows],
            instance=self.instance[rows],
            src=self.src[rows],
            dst=self.dst[rows],
        )

    def found(self, later: Bool, *, exact: bool) -> Int64:
        """Those that stand to the destination as recorded; of the same segment or the like of it.

        Of sources that come later the last of all is as good as any: programs in which they would
        close a cycle lose them.
        """
        reel, made = self.reel, self.made
        row, segment = made.by_segment
        ident = segment if exact else class_of(reel)[segment]
        wanted_ident = self.src if exact else class_of(reel)[self.src]
        columns, asked, pattern = [], [], np.zeros(len(self.src), np.int64)
        for name in ("step", "layer", "micro_batch"):
            recorded, now = getattr(reel, name), getattr(made, name)
            both = (recorded[self.src] >= 0) & (recorded[self.dst] >= 0)
            apart = recorded[self.dst] - recorded[self.src]
            columns.append(now[row])
            asked.append(np.where(both, now[self.instance] - apart, NONE))
            pattern = 2 * pattern + both
        before = np.where(later, len(row), np.searchsorted(row, self.instance))
        found = np.full(len(self.src), NONE, np.int64)
        for bits in np.unique(pattern).tolist():
            mine = np.flatnonzero(pattern == bits)
            used = [at for at in range(len(columns)) if bits & (4 >> at)]
            place = latest(
                [made.program[row], ident, *(columns[at] for at in used)],
                [self.program[mine], wanted_ident[mine], *(asked[at][mine] for at in used)],
                before[mine],
            )
            found[mine] = np.where(place >= 0, row[place], NONE)
        return found

    def of_class(self) -> Int64:
        """The latest of the same part and direction."""
        row, segment = self.made.by_segment
        place = latest(
            [self.made.program[row], class_of(self.reel)[segment]],
            [self.program, class_of(self.reel)[self.src]],
            np.searchsorted(row, self.instance),
        )
        return np.where(place >= 0, row[place], NONE)


def _kept_order(
    reel: Reel, made: Instances, stretches: Stretches, instance: Int64, row: Int64
) -> Bool:
    """Per carried edge, whether the lane of its destination keeps its neighbours there."""
    of_segment = reel.lanes.of_segment
    instances, segment = made.by_segment
    count = of_segment.count[segment]
    first = np.full(len(made), NONE, np.int64)
    first[instances] = np.cumsum(count) - count  # stretches are those rows, instance by instance
    place = np.empty(len(of_segment.row), np.int64)
    place[of_segment.row] = np.arange(len(of_segment.row)) - np.repeat(
        of_segment.first[:-1], of_segment.count
    )
    kept: Bool = stretches.as_recorded[first[instance] + place[reel.lanes.row[reel.edges.dst[row]]]]
    return kept
