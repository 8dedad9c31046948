"""Compiled loops of the account: who has each instant, and what idle time waited for.

Integers stand for kinds; nothing here raises, logs or prints.
"""

import numpy as np

from ingest.compiled import compiled

UNITS = 5040
"""Parts of a nanosecond: up to ten kernels that run at once share it without a rest."""
LEVELS = 4
TASK, RESIDUAL, RELEASED, AWAY, ENDED = 0, 1, 2, 3, 4
"""What a segment of idle time was: work of a task; a start later than its edges explain; a start
that nothing recorded leads to; waiting for another rank; the run goes on without this rank."""
LAG = 16
"""From here on: the lag of an edge, by its kind."""


@compiled
def share_out(lo_ns, hi_ns, level, by_end, points_ns, step_of, first_piece, first_step, units):
    """Give each instant to the intervals of the lowest level that run then, in equal parts.

    Intervals (`lo_ns`, `hi_ns`, `level`) are in order of their start, none is empty; `by_end` has
    their places in order of their end. `points_ns` are all moments at which something begins or
    ends, ascending and distinct, `step_of` the step that each stretch after one lies in. `units`
    are added to, one place per interval and step: those of an interval begin at `first_piece`, with
    the step `first_step`.

    Returns:
        Begin and end of the stretches without any interval, neighbours joined.
    """
    n = len(lo_ns)
    active = np.empty(n, np.int64)
    n_active = 0
    begun, ended = 0, 0
    gap_lo = np.empty(len(points_ns), np.int64)
    gap_hi = np.empty(len(points_ns), np.int64)
    gaps = 0
    for place in range(len(points_ns) - 1):
        now = points_ns[place]
        if ended < n and hi_ns[by_end[ended]] <= now:
            while ended < n and hi_ns[by_end[ended]] <= now:
                ended += 1
            kept = 0
            for at in range(n_active):
                if hi_ns[active[at]] > now:
                    active[kept] = active[at]
                    kept += 1
            n_active = kept
        while begun < n and lo_ns[begun] <= now:
            active[n_active] = begun
            n_active += 1
            begun += 1
        length = points_ns[place + 1] - now
        if n_active == 0:
            if gaps > 0 and gap_hi[gaps - 1] == now:
                gap_hi[gaps - 1] = now + length
            else:
                gap_lo[gaps] = now
                gap_hi[gaps] = now + length
                gaps += 1
            continue
        least = LEVELS
        sharing = 0
        for at in range(n_active):
            own = level[active[at]]
            if own < least:
                least = own
                sharing = 1
            elif own == least:
                sharing += 1
        part = length * UNITS // sharing
        rest = length * UNITS - part * sharing
        for at in range(n_active):
            row = active[at]
            if level[row] == least:
                piece = first_piece[row] + step_of[place] - first_step[row]
                units[piece] += part + rest
                rest = 0
    return gap_lo[:gaps], gap_hi[:gaps]


@compiled
def trace_gaps(
    gap_lo,
    gap_hi,
    following,
    ends_with,
    start_ns,
    end_ns,
    residual_ns,
    blocked_by,
    src,
    lag_kind,
    from_start,
    rank,
    home,
    found,
):
    """What each gap waited for: walks back along the edges that bound each start.

    `following` has per gap the task that begins at its end; where none does (-1) the walk begins at
    `ends_with`, the task that closes the steps of the rank `home`. Of tasks: `start_ns`, `end_ns`,
    `residual_ns`, `blocked_by`, `rank`; of edges: `src`, `lag_kind`, `from_start`. `found` has rows
    of begin, end, task, what, and is filled as far as they go.

    Returns:
        Number of segments, which may be more than `found` has rows for.
    """
    n = 0
    for gap in range(len(gap_lo)):
        lo = gap_lo[gap]
        cursor = gap_hi[gap]
        at = following[gap]
        if at < 0:
            at = ends_with
            own_end = cursor
            if at >= 0:
                own_end = min(end_ns[at], cursor)
            if at < 0 or own_end < cursor:
                begin = lo if at < 0 else max(own_end, lo)
                n = put(found, n, begin, cursor, at, ENDED)
                cursor = begin
            if at >= 0 and cursor > lo:
                begin = max(min(start_ns[at], cursor), lo)
                n = put(found, n, begin, cursor, at, TASK)
                cursor = begin
        while cursor > lo:
            edge = blocked_by[at]
            if edge < 0:
                n = put(found, n, lo, cursor, at, RELEASED)
                break
            source = src[edge]
            ready = start_ns[source] if from_start[edge] else end_ns[source]
            explained = max(start_ns[at] - max(residual_ns[at], 0), min(ready, start_ns[at]))
            begin = min(max(explained, lo), cursor)
            n = put(found, n, begin, cursor, at, RESIDUAL)
            cursor = begin
            begin = min(max(ready, lo), cursor)
            n = put(found, n, begin, cursor, at, LAG + lag_kind[edge])
            cursor = begin
            if rank[source] != home:
                n = put(found, n, lo, cursor, at, AWAY)
                break
            if not from_start[edge]:
                begin = min(max(start_ns[source], lo), cursor)
                n = put(found, n, begin, cursor, source, TASK)
                cursor = begin
            at = source
    return n


@compiled
def put(found, n, lo, hi, task, what):
    """One more segment, unless it is empty; answers how many there are."""
    if hi <= lo:
        return n
    if n < len(found):
        found[n, 0] = lo
        found[n, 1] = hi
        found[n, 2] = task
        found[n, 3] = what
    return n + 1
