"""What the calls of host threads do, by their names, and which of them wait for the device."""

import numpy as np

from ingest.normalise.classify import runtime_kinds
from ingest.vocab import EdgeKind, LaneKind, RuntimeKind, TaskKind
from replay.graph.arrays import NONE, Bool, Int64, TaskGraph
from replay.graph.csr import destinations

SYNCHRONISE = (RuntimeKind.DEVICE_SYNC, RuntimeKind.STREAM_SYNC, RuntimeKind.EVENT_SYNC)
IMPLIED = "implied wait"
"""Name of a wait that no recorded call explains (older profilers leave the calls out)."""


def call_kinds(graph: TaskGraph) -> Int64:
    """RuntimeKind of every call of a host thread; -1 for all other tasks."""
    tasks = graph.tasks
    calls = np.flatnonzero((tasks.kind == TaskKind.HOST_CALL) & (tasks.name >= 0))
    names, place = np.unique(tasks.name[calls], return_inverse=True)
    kinds = np.full(graph.n_tasks, NONE, np.int64)
    kinds[calls] = runtime_kinds([graph.names[name] for name in names])[place]
    return kinds


def device_waits(graph: TaskGraph) -> Bool:
    """Waits of host threads for work of a device (not for collectives that run on hosts)."""
    links = np.array([lane.kind == LaneKind.LINK for lane in graph.lanes] + [False], bool)
    edge = (graph.edges.kind == EdgeKind.HOST_SYNC) & ~links[graph.tasks.lane[graph.edges.src]]
    waits = np.zeros(graph.n_tasks, bool)
    waits[destinations(graph)[edge]] = True
    waits &= graph.tasks.kind == TaskKind.HOST_WAIT
    return waits


def call_of_wait(graph: TaskGraph, waits: Bool) -> Int64:
    """Per task: for a wait the call that it is a part of, which follows it; -1 for none."""
    tasks = graph.tasks
    call = np.full(graph.n_tasks, NONE, np.int64)
    wait = np.flatnonzero(waits[:-1])
    follows = (tasks.kind[wait + 1] == TaskKind.HOST_CALL) & (
        tasks.lane[wait + 1] == tasks.lane[wait]
    )
    call[wait[follows]] = wait[follows] + 1
    return call


def callers_of_only(graph: TaskGraph, chosen: Bool) -> Bool:
    """Calls that launched something, and nothing but chosen tasks; none of them is fixed."""
    tasks = graph.tasks
    launched = tasks.caller != NONE
    all_of = np.bincount(tasks.caller[launched], minlength=graph.n_tasks)
    chosen_of = np.bincount(tasks.caller[launched & chosen], minlength=graph.n_tasks)
    only: Bool = (all_of > 0) & (all_of == chosen_of) & (tasks.kind == TaskKind.HOST_CALL)
    return only & ~tasks.fixed


def sync_names(graph: TaskGraph) -> tuple[Int64, tuple[str, ...]]:
    """Tasks that block for the device, as numbers into the names of their calls; -1 for others.

    Waits with the call that they are a part of, and synchronising calls that found all work done.
    """
    waits = device_waits(graph)
    call = call_of_wait(graph, waits)
    named = np.where(waits & (call >= 0), graph.tasks.name[call], graph.tasks.name)
    chosen = np.isin(call_kinds(graph), [int(kind) for kind in SYNCHRONISE])
    chosen[call[call >= 0]] = True
    chosen |= waits & (call >= 0)
    names, place = np.unique(named[chosen], return_inverse=True)
    number = np.full(graph.n_tasks, NONE, np.int64)
    number[chosen] = place
    number[waits & (call < 0)] = len(names)
    found = [graph.names[name] for name in names]
    return number, (*found, IMPLIED)
