"""A device task follows the previous one of its stream."""

import numpy as np

from ingest.vocab import EdgeKind, Evidence, KernelClass
from replay.graph import thresholds
from replay.graph.arrays import Bool, Int64
from replay.graph.lags import Typical, average, typical
from replay.graph.layout import Parts
from replay.graph.recorded import take
from replay.graph.rules.base import Found, edge_list
from replay.graph.scans import neighbours
from replay.graph.streams import UNLAUNCHED_NS

ENGINES = ("kernel", "memcpy", "memset", "collective")


def stream_order(parts: Parts) -> Found:
    """Edges between neighbours of a stream.

    Neighbours that overlap by less than `OVERLAP_NS` are programmatic dependent launches with a
    negative lag; where they overlap by more, the stream's latest task that had ended stands in.
    Unrecorded work of a CUDA graph takes the place of the lag.
    Lags are typical by what carries out the two: kernel, copy, memset or collective.
    """
    device, layout = parts.recorded.device, parts.layout
    row = np.arange(len(device))
    previous, overlapped = neighbours(
        device.lane, device.ts_ns, device.end_ns, thresholds.OVERLAP_NS
    )
    known = previous >= 0
    lag_ns = np.where(known, device.ts_ns - device.end_ns[previous], 0)
    queued_ns = device.ts_ns - parts.streams.launch_ns
    taught = parts.lessons.teaches(device.trace, device.ts_ns)
    after = known & (lag_ns >= 0)
    engine = _engine(device.kernel_class)
    plain_ns, lags = _by_engine(
        engine[previous[after]],
        engine[row[after]],
        lag_ns[after],
        taught[after] & (queued_ns[after] > thresholds.QUEUED_NS),
    )
    early = typical(lag_ns[known & taught & (lag_ns < 0)], 0, minimum=1)
    typical_ns = np.full(len(device), early.lag_ns, np.int64)
    typical_ns[after] = plain_ns
    # A head is released at its recorded start: its lag may not push it, and all after it, beyond.
    head = parts.streams.launch_ns == UNLAUNCHED_NS
    typical_ns[head] = np.minimum(typical_ns, lag_ns)[head]
    src, dst = layout.last_of_device[previous[known]], layout.first_of_device[row[known]]
    hidden_ns = parts.graph_gaps_ns[known]
    edges = edge_list(
        src,
        dst,
        lag_ns=np.where(hidden_ns > 0, hidden_ns, typical_ns[known]),
        kind=EdgeKind.STREAM_ORDER,
        evidence=np.where(hidden_ns > 0, Evidence.INFERRED, Evidence.RECORDED),
    )
    if early.samples:
        lags["stream_order (overlapping)"] = early
    return Found(edges=edges, lags=lags, contradicted=int(overlapped.sum()))


def _engine(kernel_class: Int64) -> Int64:
    """What carries a task out: kernels, copies, memsets and collectives change over differently."""
    engine = np.zeros(len(kernel_class), np.int64)
    for number, name in enumerate(ENGINES[1:], start=1):
        engine[kernel_class == KernelClass[name.upper()]] = number
    return engine


def _by_engine(
    before: Int64, after: Int64, lag_ns: Int64, shows: Bool
) -> tuple[Int64, dict[str, Typical]]:
    """Typical lag of each pair of neighbours, by what carries out the two.

    Pairs where `shows` is true had been launched long before; those above `LONGEST_LAG_NS` lack a
    cause and teach nothing.
    """
    shows = shows & (lag_ns <= thresholds.LONGEST_LAG_NS)
    plain = average(lag_ns[shows], thresholds.DEFAULT_STREAM_NS)
    found_ns = np.full(len(lag_ns), plain.lag_ns, np.int64)
    lags = {"stream_order": plain}
    pair = before * len(ENGINES) + after
    for number in np.unique(pair).tolist():
        mine = pair == number
        lag = average(lag_ns[mine & shows], plain.lag_ns)
        if not lag.is_default:
            first, second = divmod(number, len(ENGINES))
            lags[f"stream_order ({ENGINES[first]} -> {ENGINES[second]})"] = lag
            found_ns[mine] = lag.lag_ns
    return found_ns, lags


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
