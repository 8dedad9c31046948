"""Python frames around what host threads do without operators, where stacks were recorded."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.store import Store
from ingest.vocab import TaskKind
from replay.graph import thresholds
from replay.graph.arrays import NONE, Int64, TaskGraph
from replay.graph.facts import GraphFacts

SQL = Path(__file__).parent / "sql"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_NUMBER_OF_MODULE = re.compile(r"(?<=\w)_\d+$")


def host_frames(store: Store, graph: TaskGraph, facts: GraphFacts) -> Mapping[int, str]:
    """Per host task that no operator tells: the innermost Python frame around most of it.

    Asked for silence of unknown cause, and for work outside of operators that is no mere gap.
    Tasks without a row, or without a recorded frame, are left out.
    """
    if not any(file.has_stacks for file in facts.files):
        return {}
    tasks = graph.tasks
    outside = (tasks.kind == TaskKind.HOST_WORK) & (tasks.op < 0)
    asked = (outside & (tasks.dur_ns >= thresholds.SHORT_GAP_NS)) | (tasks.unexplained_ns > 0)
    asked = np.flatnonzero(asked & (tasks.slice_id >= 0))
    rows = store.arrays_from_file(SQL / "frames.sql", {"slice_ids": tasks.slice_id[asked].tolist()})
    found = _innermost(
        rows, tasks.slice_id[asked], tasks.ts_ns[asked], tasks.ts_ns[asked] + tasks.dur_ns[asked]
    )
    told = np.flatnonzero(found >= 0)
    name = rows["name_id"].astype(np.int64)[found[told]]
    return {
        task: _of_any_run(graph.names[number])
        for task, number in zip(asked[told].tolist(), name.tolist(), strict=True)
    }


def _innermost(
    rows: Mapping[str, NDArray[Any]], slice_id: Int64, lo_ns: Int64, hi_ns: Int64
) -> Int64:
    """Row of the innermost frame that covers at least half of each stretch; -1 for none.

    Such a frame is open in the middle of the stretch: it is the last row begun by then on the
    thread, or one around it.

    Args:
        rows: of `frames.sql`.
        slice_id: a row of the thread of each stretch.
        lo_ns: begin of each stretch.
        hi_ns: its end.
    """
    ids, ts_ns, end_ns = (rows[name].astype(np.int64) for name in ("id", "ts_ns", "end_ns"))
    thread, is_frame = rows["utid"].astype(np.int64), rows["is_frame"].astype(bool)
    by_id = np.argsort(ids)
    place = np.searchsorted(ids, rows["parent_id"].astype(np.int64), sorter=by_id)
    has_parent = rows["parent_id"].astype(np.int64) >= 0
    parent = np.where(has_parent, by_id[np.minimum(place, len(ids) - 1)], NONE)
    mine = thread[by_id[np.searchsorted(ids, slice_id, sorter=by_id)]]
    at = _last_begun(thread, ts_ns, mine, (lo_ns + hi_ns) // 2)
    while True:
        covered_ns = np.minimum(end_ns[at], hi_ns) - np.maximum(ts_ns[at], lo_ns)
        unfit = (at >= 0) & ~(is_frame[at] & (2 * covered_ns >= hi_ns - lo_ns))
        if not unfit.any():
            return at
        at = np.where(unfit, parent[at], at)


def _last_begun(thread: Int64, ts_ns: Int64, wanted: Int64, moment_ns: Int64) -> Int64:
    """The last row of each wanted thread that begins by a moment; -1 for none."""
    first = np.searchsorted(thread, wanted, side="left")
    after = np.searchsorted(thread, wanted, side="right")
    last = np.full(len(wanted), NONE, np.int64)
    for begin in np.unique(first):
        here = np.flatnonzero(first == begin)
        end = int(after[here[0]])
        place = np.searchsorted(ts_ns[begin:end], moment_ns[here], side="right") - 1
        last[here] = np.where(place >= 0, begin + place, NONE)
    return last


def _of_any_run(name: str) -> str:
    """The frame without addresses and numbers of modules, which differ between runs and layers."""
    if name.startswith("nn.Module: "):
        return _NUMBER_OF_MODULE.sub("", name)
    return _ADDRESS.sub("", name)
