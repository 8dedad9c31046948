"""Times of collectives, and measured times moved to other links, members or sizes.

Only ratios of the model are used where there is a measured time: `measured * model(new) /
model(base)`, so that its level cancels and only its shape counts. Algorithms and their costs are in
`algorithms.py`, what the links carry in `links.py`, the numbers and their sources in
`constants.py`, the width of the range in `doubt.py`.
"""

import numpy as np

from ingest.vocab import CollectiveKind
from whatif.models.bound import Bound
from whatif.models.collectives.algorithms import times_ns
from whatif.models.collectives.calls import (
    Bool,
    Calls,
    Float64,
    Int64,
    columns_of,
    distinct,
    recorded_bytes,
)
from whatif.models.collectives.constants import SHIPPED
from whatif.models.collectives.curves import Curves
from whatif.models.collectives.doubt import ABSOLUTE
from whatif.models.collectives.links import links_of
from whatif.models.collectives.move import Move, Situation
from whatif.models.fabric import Fabric

SOURCE = "collective model: NCCL's algorithms and latencies, rates as NCCL and RCCL plan with"
ERROR_IN_NODE = (
    "transfers from 1 MiB on 4% (worst 13%) between public sweeps of accelerators and links of a "
    "node"
)
ERROR_OTHER_WAY = (
    "ring against reduction in the switch of a node 2% (worst 10%) from 8 GiB on, other algorithms "
    "not judged; that the run took the fastest is presumed"
)
ERROR_MORE_GPUS = "18% (worst 22%) for more or fewer GPUs of a node"
ERROR_SAME_NODES = "another network between the same nodes not judged: no public sweeps have two"
ERROR_MORE_NODES = "5% (worst 24%) for more or fewer nodes"
ERROR_NEW_NETWORK = (
    "23% (worst 38%), and small calls by up to a factor of 4, where calls leave the node and the "
    "trace has none that do: a network's rate does not tell its latency, --net-latency does"
)


def known_error(before: Calls, base: Fabric, after: Calls, new: Fabric) -> str:
    """The measured error of the model, as far as it is asked for."""
    inside = _parts_inside(base) != _parts_inside(new)
    other_way = (base.algorithm, base.in_network) != (new.algorithm, new.in_network)
    leaves: Bool = (before.nodes <= 1) & (after.nodes > 1)
    more: Bool = (before.nodes > 1) & (after.nodes != before.nodes)
    in_node: Bool = (after.nodes <= 1) & (before.members != after.members)
    between = (after.nodes > 1) & ~leaves & ~more & (_parts_between(base) != _parts_between(new))
    told = (
        (inside, ERROR_IN_NODE),
        (bool(in_node.any()), ERROR_MORE_GPUS),
        (other_way, ERROR_OTHER_WAY),
        (bool(between.any()), ERROR_SAME_NODES),
        (bool(more.any()), ERROR_MORE_NODES),
        (bool(leaves.any()), ERROR_NEW_NETWORK),
    )
    return "; ".join(text for applies, text in told if applies) or ERROR_IN_NODE


def _parts_inside(fabric: Fabric) -> tuple[object, ...]:
    """What carries calls inside a node."""
    return (
        fabric.architecture,
        fabric.scale_up_bytes_per_s,
        fabric.scale_up_shape,
        fabric.pcie_bytes_per_s,
        fabric.factors.scale_up,
        fabric.factors.pcie,
    )


def _parts_between(fabric: Fabric) -> tuple[object, ...]:
    """What carries calls between nodes and sites."""
    return (
        fabric.nic_bytes_per_s,
        fabric.net_latency_ns,
        fabric.wan_bytes_per_s,
        fabric.wan_latency_ns,
        fabric.factors.nic,
        fabric.factors.wan,
    )


def model_ns(calls: Calls, fabric: Fabric, bound: Bound = Bound.NOMINAL) -> Float64:
    """Time of each call in ns.

    NaN where its size or the rate of a link that it crosses is not known; 0 for a call alone.
    """
    links = links_of(calls, fabric, SHIPPED, ABSOLUTE[bound])
    known = (calls.size_bytes >= 0) | (calls.kind == CollectiveKind.BARRIER)
    known &= calls.kind != CollectiveKind.UNKNOWN
    return np.where(known, times_ns(links, recorded_bytes(calls)), np.nan)


def scaled_ns(  # noqa: PLR0913  (two situations, each calls and links)
    measured_ns: Int64,
    *,
    before: Calls,
    base: Fabric,
    after: Calls,
    new: Fabric,
    bound: Bound = Bound.NOMINAL,
    curves: Curves | None = None,
) -> Int64:
    """Measured times of `before` on `base`, moved to `after` on `new`; rounded half to even.

    Where the size, or on both sides the rate that binds, is not known, the measured time tells how
    long the bytes took: what the latency leaves. LOW <= NOMINAL <= HIGH, row by row.

    Args:
        measured_ns: transfers without waiting.
        before: what was measured.
        base: where it was measured.
        after: row by row, what the calls become (members, nodes and sizes may differ).
        new: the links then; where a rate is None, its `factors` say how much faster the link is.
        bound: NOMINAL, or the end of the range.
        curves: what the calls themselves measured, by rows of `before`: inside its sizes a curve
            says how the time grows with the bytes, and how long the steps take.
    """
    columns = [measured_ns, *columns_of(before), *columns_of(after)]
    assert all(len(column) == len(measured_ns) for column in columns)
    if curves is not None:
        columns.append(curves.curve)
    move = Move(
        measured_ns=measured_ns.astype(np.float64),
        before=Situation(calls=before, fabric=base),
        after=Situation(calls=after, fabric=new),
        curves=curves,
    )
    columns[0] = np.where(move.told() & (before.members > 1), 0, measured_ns)
    first, place = distinct(columns)
    few = move.rows(first)
    floor_before, floor = (least[place] for least in few.floors_ns())
    # A measured time that itself beats the links (wrong base) keeps its lead.
    floor *= measured_ns / np.maximum(np.maximum(floor_before, measured_ns), 1.0)
    moved = np.maximum(measured_ns * few.ratio(bound)[place], floor)
    return np.rint(moved).astype(np.int64)
