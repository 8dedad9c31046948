"""Calls of collectives for tests of the model that prices them."""

import numpy as np

from whatif.models.collectives.calls import Calls, Int64


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
