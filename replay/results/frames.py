"""Python frames around what host threads do without operators, where stacks were recorded."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ingest.store import Store
from replay.graph.arrays import TaskGraph

SQL = Path(__file__).parent / "sql"


def silent_frames(store: Store, graph: TaskGraph) -> Mapping[int, str]:
    """Per host task with silence of unknown cause: the innermost Python frame around most of it.

    Tasks without a row, or without a recorded frame, are left out.
    """
    tasks = graph.tasks
    silent = np.flatnonzero((tasks.unexplained_ns > 0) & (tasks.slice_id >= 0))
    if not len(silent):
        return {}
    lo_ns = tasks.ts_ns[silent]
    rows = store.arrays_from_file(
        SQL / "frames.sql",
        {
            "task": silent.tolist(),
            "slice_id": tasks.slice_id[silent].tolist(),
            "lo_ns": lo_ns.tolist(),
            "hi_ns": (lo_ns + tasks.dur_ns[silent]).tolist(),
        },
    )
    return dict(zip(rows["task"].tolist(), rows["name"].tolist(), strict=True))
