"""Busy time of devices, shared out over their tasks so that it adds up to it."""

import numpy as np

from replay.engine.schedule import Schedule
from replay.graph.arrays import Bool, Int64, TaskGraph


def exclusive_ns(
    graph: TaskGraph, schedule: Schedule, chosen: Bool, window_ns: tuple[int, int]
) -> Int64:
    """Time of each task in which no chosen task that began earlier on its device runs.

    Over the tasks of a device it adds up to the union of their times inside the window: what runs
    beside an earlier one counts as the earlier one's.

    Args:
        graph: of the run.
        schedule: of the graph.
        chosen: device tasks to share the time out over, shape (tasks,).
        window_ns: only what lies in it.

    Returns:
        ns, shape (tasks,); 0 for all others.
    """
    found = np.zeros(graph.n_tasks, np.int64)
    ids = np.flatnonzero(chosen)
    devices = np.array([lane.device for lane in graph.lanes] or [-1], np.int64)
    device = devices[graph.tasks.lane[ids]]
    rank = graph.tasks.rank[ids].astype(np.int64)
    lo_ns = np.clip(schedule.start_ns[ids], *window_ns)
    hi_ns = np.clip(schedule.end_ns[ids], *window_ns)
    order = np.lexsort((ids, lo_ns, device, rank))
    changes = np.flatnonzero(
        (rank[order][1:] != rank[order][:-1]) | (device[order][1:] != device[order][:-1])
    )
    for mine in np.split(order, changes + 1):
        if not len(mine):
            continue
        reach_ns = np.maximum.accumulate(np.concatenate([[window_ns[0]], hi_ns[mine]]))[:-1]
        free_from_ns = np.maximum(lo_ns[mine], reach_ns)
        found[ids[mine]] = np.maximum(hi_ns[mine] - free_from_ns, 0)
    return found
