"""Programs -> a task graph in which new ranks run segments of recorded ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from replay.engine.run import replay
from replay.graph.arrays import Edges, Int64
from replay.graph.csr import by_destination, concatenate, task_label, topological_order
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
)
from whatif.tape.instances import Instances, instances_of
from whatif.tape.lanes import Stretches, new_lanes, order_edges, stretches_of
from whatif.tape.meetings import Meetings, collective_columns, meeting_edges, meetings_of
from whatif.tape.reel import Reel, reel_of
from whatif.tape.segments import Assembled, Program, Tape


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
    """
    reel = reel_of(tape)
    made = instances_of(reel, programs)
    lanes = new_lanes(reel, made)
    stretches = stretches_of(reel, made, lanes)
    meetings = meetings_of(reel, made)
    copies = Copies.of(made, meetings)
    wired = _wired(reel, made, stretches, meetings, copies)
    tasks = task_columns(reel, made, lanes, meetings, copies)
    collectives, groups = collective_columns(reel, made, meetings)
    graph = tape.graph
    infos = {info.rank: info for info in graph.ranks}
    grown = replace(
        graph,
        tasks=replace(tasks, release_ns=wired.release_ns, residual_ns=wired.residual_ns),
        edges=wired.edges,
        order=topological_order(wired.edges, task_label(tasks, graph.names)),
        collectives=collectives,
        boundaries=boundaries_of(reel, made, lanes, stretches),
        lanes=lanes.lanes,
        groups=groups,
        ranks=tuple(replace(infos[one.like], rank=one.rank) for one in programs),
        world_size=world_size,
        origin=origins(graph, copies.source),
    )
    start_ns = replay(grown).start_ns
    grown = replace(
        grown,
        tasks=replace(grown.tasks, ts_ns=start_ns.copy()),
        gradients=gradients_of(reel, made, start_ns),
    )
    return Assembled(tape=tape_of(reel, made, copies, grown), dropped_edges=wired.dropped)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wired:
    """What holds the new tasks back."""

    edges: Edges
    release_ns: Int64
    residual_ns: Int64
    dropped: int


def _wired(
    reel: Reel, made: Instances, stretches: Stretches, meetings: Meetings, copies: Copies
) -> _Wired:
    carried = outer_edges(reel, made, stretches.as_recorded)
    met = meeting_edges(reel, made, meetings)
    release_ns, releasing = releases(reel, made, copies)
    certain = concatenate(
        [
            inner_edges(reel, made),
            carried.edges,
            met.edges,
            order_edges(reel, made, stretches),
            releasing,
        ]
    )
    disturbed = np.zeros(len(copies), bool)
    disturbed[: made.n_tasks] = carried.disturbed
    disturbed[met.disturbed] = True
    disturbed[stretches.first[~stretches.as_recorded]] = True
    dropped = carried.dropped
    for backward in (
        carried.backward,
        carried.backward.select(np.zeros(len(carried.backward), bool)),
    ):
        listed = concatenate([certain, backward])
        degree = np.bincount(listed.dst, minlength=len(copies))
        holding, released_ns = held(reel, made, copies, degree, release_ns)
        edges = by_destination(concatenate([listed, holding]), len(copies))
        if len(kahn(edges.start, edges.src)) == len(copies):
            break
        disturbed[carried.backward.dst] = True
        dropped += len(backward)
    return _Wired(
        edges=edges,
        release_ns=released_ns,
        residual_ns=residuals(reel, copies, disturbed),
        dropped=dropped,
    )
