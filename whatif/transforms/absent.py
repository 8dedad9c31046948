"""Collectives of which members are not in the files: what of their time is waiting for those.

No scenario changes it by itself; it says how the unchanged run is split, and how far that may be
wrong (DESIGN section 5, "one rank alone").
"""

from dataclasses import replace

import numpy as np

from ingest.vocab import TaskKind
from replay.engine.run import replay
from replay.graph.arrays import Int64, TaskGraph
from replay.graph.outside import incomplete, outside_waiters
from whatif.models.bound import Bound
from whatif.models.collectives import model
from whatif.recorded import NOTHING_SAID, Recorded
from whatif.transforms.base import Context, with_durations
from whatif.transforms.machine import known
from whatif.transforms.reach import Level, levels
from whatif.transforms.retime import calls_of

AS_RECORDED = "the range holds the case that members that are not in the files arrive as recorded"


def with_modelled_transfers(graph: TaskGraph, recorded: Recorded = NOTHING_SAID) -> TaskGraph:
    """The graph with the transfers of incomplete collectives bounded by the collective model.

    Where too few equal calls tell the transfer (their lower bound is 0), it is that of the model on
    the recorded hardware, never above what was measured; the rest waits for the missing ranks. The
    lower bound is the model's without latency. Starts, ends and the replayed step stay.
    """
    calls = graph.collectives
    sized = calls.size_bytes > 0
    if not (incomplete(calls) & sized).any():
        return graph
    machine = known(graph, Context(recorded=recorded))
    columns = calls_of(graph, machine.places, np.arange(len(sized)))
    nominal, least = (
        model.model_ns(columns, machine.links, bound) for bound in (Bound.NOMINAL, Bound.LOW)
    )
    level = levels(graph, machine.links, machine.places)
    told = incomplete(calls) & sized & (level == Level.SCALE_UP) & np.isfinite(nominal + least)
    if not told.any():
        return graph
    nominal_ns, least_ns = (
        np.rint(np.where(told, time, 0)).astype(np.int64) for time in (nominal, least)
    )
    untold = told & (calls.outside_wait_low_ns == 0)
    transfer_ns = np.where(untold, np.minimum(nominal_ns, calls.transfer_ns), calls.transfer_ns)
    low_ns = np.where(untold, least_ns, np.minimum(least_ns, calls.outside_wait_low_ns))
    low_ns = np.where(told, np.minimum(low_ns, transfer_ns), calls.outside_wait_low_ns)
    return replace(
        with_transfers(graph, transfer_ns),
        collectives=replace(calls, transfer_ns=transfer_ns, outside_wait_low_ns=low_ns),
    )


def with_transfers(graph: TaskGraph, transfer_ns: Int64) -> TaskGraph:
    """The graph with another split of members into waiting for missing ranks and transfer.

    Args:
        graph: of the unchanged run.
        transfer_ns: per collective; where it differs from that of the graph, the split of members
            that may wait for missing ranks moves.
    """
    tasks, calls = graph.tasks, graph.collectives
    moved_ns = np.append(transfer_ns - calls.transfer_ns, 0)[tasks.collective]
    arrive = np.flatnonzero(outside_waiters(graph).either & (moved_ns != 0)) - 1
    moved_ns = np.minimum(moved_ns[arrive], tasks.dur_ns[arrive])
    dur_ns = tasks.dur_ns.copy()
    moved_ns = np.maximum(moved_ns, -dur_ns[arrive + 1])
    dur_ns[arrive] -= moved_ns
    dur_ns[arrive + 1] += moved_ns
    split = with_durations(graph, dur_ns)
    return replace(split, tasks=replace(split.tasks, ts_ns=replay(split).start_ns))


def arriving_as_recorded(graph: TaskGraph) -> TaskGraph | None:
    """The graph where missing ranks arrive when they did, not some time after those that are here.

    None where no collective lacks members, or a scenario took their time away.
    """
    tasks, waiters = graph.tasks, outside_waiters(graph)
    transfer = waiters.either & (tasks.dur_ns > 0)
    if not transfer.any():
        return None
    kept = np.zeros(len(graph.collectives.kind) + 1, bool)
    kept[tasks.collective[transfer]] = True
    pinned = (tasks.kind == TaskKind.MEET) & kept[tasks.collective]
    pinned |= transfer & waiters.alone
    release_ns = np.where(pinned, np.maximum(tasks.release_ns, tasks.ts_ns), tasks.release_ns)
    arrive = (tasks.kind == TaskKind.ARRIVE) & kept[tasks.collective]
    dur_ns = np.where(arrive, 0, tasks.dur_ns)
    return replace(graph, tasks=replace(tasks, dur_ns=dur_ns, release_ns=release_ns))
