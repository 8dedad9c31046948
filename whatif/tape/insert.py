"""Collectives put into, and taken out of, the segments of a tape."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ingest.vocab import EdgeKind, TaskKind
from replay.graph.arrays import NONE, Bool, Edges, TaskGraph
from whatif.tape.inserting.edges import wired
from whatif.tape.inserting.rows import Insertions, Waits, rows_of
from whatif.tape.inserting.tasks import with_tasks
from whatif.tape.segments import Tape


def inserted(tape: Tape, additions: Sequence[Insertions]) -> Tape:
    """The tape with more collectives.

    Members ARRIVE behind their task, MEET, and TRANSFER. On a device one holds up its stream, or
    runs on a stream of its own and is awaited by event. On the host it runs on a link of its own,
    and the thread waits for it.
    """
    additions = [each for each in additions if len(each.after)]
    if not additions:
        return tape
    rows = rows_of(tape.graph, additions)
    waits = Waits.of(tape, rows)
    made = with_tasks(tape, additions, rows, waits)
    return replace(made.tape, graph=wired(made, rows, waits))


def without(tape: Tape, collectives: Bool) -> Tape:
    """The tape whose chosen collectives take no time and join nobody.

    Neither do the calls that launched only them. What they ordered stays in order.
    """
    graph = tape.graph
    tasks, calls = graph.tasks, graph.collectives
    of_call = np.append(collectives, False)[tasks.collective]
    member = np.isin(tasks.kind, (TaskKind.ARRIVE, TaskKind.TRANSFER))
    gone = of_call & member & ~tasks.fixed
    if not gone.any():
        return tape
    gone |= _launched_only(graph, gone)
    early_ns = np.minimum(tasks.residual_ns + tasks.dur_ns, 0)
    changed = replace(
        tasks,
        dur_ns=np.where(gone, 0, tasks.dur_ns),
        residual_ns=np.where(gone, early_ns, tasks.residual_ns),
    )
    alone = np.where(collectives, 1, calls.members_expected).astype(np.int32)
    freed = replace(
        graph,
        tasks=changed,
        edges=_alone(graph, gone),
        collectives=replace(
            calls,
            members_expected=alone,
            members_seen=np.minimum(calls.members_seen, alone).astype(np.int32),
            transfer_ns=np.where(collectives, 0, calls.transfer_ns),
            outside_wait_low_ns=np.where(collectives, 0, calls.outside_wait_low_ns),
            outside_wait_high_ns=np.where(collectives, 0, calls.outside_wait_high_ns),
        ),
    )
    return replace(tape, graph=freed)


def _launched_only(graph: TaskGraph, gone: Bool) -> Bool:
    tasks = graph.tasks
    launched = tasks.caller != NONE
    all_of = np.bincount(tasks.caller[launched], minlength=graph.n_tasks)
    gone_of = np.bincount(tasks.caller[launched & gone], minlength=graph.n_tasks)
    only: Bool = (all_of > 0) & (all_of == gone_of) & (tasks.kind == TaskKind.HOST_CALL)
    return only & ~tasks.fixed


def _alone(graph: TaskGraph, gone: Bool) -> Edges:
    """Members that are gone wait for their own arrival only, and for no lag."""
    edges, tasks = graph.edges, graph.tasks
    dst = np.repeat(np.arange(graph.n_tasks), np.diff(edges.start))
    into = gone[dst]
    met = np.isin(edges.kind, (EdgeKind.COLLECTIVE, EdgeKind.P2P))
    own = into & met & (tasks.kind[dst] == TaskKind.TRANSFER)
    return replace(
        edges,
        src=np.where(own, dst - 1, edges.src).astype(np.int32),
        lag_ns=np.where(into, np.minimum(edges.lag_ns, 0), edges.lag_ns),
    )
