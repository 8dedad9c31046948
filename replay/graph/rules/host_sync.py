"""A thread goes on after the device work (or host-side collective) that it waited for."""

import numpy as np

from ingest.vocab import EdgeKind, Evidence
from replay.graph import thresholds
from replay.graph.csr import concatenate
from replay.graph.lags import Typical, average, typical
from replay.graph.layout import Parts
from replay.graph.rules.base import Found, edge_list


def host_sync(parts: Parts) -> Found:
    """Edges into the waits of blocking calls, of implied waits and of host-side collectives."""
    blocking, layout, stretches = parts.blocking, parts.layout, parts.stretches
    calls = edge_list(
        layout.last_of_device[blocking.edge_device_row],
        parts.host_tasks.block_task[blocking.edge_call],
        lag_ns=blocking.edge_lag_ns,
        kind=EdgeKind.HOST_SYNC,
        evidence=blocking.edge_evidence,
    )
    implied = np.flatnonzero(stretches.device_row >= 0)
    row = stretches.device_row[implied]
    device = parts.recorded.device
    taught = parts.lessons.teaches(device.trace[row], device.ts_ns[row])
    return_ns = stretches.hi_ns[implied] - device.end_ns[row]
    implied_lag = typical(return_ns[taught], thresholds.DEFAULT_SYNC_NS)
    implied_edges = edge_list(
        layout.last_of_device[row],
        parts.host_tasks.stretch_task[implied],
        lag_ns=implied_lag.lag_ns,
        kind=EdgeKind.HOST_SYNC,
        evidence=Evidence.INFERRED,
    )
    collective = np.flatnonzero(stretches.member >= 0)
    member = stretches.member[collective]
    members = parts.recorded.member
    taught = parts.lessons.teaches(members.trace[member], members.ts_ns[member])
    return_ns = stretches.hi_ns[collective] - members.end_ns[member]
    member_lag = average(return_ns[taught], thresholds.DEFAULT_SYNC_NS)
    member_edges = edge_list(
        layout.transfer_of_member[member],
        parts.host_tasks.stretch_task[collective],
        lag_ns=member_lag.lag_ns,
        kind=EdgeKind.HOST_SYNC,
        evidence=Evidence.INFERRED,
    )
    lags = {
        "host_sync": Typical(
            lag_ns=blocking.return_lag_ns,
            samples=blocking.samples,
            is_default=blocking.samples < thresholds.SAMPLES,
        )
    }
    if len(implied):
        lags["host_sync (implied)"] = implied_lag
    if len(collective):
        lags["host_sync (collective on the host)"] = member_lag
    return Found(
        edges=concatenate([calls, implied_edges, member_edges]),
        lags=lags,
        contradicted=blocking.contradicted,
    )
