"""Replay many variants of a task graph at once: ends out, no schedules."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from replay.engine.kernel import WIDTH, tile_pass
from replay.graph.arrays import Int32, Int64, TaskGraph


def replay_batch(graphs: Sequence[TaskGraph], at: Int32 | Int64 | None = None) -> Int64:
    """Ends of the tasks `at` (of all, when None) in the replay of every graph.

    Graphs that differ in durations alone (all else the very same arrays, as transforms share what
    they do not change) are visited together, 16 at a time; one that differs in more costs about as
    much as a replay of its own. The answers are those of `replay`, to the nanosecond. A graph of
    which start times or binding edges are wanted is replayed by itself.

    Beside the graphs and the answer, the work takes 128 bytes per task and processor, however many
    graphs there are.

    Args:
        graphs: variants of one graph, with as many tasks each.
        at: task ids.

    Returns:
        Nanoseconds, shape (graphs, tasks asked for).
    """
    n_tasks = graphs[0].n_tasks if graphs else 0
    lengths = {len(graph.tasks.dur_ns) for graph in graphs} | {len(graph.order) for graph in graphs}
    assert lengths <= {n_tasks}, "the compiled pass trusts the lengths of the columns"
    asked = np.arange(n_tasks) if at is None else at
    ends_ns = np.empty((len(graphs), len(asked)), np.int64)
    tiles = list(_tiles(graphs))
    workers = max(min(len(tiles), os.cpu_count() or 1), 1)

    def work(worker: int) -> None:
        tile_ns = np.empty((n_tasks, WIDTH), np.int64)
        for chosen in tiles[worker::workers]:
            _visit([graphs[place] for place in chosen], tile_ns)
            ends_ns[chosen] = tile_ns[asked, : len(chosen)].T

    with ThreadPoolExecutor(workers) as pool:  # the compiled pass holds no lock
        list(pool.map(work, range(workers)))
    return ends_ns


def _tiles(graphs: Sequence[TaskGraph]) -> Iterator[list[int]]:
    """Positions of at most WIDTH graphs that share all arrays but the durations."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for place, graph in enumerate(graphs):
        edges, tasks = graph.edges, graph.tasks
        shared = (
            *(graph.order, tasks.release_ns, tasks.residual_ns),
            *(edges.start, edges.src, edges.lag_ns, edges.from_start),
        )
        alike.setdefault(tuple(map(id, shared)), []).append(place)
    for places in alike.values():
        for first in range(0, len(places), WIDTH):
            yield places[first : first + WIDTH]


def _visit(graphs: Sequence[TaskGraph], tile_ns: Int64) -> None:
    """Write the ends of each graph to its column of the tile; columns beyond repeat the last."""
    durations = [np.ascontiguousarray(graph.tasks.dur_ns, np.int64) for graph in graphs]
    at = [column.ctypes.data for column in durations]
    at += at[-1:] * (WIDTH - len(at))
    first, edges = graphs[0], graphs[0].edges
    tile_pass(
        first.order,
        edges.start,
        edges.src,
        edges.lag_ns,
        edges.from_start,
        first.tasks.release_ns,
        first.tasks.residual_ns,
        np.array(at, np.int64),
        tile_ns,
    )
