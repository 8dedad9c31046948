"""A device task follows the previous one of its stream."""

import numpy as np

from ingest.vocab import EdgeKind, Evidence
from replay.graph import thresholds
from replay.graph.lags import queued_lags, typical
from replay.graph.layout import Parts
from replay.graph.recorded import take
from replay.graph.rules.base import Found, edge_list
from replay.graph.scans import neighbours


def stream_order(parts: Parts) -> Found:
    """Edges between neighbours of a stream.

    Neighbours that overlap by less than `OVERLAP_NS` are programmatic dependent launches with a
    negative lag; where they overlap by more, the stream's latest task that had ended stands in.
    Unrecorded work of a CUDA graph takes the place of the lag.
    """
    device, layout = parts.recorded.device, parts.layout
    row = np.arange(len(device))
    previous, overlapped = neighbours(
        device.lane, device.ts_ns, device.end_ns, thresholds.OVERLAP_NS
    )
    known = previous >= 0
    lag_ns = np.where(known, device.ts_ns - device.end_ns[previous], 0)
    queued_ns = device.ts_ns - parts.streams.launch_ns
    taught = known & parts.lessons.teaches(device.trace, device.ts_ns)
    plain = typical(
        queued_lags(lag_ns[taught & (lag_ns >= 0)], queued_ns[taught & (lag_ns >= 0)]),
        thresholds.DEFAULT_STREAM_NS,
    )
    early = typical(lag_ns[taught & (lag_ns < 0)], 0, minimum=1)
    src, dst = layout.last_of_device[previous[known]], layout.first_of_device[row[known]]
    hidden_ns = parts.graph_gaps_ns[known]
    usual_ns = np.where(lag_ns[known] < 0, early.lag_ns, plain.lag_ns)
    edges = edge_list(
        src,
        dst,
        lag_ns=np.where(hidden_ns > 0, hidden_ns, usual_ns),
        kind=EdgeKind.STREAM_ORDER,
        evidence=np.where(hidden_ns > 0, Evidence.INFERRED, Evidence.RECORDED),
    )
    lags = {"stream_order": plain}
    if early.samples:
        lags["stream_order (overlapping)"] = early
    return Found(edges=edges, lags=lags, contradicted=int(overlapped.sum()))


def link_order(parts: Parts) -> Found:
    """Edges between host-side collectives that one worker thread of the library runs in turn."""
    member, host, layout = parts.recorded.member, parts.recorded.host, parts.layout
    rows = np.flatnonzero(member.device_row < 0)
    rows = rows[np.lexsort((member.ts_ns[rows], host.thread[member.host_row[rows]]))]
    thread = host.thread[member.host_row[rows]]
    previous, overlapped = neighbours(
        thread, member.ts_ns[rows], member.end_ns[rows], thresholds.OVERLAP_NS
    )
    known = previous >= 0
    before, after = rows[previous[known]], rows[known]
    lag_ns = member.ts_ns[after] - member.end_ns[before]
    issued_ns = take(host.ts_ns, member.record_row[after])
    queued = (member.record_row[after] >= 0) & (issued_ns < member.end_ns[before])
    queued &= parts.lessons.teaches(member.trace[after], member.ts_ns[after])
    lag = typical(lag_ns[queued], thresholds.DEFAULT_LINK_NS)
    edges = edge_list(
        layout.transfer_of_member[before],
        layout.arrive_of_member[after],
        lag_ns=lag.lag_ns,
        kind=EdgeKind.STREAM_ORDER,
    )
    lags = {"stream_order (collectives on the host)": lag} if len(rows) else {}
    return Found(edges=edges, lags=lags, contradicted=int(overlapped.sum()))
