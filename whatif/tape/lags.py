"""How long what waits in a run usually waits after what it waits for."""

import numpy as np

from ingest.vocab import EdgeKind
from replay.graph.arrays import Edges
from replay.graph.csr import EdgeList


def usual_ns(edges: Edges | EdgeList, kind: EdgeKind, default_ns: int) -> int:
    """Median lag of a kind behind the end of its source, ns; the default where the run has none."""
    chosen = (edges.kind == kind) & ~edges.from_start & (edges.lag_ns >= 0)
    return int(np.median(edges.lag_ns[chosen])) if chosen.any() else default_ns
