"""Columns that describe collective calls, one row per call."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Columns with one row per call."""

    kind: Int64
    """CollectiveKind."""
    size_bytes: Int64
    """As nccl-tests counts it: of one rank for all-reduce, broadcast, reduce and send/recv, of all
    ranks together for all-gather, reduce-scatter and all-to-all; -1 when not recorded."""
    members: Int64
    nodes: Int64
    """Scale-up domains that the members lie in."""
    largest_node: Int64
    """Members in the fullest of them."""
    sites: Int64


def inside_one_node(kind: Int64, size_bytes: Int64, members: Int64) -> Calls:
    """Calls of which all members share a scale-up domain."""
    one = np.ones(len(kind), np.int64)
    return Calls(
        kind=kind,
        size_bytes=size_bytes,
        members=members,
        nodes=one,
        largest_node=members,
        sites=one,
    )
