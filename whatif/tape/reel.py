"""A tape with all that putting segments together asks of the recording, found once."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ingest.vocab import EdgeKind, TaskKind
from replay.engine.places import places
from replay.engine.run import replay
from replay.graph.arrays import NONE, Bool, Int8, Int32, Int64, Lane, TaskGraph
from replay.graph.csr import EdgeList, listed_edges
from replay.graph.hosts import host_tasks
from whatif.tape.segments import OUTSIDE, Tape
from whatif.tape.spans import Grouped, numbered

ORDER = (EdgeKind.PROGRAM_ORDER, EdgeKind.STREAM_ORDER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reel:
    """Columns of the recording.

    Segments are those of the tape and, after them, two per rank: what it did before its steps, and
    what after them (`before`, `after`).
    """

    tape: Tape
    rank: Int64
    """Per segment, its recorded rank."""
    step: Int64
    part: Int64
    direction: Int64
    layer: Int64
    micro_batch: Int64
    place: Int64
    """Per segment: place among those of its rank."""
    before: dict[int, int]
    """Per rank: segment of what it did before its steps."""
    after: dict[int, int]
    segment: Int64
    """Per task; -1 for meetings."""
    tasks: Grouped
    """Tasks of each segment, in the order of their ids."""
    local: Int64
    """Per task: its place in its segment."""
    moment: Int64
    """Per task: its place in an order that all edges follow."""
    start_ns: Int64
    """Per task, as it replays."""
    binding: Int64
    """Per task: the edge that bound its start; -1 for its release."""
    edges: EdgeList
    inside: Grouped
    """Edges of each segment whose ends are both in it."""
    meeting: Bool
    """Per edge: between members of a collective, or a member and the meeting."""
    lanes: "Occupied"
    role: Int64
    """Per recorded lane, a number of its role: equal on lanes of other ranks that do the same."""

    @property
    def n_own(self) -> int:
        """Segments of the tape itself."""
        return len(self.tape.segments)

    @property
    def n_segments(self) -> int:
        """All of them."""
        return len(self.rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupied:
    """Which segments have tasks on which lanes: rows by lane and in the order of the rank."""

    segment: Int64
    lane: Int64
    first: Int64
    """First task."""
    last: Int64
    previous: Int64
    """Segment that has the lane before; -1."""
    at: Int64
    """Where its tasks begin in `tasks`."""
    count: Int64
    tasks: Int64
    """Tasks by row, then as they follow one another."""
    row: Int64
    """Per task its row; -1 for meetings."""
    turn: Int64
    """Per task its place among those of its row."""
    of_segment: Grouped
    """Rows of each segment."""


def reel_of(tape: Tape) -> Reel:
    """Look at a tape from all sides."""
    graph, segments = tape.graph, tape.segments
    tasks, n_own = graph.tasks, len(segments)
    ranks = list(dict.fromkeys(lane.rank for lane in graph.lanes))
    moment = places(graph)
    segment = _segments(tape, moment, ranks)
    n_segments = n_own + 2 * len(ranks)

    def column(values: Int64 | Int32 | Int8, outside: Int64) -> Int64:
        return np.concatenate([values.astype(np.int64), outside])

    nothing = np.full(2 * len(ranks), NONE, np.int64)
    rank = column(segments.rank, np.repeat(np.array(ranks, np.int64), 2))
    place = column(np.arange(n_own), np.tile([NONE, n_own], len(ranks)))
    grouped = Grouped.of(segment, n_segments)
    local = np.zeros(graph.n_tasks, np.int64)
    local[grouped.row] = np.arange(len(grouped.row)) - np.repeat(grouped.first[:-1], grouped.count)
    schedule = replay(graph)
    edges = listed_edges(graph)
    inner, meeting = _sorts_of_edges(tape, edges, segment)
    return Reel(
        tape=tape,
        rank=rank,
        step=column(segments.step, nothing),
        part=column(segments.part, nothing),
        direction=column(segments.direction, nothing),
        layer=column(segments.layer, nothing),
        micro_batch=column(segments.micro_batch, nothing),
        place=place,
        before={one: n_own + 2 * at for at, one in enumerate(ranks)},
        after={one: n_own + 2 * at + 1 for at, one in enumerate(ranks)},
        segment=segment,
        tasks=grouped,
        local=local,
        moment=moment,
        start_ns=schedule.start_ns,
        binding=schedule.blocked_by,
        edges=edges,
        inside=Grouped.of(np.where(inner, segment[edges.dst], NONE), n_segments),
        meeting=meeting,
        role=_roles(graph),
        lanes=_occupied(tasks.lane.astype(np.int64), segment, place, moment),
    )


def lane_words(lanes: Iterable[Lane]) -> list[tuple[str, int, int]]:
    """Per lane its role, its kind, and how many lanes of its rank have had both before."""
    seen: dict[tuple[int, str, int], int] = defaultdict(int)
    found = []
    for lane in lanes:
        key = (lane.rank, lane.role, lane.kind)
        found.append((lane.role, lane.kind, seen[key]))
        seen[key] += 1
    return found


def _roles(graph: TaskGraph) -> Int64:
    words = lane_words(graph.lanes)
    number = {word: at for at, word in enumerate(dict.fromkeys(words))}
    return np.array([number[word] for word in words], np.int64)


def _segments(tape: Tape, moment: Int64, ranks: list[int]) -> Int64:
    """Per task its segment; of what lies outside, whether that is before the steps or after."""
    tasks = tape.graph.tasks
    segment = tape.segment.astype(np.int64)
    transfer = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)
    segment[transfer] = segment[transfer - 1]
    host = host_tasks(tape.graph)
    outside = segment == OUTSIDE
    later = np.zeros(len(segment), bool)
    for at, rank in enumerate(ranks):
        mine = tasks.rank == rank
        moved = mine & ~outside
        moved = moved & host if (moved & host).any() else moved
        out = np.flatnonzero(mine & outside)
        end = moment[moved].max(initial=NONE)
        later[out] = (moment[out] > end) & ~tasks.fixed[out]
        segment[out] = len(tape.segments) + 2 * at
    called = np.flatnonzero(outside & (tasks.caller >= 0))
    later[called] = later[tasks.caller[called]]
    segment[transfer] = np.where(outside[transfer], segment[transfer - 1], segment[transfer])
    later[transfer] = later[transfer - 1]
    segment[outside & later] += 1
    segment[tasks.kind == TaskKind.MEET] = NONE
    return segment


def _sorts_of_edges(tape: Tape, edges: EdgeList, segment: Int64) -> tuple[Bool, Bool]:
    """Edges inside a segment; edges of a collective that are not."""
    collective = tape.graph.tasks.collective
    src, dst = segment[edges.src], segment[edges.dst]
    inner = (src == dst) & (src >= 0)
    same = (collective[edges.src] == collective[edges.dst]) & (collective[edges.dst] >= 0)
    return inner, same & ~inner


def _occupied(lane: Int64, segment: Int64, place: Int64, moment: Int64) -> Occupied:
    task = np.flatnonzero(segment >= 0)
    order = task[np.lexsort((moment[task], place[segment[task]], lane[task]))]
    number, _ = numbered((lane[order], place[segment[order]]))
    first = np.flatnonzero(np.diff(number, prepend=NONE))
    last = np.append(first[1:], len(order)) - 1
    rows = order[first]
    previous = np.full(len(rows), NONE, np.int64)
    same = lane[rows[1:]] == lane[rows[:-1]]
    previous[1:][same] = segment[rows[:-1]][same]
    row = np.full(len(lane), NONE, np.int64)
    row[order] = number
    turn = np.zeros(len(lane), np.int64)
    turn[order] = np.arange(len(order)) - first[number]
    return Occupied(
        at=first,
        count=last - first + 1,
        tasks=order,
        row=row,
        turn=turn,
        segment=segment[rows],
        lane=lane[rows],
        first=rows,
        last=order[last],
        previous=previous,
        of_segment=Grouped.of(segment[rows], len(place)),
    )
