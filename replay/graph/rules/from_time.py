"""Event waits that only the times show: last resort for a start that no edge explains."""

import numpy as np

from ingest.vocab import EdgeKind, Evidence
from replay.graph import thresholds
from replay.graph.arrays import Int64
from replay.graph.events import files_with_records
from replay.graph.graph_gaps import from_graphs
from replay.graph.lags import typical
from replay.graph.layout import Parts
from replay.graph.rules.base import Found, edge_list


def from_time(parts: Parts, residual_ns: Int64) -> Found:
    """Edges to device tasks that started just after a task of another stream of the device ended.

    Only where the residual is above `FROM_TIME_RESIDUAL_NS`, and only from work that was launched
    before. Kernels of one graph launch may wait for each other, also for less: the branches of a
    graph are joined by edges that no row shows. Such an edge is chosen by looking at the start that
    it explains: it lowers the strict error by construction and counts as inferred.

    Args:
        parts: all columns.
        residual_ns: per task, what the other rules leave unexplained.
    """
    device, layout, streams = parts.recorded.device, parts.layout, parts.streams
    lag_limit_ns = np.where(
        files_with_records(parts.recorded)[device.trace],
        thresholds.FROM_TIME_LAG_NS,
        thresholds.UNRECORDED_EVENT_LAG_NS,
    )
    in_graph = from_graphs(parts.recorded)
    least_ns = np.where(in_graph, lag_limit_ns, thresholds.FROM_TIME_RESIDUAL_NS)
    unexplained = residual_ns[layout.first_of_device] > least_ns
    unexplained &= device.call >= 0
    place = device.trace * 1024 + device.device
    order = np.lexsort((device.end_ns, place))
    ends_ns, places = device.end_ns[order], place[order]
    src: list[int] = []
    dst: list[int] = []
    for row in np.flatnonzero(unexplained).tolist():
        first, last = np.searchsorted(places, [place[row], place[row] + 1])
        start_ns = device.ts_ns[row]
        upto = first + int(np.searchsorted(ends_ns[first:last], start_ns, side="right"))
        for candidate in order[first:upto][::-1].tolist():
            if device.end_ns[candidate] < start_ns - lag_limit_ns[row]:
                break
            other_stream = device.lane[candidate] != device.lane[row]
            same_graph = in_graph[row] and device.call[candidate] == device.call[row]
            earlier = streams.launch_ns[candidate] < streams.launch_ns[row]
            if other_stream and (earlier or same_graph):
                src.append(candidate)
                dst.append(row)
                break
    src_row, dst_row = np.array(src, np.int64), np.array(dst, np.int64)
    taught = parts.lessons.teaches(device.trace[dst_row], device.ts_ns[dst_row])
    lag_ns = (device.ts_ns[dst_row] - device.end_ns[src_row])[taught]
    lag = typical(lag_ns, thresholds.DEFAULT_EVENT_NS)
    edges = edge_list(
        layout.last_of_device[src_row],
        layout.first_of_device[dst_row],
        lag_ns=lag.lag_ns,
        kind=EdgeKind.EVENT_WAIT,
        evidence=Evidence.INFERRED,
    )
    return Found(edges=edges, lags={"event_wait (from time)": lag} if len(src) else {})
