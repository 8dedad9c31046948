"""A stream waits for an event that another stream recorded."""

from ingest.vocab import EdgeKind, Evidence
from replay.graph import thresholds
from replay.graph.lags import queued_lags, typical
from replay.graph.layout import Parts
from replay.graph.rules.base import Found, edge_list


def event_wait(parts: Parts) -> Found:
    """Edges from the last device task before the record to the first after the wait.

    Unrecorded work of a CUDA graph adds to the lag.
    """
    events, device = parts.events, parts.recorded.device
    src_row, dst_row = events.src_row, events.dst_row
    lag_ns = device.ts_ns[dst_row] - device.end_ns[src_row]
    queued_ns = device.ts_ns[dst_row] - parts.streams.launch_ns[dst_row]
    taught = events.evidence != Evidence.INFERRED
    taught &= parts.lessons.teaches(device.trace[dst_row], device.ts_ns[dst_row])
    lag = typical(queued_lags(lag_ns[taught], queued_ns[taught]), thresholds.DEFAULT_EVENT_NS)
    edges = edge_list(
        parts.layout.last_of_device[src_row],
        parts.layout.first_of_device[dst_row],
        lag_ns=lag.lag_ns + parts.graph_gaps_ns[dst_row],
        kind=EdgeKind.EVENT_WAIT,
        evidence=events.evidence,
    )
    return Found(edges=edges, lags={"event_wait": lag}, contradicted=events.contradicted)
