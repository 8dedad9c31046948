"""What an edge rule returns."""

from dataclasses import dataclass, field

import numpy as np

from ingest.vocab import EdgeKind, Evidence
from replay.graph.arrays import Bool, Int64
from replay.graph.csr import EdgeList
from replay.graph.lags import Typical


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Edges of one rule, the lags it found typical, and how many edges it did not make.

    `contradicted` counts dependencies left out because the source ended after the destination
    began; an edge may not contradict the recording.
    """

    edges: EdgeList
    lags: dict[str, Typical] = field(default_factory=dict)
    contradicted: int = 0


def edge_list(
    src: Int64,
    dst: Int64,
    *,
    lag_ns: Int64 | int,
    kind: EdgeKind,
    evidence: Int64 | Evidence = Evidence.RECORDED,
    from_start: Bool | bool = False,
) -> EdgeList:
    """Columns of one kind; scalars are spread, pairs with an unknown end are left out."""
    known = (src >= 0) & (dst >= 0)
    n = len(src)
    return EdgeList(
        src=src[known].astype(np.int32),
        dst=dst[known].astype(np.int32),
        lag_ns=np.broadcast_to(np.asarray(lag_ns, np.int64), n)[known].copy(),
        kind=np.full(int(known.sum()), kind, np.int8),
        evidence=np.broadcast_to(np.asarray(evidence, np.int8), n)[known].copy(),
        from_start=np.broadcast_to(np.asarray(from_start, bool), n)[known].copy(),
    )
