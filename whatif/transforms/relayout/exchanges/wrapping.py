"""Work of the frameworks that exchange gradients and parameters: it goes with the exchange.

FSDP gathers parameters into flat buffers and copies gradients out of them, and DDP copies gradients
into its buckets and back, under ranges of their own.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ingest.vocab import TaskKind
from replay.graph.arrays import NONE, Bool, TaskGraph
from replay.graph.hosts import host_tasks
from whatif.models.exchanges.volume import Along
from whatif.tape.segments import Tape

OF_AXIS = {
    Along.SHARDS: "FSDP::",
    Along.REPLICAS: "torch::distributed::reducer",
}
"""What PyTorch calls these ranges."""


def without_wrapping(tape: Tape, leaving: Iterable[Along]) -> tuple[Tape, tuple[str, ...]]:
    """The tape in which copies around the exchanges of these axes take no time; what to say of it.

    Nor do their launches. Collectives and the waits for them are left as they are.
    """
    told = []
    for along in leaving:
        gone = _wrapping(tape.graph, along)
        if gone.any():
            told.append(_told(tape.graph, gone, OF_AXIS[along]))
            tape = replace(tape, graph=_without(tape.graph, gone))
    return tape, tuple(told)


def _wrapping(graph: TaskGraph, along: Along) -> Bool:
    """Tasks that an axis has beside its collectives."""
    tasks = graph.tasks
    if along not in OF_AXIS:
        return np.zeros(graph.n_tasks, bool)
    own = (tasks.collective == NONE) & ~tasks.fixed
    inside = _inside(graph, OF_AXIS[along]) & own & (tasks.kind != TaskKind.HOST_WAIT)
    launched = (tasks.caller != NONE) & inside[tasks.caller] & own
    found: Bool = (inside & host_tasks(graph)) | launched
    return found


def _without(graph: TaskGraph, gone: Bool) -> TaskGraph:
    tasks = graph.tasks
    early_ns = np.minimum(tasks.residual_ns + tasks.dur_ns, 0)
    return replace(
        graph,
        tasks=replace(
            tasks,
            dur_ns=np.where(gone, 0, tasks.dur_ns),
            residual_ns=np.where(gone, early_ns, tasks.residual_ns),
        ),
    )


def _told(graph: TaskGraph, gone: Bool, word: str) -> str:
    spent_ms = float(graph.tasks.dur_ns[gone].sum()) / 1e6
    each_ms = spent_ms / max(len(graph.ranks), 1) / max(len(graph.steps), 1)
    return f"work under `{word}` beside collectives ({each_ms:,.3g} ms per rank and step) goes too"


def _inside(graph: TaskGraph, word: str) -> Bool:
    """Tasks that are named so, or stand inside what is."""
    tasks, scopes = graph.tasks, graph.scopes
    named = np.array([name.startswith(word) for name in graph.names] + [False], bool)
    node_inside = named[scopes.name]
    for node, parent in enumerate(scopes.parent.tolist()):  # a node stands behind that around it
        if parent >= 0 and node_inside[parent]:
            node_inside[node] = True
    row = scopes.rows_of(tasks.slice_id)
    of_task = np.where(row >= 0, np.append(scopes.node, NONE)[row], NONE)
    around: Bool = np.append(node_inside, False)[of_task] | named[tasks.name]
    return around
