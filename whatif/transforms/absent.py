"""Collectives of which members are not in the files: what of their time is waiting for those.

No scenario changes it by itself; it says how the unchanged run is split, and how far that may be
wrong (DESIGN section 5, "one rank alone").
"""

from dataclasses import replace

import numpy as np

from ingest.units import BytesPerSecond
from ingest.vocab import TaskKind
from replay.engine.run import replay
from replay.graph.arrays import Int64, TaskGraph
from replay.graph.outside import incomplete, outside_waiters
from whatif.models import collectives as model
from whatif.models.bound import Bound
from whatif.models.hardware import find
from whatif.transforms.base import with_durations
from whatif.transforms.nvlink import inside_node, link_domain

AS_RECORDED = "the range holds the case that members that are not in the files arrive as recorded"


def with_modelled_transfers(graph: TaskGraph) -> TaskGraph:
    """The graph with the transfers of incomplete collectives bounded by the collective model.

    Where too few equal calls tell the transfer (their lower bound is 0), it is that of the model on
    the recorded hardware, never above what was measured; the rest waits for the missing ranks. The
    lower bound is the model's without latency. Starts, ends and the replayed step stay.
    """
    calls = graph.collectives
    rate = _link(graph)
    sized = calls.size_bytes > 0
    if rate is None or not (incomplete(calls) & sized).any():
        return graph
    bytes_per_s, gpus = rate
    known = incomplete(calls) & sized & ~calls.on_host & inside_node(graph, gpus)
    columns = model.Calls(
        kind=calls.kind.astype(np.int64),
        size_bytes=calls.size_bytes,
        members=calls.members_expected.astype(np.int64),
    )
    nominal_ns, least_ns = (
        np.rint(model.model_ns(columns, bytes_per_s, bound)).astype(np.int64)
        for bound in (Bound.NOMINAL, Bound.LOW)
    )
    untold = known & (calls.outside_wait_low_ns == 0)
    transfer_ns = np.where(untold, np.minimum(nominal_ns, calls.transfer_ns), calls.transfer_ns)
    low_ns = np.where(untold, least_ns, np.minimum(least_ns, calls.outside_wait_low_ns))
    low_ns = np.where(known, np.minimum(low_ns, transfer_ns), calls.outside_wait_low_ns)
    return replace(
        with_transfers(graph, transfer_ns),
        collectives=replace(calls, transfer_ns=transfer_ns, outside_wait_low_ns=low_ns),
    )


def _link(graph: TaskGraph) -> tuple[BytesPerSecond, int] | None:
    """Rate of the scale-up link and how many devices it joins; None where it is not known."""
    devices = [find(name) for name in {info.gpu for info in graph.ranks if info.gpu}]
    device = devices[0] if len(devices) == 1 else None
    if device is None or device.scale_up is None:
        return None
    rate = BytesPerSecond(device.scale_up.bytes_per_s.value)
    return rate, link_domain(graph, device).gpus


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
    if not incomplete(graph.collectives).any():
        return None
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
