"""An order of all tasks that edges and recorded starts agree with."""

from dataclasses import replace

import numpy as np

from replay.engine.run import replay
from replay.graph.arrays import Int64, TaskGraph


def places(graph: TaskGraph) -> Int64:
    """Place of every task in an order that all edges follow and that keeps to recorded starts.

    A task stands where it began, or where the last of those that it waits for began, if that is
    later. Edges that go forward in this order make no cycle with those of the graph.
    """
    tasks, edges = graph.tasks, graph.edges
    nothing = np.zeros(graph.n_tasks, np.int64)
    at_starts = replace(
        graph,
        tasks=replace(tasks, dur_ns=nothing, residual_ns=nothing.copy(), release_ns=tasks.ts_ns),
        edges=replace(edges, lag_ns=np.zeros_like(edges.lag_ns)),
    )
    in_order = np.empty(graph.n_tasks, np.int64)
    in_order[graph.order] = np.arange(graph.n_tasks)
    place = np.empty(graph.n_tasks, np.int64)
    place[np.lexsort((in_order, replay(at_starts).start_ns))] = np.arange(graph.n_tasks)
    return place
