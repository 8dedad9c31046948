"""One sweep over the host rows of each thread: what is innermost when, which call holds which."""

from dataclasses import dataclass

from replay.graph.arrays import Int64
from replay.graph.recorded import HostRows
from replay.graph.scans import sweep


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
