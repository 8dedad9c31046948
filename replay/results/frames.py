"""Python frames around what host threads do without operators, where stacks were recorded."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ingest.store import Store
from ingest.vocab import TaskKind
from replay.graph import thresholds
from replay.graph.arrays import TaskGraph
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
    lo_ns = tasks.ts_ns[asked]
    rows = store.arrays_from_file(
        SQL / "frames.sql",
        {
            "task": asked.tolist(),
            "slice_id": tasks.slice_id[asked].tolist(),
            "lo_ns": lo_ns.tolist(),
            "hi_ns": (lo_ns + tasks.dur_ns[asked]).tolist(),
        },
    )
    names = (_of_any_run(name) for name in rows["name"].tolist())
    return dict(zip(rows["task"].tolist(), names, strict=True))


def _of_any_run(name: str) -> str:
    """The frame without addresses and numbers of modules, which differ between runs and layers."""
    if name.startswith("nn.Module: "):
        return _NUMBER_OF_MODULE.sub("", name)
    return _ADDRESS.sub("", name)
