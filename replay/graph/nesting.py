"""One sweep over the host rows of each thread: what is innermost when, which call holds which."""

from dataclasses import dataclass

import numpy as np

from ingest.compiled import compiled
from replay.graph.arrays import Int64
from replay.graph.recorded import HostRows


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Stretches of a thread between two neighbouring starts or ends, by (thread, time).

    Together they cover each thread from its first start to its last end without overlap.
    """

    thread: Int64
    lo_ns: Int64
    hi_ns: Int64
    row: Int64
    """Innermost host row; -1 in silence."""
    before: Int64
    """Host row whose start or end opens the stretch."""


def segments(host: HostRows) -> Segments:
    """Cut every thread at the starts and ends of its rows."""
    thread, lo_ns, hi_ns, row, before = sweep(host.thread, host.ts_ns, host.end_ns)
    return Segments(thread=thread, lo_ns=lo_ns, hi_ns=hi_ns, row=row, before=before)


@compiled
def sweep(thread, ts_ns, end_ns):
    """Stack walk over rows sorted by (thread, start, longest first); rows that cross are kept."""
    n = len(thread)
    out_thread = np.empty(2 * n, np.int64)
    out_lo = np.empty(2 * n, np.int64)
    out_hi = np.empty(2 * n, np.int64)
    out_row = np.empty(2 * n, np.int64)
    out_before = np.empty(2 * n, np.int64)
    stack = np.empty(n + 1, np.int64)
    count = 0
    row = 0
    while row < n:
        current = thread[row]
        now = ts_ns[row]
        before = row
        depth = 0
        while row < n and thread[row] == current or depth > 0:
            starts_next = row < n and thread[row] == current
            if depth > 0 and (not starts_next or end_ns[stack[depth - 1]] <= ts_ns[row]):
                top = stack[depth - 1]
                if end_ns[top] > now:
                    out_thread[count], out_lo[count], out_hi[count] = current, now, end_ns[top]
                    out_row[count], out_before[count] = top, before
                    count += 1
                    now = end_ns[top]
                    before = top
                depth -= 1
                continue
            if ts_ns[row] > now:
                out_thread[count], out_lo[count], out_hi[count] = current, now, ts_ns[row]
                out_row[count] = stack[depth - 1] if depth > 0 else -1
                out_before[count] = before
                count += 1
                now = ts_ns[row]
            before = row
            stack[depth] = row
            depth += 1
            row += 1
    return (
        out_thread[:count],
        out_lo[:count],
        out_hi[:count],
        out_row[:count],
        out_before[:count],
    )


@compiled
def outermost(thread, ts_ns, end_ns, chosen):
    """For each row the outermost chosen row that holds it (itself when it is that); -1 for none.

    A chosen row that begins inside another chosen one of its thread belongs to that one, so the
    outermost ones do not overlap.
    """
    n = len(thread)
    holder = np.full(n, -1, np.int64)
    last = -1
    for row in range(n):
        if last >= 0 and thread[last] == thread[row] and ts_ns[row] < end_ns[last]:
            holder[row] = last
        elif chosen[row]:
            last = row
            holder[row] = row
    return holder
