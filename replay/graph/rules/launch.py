"""Device work starts after the call that launched it."""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import EdgeKind
from replay.graph import thresholds
from replay.graph.arrays import Bool, Int64
from replay.graph.csr import EdgeList, concatenate
from replay.graph.graph_gaps import from_graphs
from replay.graph.lags import Typical, average, typical
from replay.graph.layout import Parts
from replay.graph.recorded import Recorded
from replay.graph.rules.base import Found, edge_list


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launches:
    """Launched device rows with their call."""

    row: Int64
    call: Int64
    call_task: Int64
    graph: Bool
    from_start: Bool
    """The call itself blocks, or returned only after the work had begun."""


def launch(parts: Parts) -> Found:
    """Edges from the end of the call (from its start where the call blocks) to the device task.

    The kernels of a CUDA or HIP graph share one call: its edge goes to the first kernel of each
    stream, the others follow their streams. Unrecorded work of the graph adds to the lag.
    """
    launches = _launches(parts)
    host, device = parts.recorded.host, parts.recorded.device
    idle = _met_idle_device(parts.recorded, launches) & (parts.graph_gaps_ns[launches.row] == 0)
    idle &= parts.lessons.teaches(device.trace[launches.row], device.ts_ns[launches.row])
    after_end_ns = device.ts_ns[launches.row] - host.end_ns[launches.call]
    after_start_ns = device.ts_ns[launches.row] - host.ts_ns[launches.call]
    lists: list[EdgeList] = []
    lags: dict[str, Typical] = {}
    for name, mask, sample_ns, from_start in _families(
        parts, launches, after_end_ns, after_start_ns
    ):
        lag = typical(sample_ns[mask & idle], thresholds.DEFAULT_LAUNCH_NS)
        if from_start:
            lag = Typical(lag_ns=max(lag.lag_ns, 0), samples=lag.samples, is_default=lag.is_default)
        lists.append(_edges(parts, launches, mask, lag.lag_ns, from_start=from_start))
        lags[name] = lag
    contradicted = int((launches.from_start & ~_blocks(parts, launches.call)).sum())
    lists.append(_host_members(parts))
    return Found(edges=concatenate(lists), lags=lags, contradicted=contradicted)


def _launches(parts: Parts) -> _Launches:
    host, device = parts.recorded.host, parts.recorded.device
    row = np.flatnonzero(device.call >= 0)
    call = device.call[row]
    graph = from_graphs(parts.recorded)[row]
    order = np.lexsort((device.ts_ns[row], device.lane[row], call))
    same = (np.diff(call[order]) == 0) & (np.diff(device.lane[row[order]]) == 0)
    root = np.ones(len(row), bool)
    root[order[1:][same]] = False
    keep = root | ~graph
    row, call, graph = row[keep], call[keep], graph[keep]
    began_inside = device.ts_ns[row] < host.end_ns[call] - thresholds.CLOCK_TOLERANCE_NS
    from_start = _blocks(parts, call) | (began_inside & ~graph)
    return _Launches(
        row=row,
        call=call,
        call_task=parts.host_tasks.call_task[call],
        graph=graph,
        from_start=from_start,
    )


def _blocks(parts: Parts, call: Int64) -> Bool:
    """Calls with a wait inside them: their launch comes before it."""
    blocked = np.zeros(len(parts.recorded.host), bool)
    blocked[parts.blocking.call] = parts.host_tasks.block_task >= 0
    return blocked[call]


def _families(
    parts: Parts, launches: _Launches, after_end_ns: Int64, after_start_ns: Int64
) -> list[tuple[str, Bool, Int64, bool]]:
    """Launches by API, each with the samples of its lag and from where it counts."""
    host, names = parts.recorded.host, parts.recorded.names
    api = host.name[launches.call]
    families: list[tuple[str, Bool, Int64, bool]] = []
    for name in np.unique(api):
        mine = (api == name) & ~launches.from_start
        families.append((f"launch ({names[name]})", mine, after_end_ns, False))
    families.append(("launch (from the call's start)", launches.from_start, after_start_ns, True))
    return [family for family in families if family[1].any()]


def _met_idle_device(recorded: Recorded, launches: _Launches) -> Bool:
    """The device had been idle for `IDLE_DEVICE_NS` before the call."""
    device, host = recorded.device, recorded.host
    number = device.trace * 1024 + device.device
    order = np.lexsort((device.ts_ns, number))
    busy_ns = np.full(len(device), np.iinfo(np.int64).min // 2)
    for key in np.unique(number):
        rows = order[number[order] == key]
        ends = np.maximum.accumulate(device.end_ns[rows])
        busy_ns[rows[1:]] = ends[:-1]
    call_ns = host.ts_ns[launches.call]
    return busy_ns[launches.row] <= call_ns - thresholds.IDLE_DEVICE_NS


def _edges(
    parts: Parts, launches: _Launches, mask: Bool, lag_ns: int, *, from_start: bool
) -> EdgeList:
    dst = parts.layout.first_of_device[launches.row[mask]]
    hidden_ns = parts.graph_gaps_ns[launches.row[mask]]
    call_task = launches.call_task[mask]
    graph = launches.graph[mask]
    lists = []
    for is_graph, kind in ((False, EdgeKind.LAUNCH), (True, EdgeKind.GRAPH_LAUNCH)):
        chosen = graph == is_graph
        if from_start:
            lists.append(_from_call_start(parts, call_task[chosen], dst[chosen], lag_ns, kind))
            continue
        total_ns = lag_ns + hidden_ns[chosen]
        lists.append(edge_list(call_task[chosen], dst[chosen], lag_ns=total_ns, kind=kind))
        if lag_ns < 0:
            lists.append(_from_call_start(parts, call_task[chosen], dst[chosen], 0, kind))
    return concatenate(lists)


def _from_call_start(
    parts: Parts, call_task: Int64, dst: Int64, lag_ns: int, kind: EdgeKind
) -> EdgeList:
    """Edges from the end of what the thread did before the call: also right when it then blocks."""
    before = call_task - 1
    is_wait = np.isin(before, parts.host_tasks.block_task[parts.host_tasks.block_task >= 0])
    return edge_list(np.where(call_task >= 0, before - is_wait, -1), dst, lag_ns=lag_ns, kind=kind)


def _host_members(parts: Parts) -> EdgeList:
    """A host-side collective starts after the call that issued it (its host record's start).

    The lag is that of members whose worker thread was free when they were issued.
    """
    member, host = parts.recorded.member, parts.recorded.host
    chosen = np.flatnonzero((member.device_row < 0) & (member.record_row >= 0))
    chosen = chosen[np.lexsort((member.ts_ns[chosen], host.thread[member.host_row[chosen]]))]
    record = member.record_row[chosen]
    thread = host.thread[member.host_row[chosen]]
    free = np.ones(len(chosen), bool)
    same = thread[1:] == thread[:-1]
    free[1:] = ~same | (member.end_ns[chosen[:-1]] <= host.ts_ns[record[1:]])
    waited_ns = member.ts_ns[chosen] - host.ts_ns[record]
    free &= parts.lessons.teaches(member.trace[chosen], member.ts_ns[chosen])
    lag = average(waited_ns[free], thresholds.DEFAULT_LAUNCH_NS)
    src = parts.host_tasks.ending_at(host.thread[record], host.ts_ns[record])
    return edge_list(
        src, parts.layout.arrive_of_member[chosen], lag_ns=max(lag.lag_ns, 0), kind=EdgeKind.LAUNCH
    )
