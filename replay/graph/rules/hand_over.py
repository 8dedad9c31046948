"""A thread goes on after the last work of the thread that it handed to, and the other way."""

import numpy as np

from ingest.vocab import EdgeKind, Evidence
from replay.graph import thresholds
from replay.graph.arrays import Int64
from replay.graph.csr import EdgeList, concatenate
from replay.graph.lags import Typical, average
from replay.graph.layout import Parts
from replay.graph.rules.base import Found, edge_list


def hand_over(parts: Parts) -> Found:
    """Edges from the helper's last task to the wait; back = into a thread that carries steps."""
    stretches, host_tasks = parts.stretches, parts.host_tasks
    waits = np.flatnonzero(stretches.helper >= 0)
    wakes = stretches.first_wakes
    first = host_tasks.start_task[wakes.thread]
    dst = np.concatenate([host_tasks.stretch_task[waits], first])
    helper = np.concatenate([stretches.helper[waits], wakes.helper])
    helper_end_ns = np.concatenate([stretches.helper_end_ns[waits], wakes.helper_end_ns])
    thread = np.concatenate([stretches.thread[waits], wakes.thread])
    src = host_tasks.ending_at(helper, helper_end_ns)
    known = (dst >= 0) & (src >= 0)
    src, dst, thread = src[known], dst[known], thread[known]
    lag_ns = parts.ts_ns[dst] - helper_end_ns[known]
    back = np.isin(thread, parts.recorded.step.thread)
    host = parts.recorded.host
    trace = host.trace[np.searchsorted(host.thread, thread)]
    taught = parts.lessons.teaches(trace, helper_end_ns[known])
    found: list[EdgeList] = []
    lags: dict[str, Typical] = {}
    for name, mask, default_ns in (
        ("hand_over (out)", ~back, thresholds.DEFAULT_HAND_OUT_NS),
        ("hand_over (back)", back, thresholds.DEFAULT_HAND_BACK_NS),
    ):
        lag = average(lag_ns[mask & taught], default_ns, minimum=thresholds.HAND_OVER_SAMPLES)
        found.append(_edges(src[mask], dst[mask], lag.lag_ns))
        if mask.any():
            lags[name] = lag
    return Found(edges=concatenate(found), lags=lags)


def _edges(src: Int64, dst: Int64, lag_ns: int) -> EdgeList:
    return edge_list(src, dst, lag_ns=lag_ns, kind=EdgeKind.HAND_OVER, evidence=Evidence.INFERRED)
