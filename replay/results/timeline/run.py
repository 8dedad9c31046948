"""Tracks of the whole run: its steps and its critical path."""

import numpy as np

from ingest.vocab import EdgeKind
from replay.graph.arrays import NONE, Int64
from replay.results.critical_path import cut_at_steps
from replay.results.metrics import step_times
from replay.results.timeline.events import Slices, slices, text_of
from replay.results.timeline.told import NO_CAUSE, Told, Version, labels_of


def step_slices(version: Version) -> Slices:
    """The steps of the run."""
    boundary_ns = step_times(version.graph, version.schedule).boundary_ns
    names = [
        f"step {number}" if version.graph.steps_recorded else "the recording"
        for number in version.graph.steps
    ]
    return slices(
        boundary_ns[:-1],
        boundary_ns[1:],
        np.array(names, object),
        "step",
        args=lambda places: [""] * len(places),
    )


def path_slices(told: Told) -> Slices:
    """The critical path of the run's steps, without a hole: lags, what has no cause, and tasks."""
    version = told.version
    boundary_ns = step_times(version.graph, version.schedule).boundary_ns
    pieces = cut_at_steps(told.path, boundary_ns)
    lengths = np.stack([pieces.lag_ns, pieces.residual_ns, pieces.span_ns], axis=1)
    ends_ns = pieces.ts_ns[:, None] + np.cumsum(lengths, axis=1)
    starts_ns = ends_ns - lengths
    keep = np.flatnonzero(lengths.reshape(-1) > 0)
    piece, part = keep // 3, keep % 3
    task, edge = pieces.task[piece], pieces.edge[piece]
    labels = labels_of(told, task)
    kind = np.where(edge >= 0, version.graph.edges.kind[edge], NONE)
    for at in np.flatnonzero(part == 0).tolist():
        known = kind[at] >= 0
        word = EdgeKind(int(kind[at])).name.lower() if known else "release"
        labels[at] = f"lag: {word}"
    labels[part == 1] = NO_CAUSE

    def args(places: Int64) -> list[str]:
        return [
            text_of({"at": told.place(one), "replay": told.of(one)})
            for one in task[places].tolist()
        ]

    return slices(
        starts_ns.reshape(-1)[keep],
        ends_ns.reshape(-1)[keep],
        labels,
        "critical_path",
        args=args,
    )
