"""FLOPs that the recorded shapes of operators tell, and how much of the matrix work they cover."""

from dataclasses import dataclass
from pathlib import Path

from ingest.store import Store
from ingest.vocab import LaneKind
from replay.graph.arrays import TaskGraph
from replay.graph.facts import GraphFacts
from replay.graph.thresholds import MATRIX_COVERED_FRAC

SQL = Path(__file__).parent / "sql"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFlops:
    """Of the chosen steps and ranks; recomputed activations count as often as they are computed."""

    per_step: float
    """FLOPs of a mean step, over all chosen ranks together."""
    by_dtype: dict[str, float]
    """Share of them by element type as recorded (`c10::BFloat16`), the largest first."""
    matrix_ns: int
    """Time of the kernels of matrix products, convolution and attention in the chosen steps."""
    counted_ns: int
    """Part of it that operators with known FLOPs launched."""
    devices: int
    """Devices of the chosen ranks that do something."""

    @property
    def covered_frac(self) -> float:
        """Share of that time whose FLOPs are known; 0 without any."""
        return self.counted_ns / self.matrix_ns if self.matrix_ns else 0.0

    @property
    def tell_utilisation(self) -> bool:
        """Enough of the work is covered for its FLOPs to stand for all."""
        return self.per_step > 0 and self.covered_frac >= MATRIX_COVERED_FRAC


NO_FLOPS = RecordedFlops(per_step=0.0, by_dtype={}, matrix_ns=0, counted_ns=0, devices=0)
"""Of a recording without shapes."""


def find_flops(store: Store, graph: TaskGraph, facts: GraphFacts) -> RecordedFlops:
    """The FLOPs of the steps and ranks of a graph, from the store that it was built of.

    Operators count in the step in which the host ran them, as does what they launched.
    """
    if not any(file.has_shapes for file in facts.files):
        return NO_FLOPS
    params: dict[str, object] = {
        "trace_ids": [file.trace_id for file in facts.files],
        "steps": list(graph.steps),
        "whole": not graph.steps_recorded,
    }
    found = store.arrays_from_file(SQL / "flops.sql", params)
    flops = dict(zip(found["dtype"].tolist(), found["flops"].tolist(), strict=True))
    total = sum(flops.values())
    spent = store.arrays_from_file(SQL / "matrix_time.sql", params)
    return RecordedFlops(
        per_step=total / max(len(graph.steps), 1),
        by_dtype={dtype: of_type / total for dtype, of_type in flops.items() if total},
        matrix_ns=int(spent["matrix_ns"][0]),
        counted_ns=int(spent["counted_ns"][0]),
        devices=len(
            {(lane.rank, lane.device) for lane in graph.lanes if lane.kind == LaneKind.STREAM}
        ),
    )
