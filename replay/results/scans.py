"""Compiled walks over a schedule."""

import numpy as np

from ingest.compiled import compiled

HOST, INPUT, WAIT, UNKNOWN = 0, 1, 5, 6
"""Codes of `replay.results.causes.Cause`; a test holds them together."""
TRANSFER = 7
"""Code of `TaskKind`."""
N_CAUSES = 7


@compiled
def walk_back(
    first,
    stop_ns,
    start_ns,
    end_ns,
    blocked_by,
    edge_start,
    edge_src,
    from_start,
    kind,
    rank,
    cause,
    input_ns,
):
    """What lies on the chain that each task hangs on, back to a moment, on its own rank.

    The chain follows the edge that bound each start; where a release did, the edge whose source was
    ready last. At a transfer it goes on from the member's own
    arrival, and what lies between the two is waiting; where it leaves the rank in another way, all
    that is left is waiting.

    Returns:
        spent_ns: shape (len(first), N_CAUSES); a row adds up to start of the task - stop.
        longest: per walk the task that took most, -1 for none.
    """
    n = len(first)
    spent_ns = np.zeros((n, N_CAUSES), np.int64)
    longest = np.full(n, -1, np.int64)
    for walk in range(n):
        task = first[walk]
        stop = stop_ns[walk]
        moment = start_ns[task]
        most = 0
        while moment > stop:
            if kind[task] == TRANSFER:
                task -= 1
                arrived = max(min(start_ns[task], moment), stop)
                spent_ns[walk, WAIT] += moment - arrived
                moment = arrived
                continue
            edge = blocked_by[task]
            if edge < 0:
                latest = stop
                for each in range(edge_start[task], edge_start[task + 1]):
                    source = edge_src[each]
                    ready = start_ns[source] if from_start[each] else end_ns[source]
                    if ready > latest:
                        latest = ready
                        edge = each
            if edge < 0:
                spent_ns[walk, UNKNOWN] += moment - stop
                break
            source = edge_src[edge]
            if rank[source] != rank[task]:
                spent_ns[walk, WAIT] += moment - stop
                break
            ready = start_ns[source] if from_start[edge] else end_ns[source]
            ready = max(min(ready, moment), stop)
            spent_ns[walk, UNKNOWN] += moment - ready
            moment = ready
            task = source
            begun = max(min(start_ns[task], moment), stop)
            length = moment - begun
            fetched = 0
            if cause[task] == HOST and input_ns[task] > 0:
                fetched = length * input_ns[task] // (end_ns[task] - start_ns[task])
            spent_ns[walk, INPUT] += fetched
            spent_ns[walk, cause[task]] += length - fetched
            if length > most:
                most = length
                longest[walk] = task
            moment = begun
    return spent_ns, longest


@compiled
def crossing(start_ns, end_ns):
    """Which intervals end inside another that began earlier, and so nest in nothing.

    Args:
        start_ns: ascending; of equal starts the longest first.
        end_ns: not before the starts.

    Returns:
        True where an interval crosses the end of one that is kept.
    """
    n = len(start_ns)
    crosses = np.zeros(n, np.bool_)
    open_end_ns = np.empty(n, np.int64)
    depth = 0
    for row in range(n):
        while depth > 0 and open_end_ns[depth - 1] <= start_ns[row]:
            depth -= 1
        if depth > 0 and end_ns[row] > open_end_ns[depth - 1]:
            crosses[row] = True
        else:
            open_end_ns[depth] = end_ns[row]
            depth += 1
    return crosses
