"""Programs -> a task graph in which new ranks run segments of recorded ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ingest.errors import ScenarioError
from replay.engine.run import replay
from replay.graph.arrays import Edges, Int32, Int64, TaskGraph
from replay.graph.csr import (
    EdgeList,
    by_destination,
    concatenate,
    task_label,
    topological_order,
)
from replay.graph.scans import kahn
from whatif.tape.carried import inner_edges, outer_edges
from whatif.tape.closing import boundaries_of
from whatif.tape.copies import (
    Copies,
    gradients_of,
    held,
    origins,
    releases,
    residuals,
    tape_of,
    task_columns,
    with_values,
)
from whatif.tape.instances import Instances, instances_of
from whatif.tape.lanes import NewLanes, Stretches, new_lanes, order_edges, stretches_of
from whatif.tape.meetings import Meetings, collective_columns, meeting_edges, meetings_of
from whatif.tape.messages import (
    Messages,
    message_tasks,
    messages_of,
    with_messages,
)
from whatif.tape.posting import message_edges
from whatif.tape.reel import Reel, reel_of
from whatif.tape.segments import Assembled, Program, Tape
from whatif.tape.turns import turn_edges


def original(tape: Tape) -> tuple[Program, ...]:
    """The programs that the recorded ranks ran."""
    segments = tape.segments
    return tuple(
        Program(
            rank=info.rank,
            like=info.rank,
            stage=0,
            segment=mine.astype(np.int32),
            step=segments.step[mine],
            layer=segments.layer[mine],
            micro_batch=segments.micro_batch[mine],
        )
        for info in tape.graph.ranks
        for mine in [np.flatnonzero(segments.rank == info.rank)]
    )


def assemble(tape: Tape, programs: Sequence[Program], *, world_size: int) -> Assembled:
    """Put segments together.

    Of the original programs the result replays as the graph of the tape, to the nanosecond.

    Raises:
        ScenarioError: the programs let tasks wait for each other.
    """
    reel = reel_of(tape)
    made = instances_of(reel, programs)
    lanes = new_lanes(reel, made)
    parts = _Parts(
        reel=reel,
        made=made,
        stretches=stretches_of(reel, made, lanes),
        meetings=meetings_of(reel, made),
        messages=messages_of(reel, made),
    )
    copies = Copies.of(made, parts.meetings, parts.messages)
    wired = _wired(parts, lanes, copies)
    graph = replace(_graph(parts, lanes, copies, wired), world_size=world_size)
    start_ns = replay(graph).start_ns
    grown = replace(
        graph,
        tasks=replace(graph.tasks, ts_ns=start_ns.copy()),
        gradients=gradients_of(reel, made, start_ns),
    )
    return Assembled(tape=tape_of(reel, made, copies, grown), dropped_edges=wired.dropped)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What the new graph is made of."""

    reel: Reel
    made: Instances
    stretches: Stretches
    meetings: Meetings
    messages: Messages


def _graph(parts: _Parts, lanes: NewLanes, copies: Copies, wired: "_Wired") -> TaskGraph:
    """The new graph with the times of the recording."""
    reel, made, messages = parts.reel, parts.made, parts.messages
    graph = reel.tape.graph
    names = (*graph.names, messages.name) if messages.count else graph.names
    tasks = task_columns(reel, made, lanes, parts.meetings, copies)
    if messages.count:
        own = message_tasks(made, messages, lanes, parts.meetings, wired.callers)
        tasks = with_values(tasks, {**own, "name": (own["kind"][0], len(graph.names))})
    calls, groups = with_messages(made, messages, *collective_columns(reel, made, parts.meetings))
    infos = {info.rank: info for info in graph.ranks}
    return replace(
        graph,
        tasks=replace(tasks, release_ns=wired.release_ns, residual_ns=wired.residual_ns),
        edges=wired.edges,
        order=_order(wired, task_label(tasks, names)),
        collectives=calls,
        boundaries=boundaries_of(reel, made, lanes, parts.stretches, messages),
        lanes=lanes.lanes,
        groups=groups,
        ranks=tuple(replace(infos[one.like], rank=one.rank) for one in made.programs),
        names=names,
        origin=origins(graph, copies.source),
    )


def _order(wired: "_Wired", label: Callable[[int], str]) -> Int32:
    """The order of the new tasks.

    Raises:
        ScenarioError: the programs let tasks wait for each other.
    """
    if len(wired.order) == len(wired.release_ns):
        return wired.order
    try:
        return topological_order(wired.edges, label)
    except AssertionError as cycle:
        raise ScenarioError(
            f"the work of the run cannot be put in that order: {cycle}",
            hint="`replay describe TRACE` shows how it was understood; --describe FILE says it",
        ) from cycle


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wired:
    """What holds the new tasks back."""

    edges: Edges
    order: Int32
    """Task ids, every source before its destination; some are missing where that cannot be."""
    release_ns: Int64
    residual_ns: Int64
    callers: Int64
    """Of the ends of messages."""
    dropped: int


def _wired(parts: _Parts, lanes: NewLanes, copies: Copies) -> _Wired:
    reel, made, stretches = parts.reel, parts.made, parts.stretches
    carried = outer_edges(reel, made, lanes, stretches)
    met = meeting_edges(reel, made, parts.meetings)
    first_meet = parts.meetings.n_before(made)
    sent = message_edges(reel, made, stretches, parts.messages, first_meet)
    release_ns, releasing = releases(reel, made, copies)
    certain = concatenate(
        [
            inner_edges(reel, made),
            carried.edges,
            met.edges,
            order_edges(reel, made, stretches),
            turn_edges(reel, made, stretches),
            releasing,
            sent.edges,
        ]
    )
    disturbed = np.zeros(len(copies), bool)
    disturbed[: made.n_tasks] = carried.disturbed
    disturbed[met.disturbed] = True
    disturbed[stretches.first[~stretches.as_recorded]] = True
    # What comes from later work, and where receives are posted, may close cycles: it is left out
    # in turn until none is left.
    for backward, posting in ((True, True), (False, True), (False, False)):
        listed = [certain]
        if backward:
            listed.append(carried.backward)
        if posting:
            listed.append(sent.posting)
        free_ns = release_ns if posting else _released(release_ns, sent.posting.dst)
        edges, released_ns = _held_edges(parts, copies, concatenate(listed), free_ns)
        order = kahn(edges.start, edges.src)
        if len(order) == len(copies):
            break
        disturbed[carried.backward.dst] = True
    return _Wired(
        edges=edges,
        order=order,
        release_ns=released_ns,
        residual_ns=residuals(reel, copies, disturbed),
        callers=sent.caller,
        dropped=carried.dropped + (0 if backward else len(carried.backward)),
    )


def _released(release_ns: Int64, task: Int32) -> Int64:
    """Releases with those of some tasks at the very beginning."""
    found = release_ns.copy()
    found[task] = 0
    return found


def _held_edges(
    parts: _Parts, copies: Copies, listed: EdgeList, release_ns: Int64
) -> tuple[Edges, Int64]:
    """The edges, with more for tasks that nothing holds back; and what releases the others."""
    degree = np.bincount(listed.dst, minlength=len(copies))
    holding, released_ns = held(parts.reel, parts.made, copies, degree, release_ns)
    return by_destination(concatenate([listed, holding]), len(copies)), released_ns
