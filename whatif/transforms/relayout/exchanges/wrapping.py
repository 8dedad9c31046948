"""Work of the frameworks that exchange gradients and parameters: it goes with the exchange."""

from dataclasses import replace

import numpy as np

from ingest.vocab import HOST_KINDS, TaskKind
from replay.graph.arrays import NONE, Bool, TaskGraph
from whatif.models.exchanges.volume import Along

OF_AXIS = {
    Along.SHARDS: "FSDP::",
    Along.REPLICAS: "torch::distributed::reducer",
}
"""What PyTorch calls the ranges in which it copies into and out of what is exchanged."""


def without_wrapping(graph: TaskGraph, along: Along) -> TaskGraph:
    """The graph in which copies around the exchanges of an axis take no time, nor their launches.

    Collectives themselves are left as they are.
    """
    word = OF_AXIS.get(along)
    if word is None:
        return graph
    tasks = graph.tasks
    gone = _inside(graph, word) & ~tasks.fixed & (tasks.collective == NONE)
    gone &= tasks.kind != TaskKind.HOST_WAIT
    if not gone.any():
        return graph
    on_host = np.isin(tasks.kind, [int(kind) for kind in HOST_KINDS])
    launched = (tasks.caller != NONE) & gone[tasks.caller] & (tasks.collective == NONE)
    gone = (gone & on_host) | launched
    early_ns = np.minimum(tasks.residual_ns + tasks.dur_ns, 0)
    return replace(
        graph,
        tasks=replace(
            tasks,
            dur_ns=np.where(gone, 0, tasks.dur_ns),
            residual_ns=np.where(gone, early_ns, tasks.residual_ns),
        ),
    )


def _inside(graph: TaskGraph, word: str) -> Bool:
    """Tasks that are named so, or stand inside what is."""
    tasks, scopes = graph.tasks, graph.scopes
    named = np.array([name.startswith(word) for name in graph.names] + [False], bool)
    node_inside = named[scopes.name]
    for node in range(len(node_inside)):  # a node stands behind the one around it
        parent = scopes.parent[node]
        node_inside[node] |= parent >= 0 and node_inside[parent]
    row = scopes.rows_of(tasks.slice_id)
    of_task = np.where(row >= 0, np.append(scopes.node, NONE)[row], NONE)
    around: Bool = np.append(node_inside, False)[of_task] | named[tasks.name]
    return around
