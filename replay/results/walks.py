"""Compiled walks back over a schedule: the chain of blame, the slack of every task.

Integers stand for kinds; nothing here raises, logs or prints.
"""

import numpy as np

from ingest.compiled import compiled

HOST, DEVICE, COMMUNICATION, MEETING = 0, 1, 2, 3
"""What a task is to a walk; `MEETING` has no rank of its own."""
NO_CAUSE, LAUNCHING, HOST_LATE, SYNC_DRAIN, EVENT_WAIT, COMM_WAIT = 0, 1, 2, 3, 4, 5
"""Causes between which `blame` shares out a gap."""
N_CAUSES = 6
UNBOUNDED = np.iinfo(np.int64).max
"""Slack of a task that no boundary waits for."""


@compiled
def chain(task, floor_ns, start_ns, end_ns, blocked_by, src, from_start):
    """Tasks from `task` back to the first that is blocked by nothing or begins by `floor_ns`.

    Two columns, the last task first: the task, and the edge that bound its start (-1: none).
    """
    n = 0
    at = task
    while at >= 0:
        n += 1
        edge = blocked_by[at]
        if edge < 0:
            break
        source = src[edge]
        moment = start_ns[source] if from_start[edge] else end_ns[source]
        if start_ns[at] <= floor_ns or moment <= floor_ns:
            break
        at = source
    tasks = np.empty(n, np.int64)
    edges = np.empty(n, np.int64)
    at = task
    for place in range(n):
        tasks[place] = at
        edges[place] = blocked_by[at]
        if place + 1 < n:
            at = src[blocked_by[at]]
    return tasks, edges


@compiled
def slack_pass(order, edge_start, src, lag_ns, from_start, start_ns, end_ns, residual_ns, slack_ns):
    """Turn the slack that closing tasks have by themselves into that of every task, in place.

    slack[source] = min over its edges of (what the edge leaves + slack[destination]): visited in
    reverse topological order, so that a destination is final before its sources are.
    """
    for position in range(len(order) - 1, -1, -1):
        task = order[position]
        own = slack_ns[task]
        if own == UNBOUNDED:
            continue
        base = start_ns[task] - residual_ns[task]
        for edge in range(edge_start[task], edge_start[task + 1]):
            source = src[edge]
            ready = start_ns[source] if from_start[edge] else end_ns[source]
            left = base - ready - lag_ns[edge] + own
            slack_ns[source] = min(slack_ns[source], left)


@compiled
def gaps(first, start_ns, end_ns, task, window_lo, window_hi):
    """Stretches of each lane in which no task of it runs, inside the window.

    The intervals of lane l are rows `[first[l], first[l + 1])`, by start. Returns lane, begin, end
    and the task that begins at the end (-1: none does any more).
    """
    n = len(start_ns) + len(first)
    lane = np.empty(n, np.int64)
    lo = np.empty(n, np.int64)
    hi = np.empty(n, np.int64)
    following = np.empty(n, np.int64)
    found = 0
    for number in range(len(first) - 1):
        reach = window_lo
        for row in range(first[number], first[number + 1]):
            if start_ns[row] > reach and reach < window_hi:
                lane[found] = number
                lo[found] = reach
                hi[found] = min(start_ns[row], window_hi)
                following[found] = task[row]
                found += 1
            reach = max(reach, end_ns[row])
        if reach < window_hi:
            lane[found] = number
            lo[found] = reach
            hi[found] = window_hi
            following[found] = -1
            found += 1
    return lane[:found], lo[:found], hi[:found], following[:found]


@compiled
def waited_ns(task, binding, edge_start, start_ns, end_ns, src, lag_ns, from_start):
    """How much earlier a task could have begun without the edge that bound it; 0 for no other."""
    before = start_ns[task]
    found = False
    for edge in range(edge_start[task], edge_start[task + 1]):
        if edge != binding:
            source = src[edge]
            ready = (start_ns[source] if from_start[edge] else end_ns[source]) + lag_ns[edge]
            before = max(before, ready) if found else ready
            found = True
    return max(start_ns[task] - before, 0)


@compiled
def blame(
    task,
    lo_ns,
    hi_ns,
    start_ns,
    end_ns,
    residual_ns,
    blocked_by,
    edge_start,
    src,
    lag_ns,
    from_start,
    lag_cause,
    part,
    rank,
    shares,
):
    """Share out one gap `[lo_ns, hi_ns)` over what `task`, which follows it, waited for.

    Walks back along the edges that bound each start until the gap begins and adds to `shares`
    (one per cause, ns). Returns the task that took the longest part of it, -1 for none, and how
    long the host had waited for the device where it came out of such a wait inside the gap.
    """
    home = rank[task]
    cursor = hi_ns
    at = task
    through_host = False
    drained = 0
    away = False
    longest = 0
    culprit = -1
    while cursor > lo_ns:
        edge = blocked_by[at]
        if edge < 0:
            shares[COMM_WAIT if away else NO_CAUSE] += cursor - lo_ns
            break
        source = src[edge]
        ready = start_ns[source] if from_start[edge] else end_ns[source]
        unknown_from = max(start_ns[at] - max(residual_ns[at], 0), min(ready, start_ns[at]))
        taken = max(cursor - max(unknown_from, lo_ns), 0)
        shares[COMM_WAIT if away else NO_CAUSE] += taken
        cursor -= taken
        taken = max(cursor - max(ready, lo_ns), 0)
        shares[COMM_WAIT if away else lag_cause[edge]] += taken
        cursor -= taken
        if lag_cause[edge] == SYNC_DRAIN and not away:
            drained = max(
                drained,
                waited_ns(at, edge, edge_start, start_ns, end_ns, src, lag_ns, from_start),
            )
        if part[source] != MEETING and rank[source] != home:
            away = True
        taken = 0
        if not from_start[edge]:
            taken = max(cursor - max(start_ns[source], lo_ns), 0)
        if taken > longest:
            longest = taken
            culprit = source
        if away or part[source] == COMMUNICATION or part[source] == MEETING:
            shares[COMM_WAIT] += taken
        elif part[source] == HOST:
            shares[HOST_LATE] += taken
            through_host = True
        elif through_host:
            shares[SYNC_DRAIN] += taken
        else:
            shares[EVENT_WAIT] += taken
        cursor -= taken
        at = source
    return culprit, drained


@compiled
def blame_all(
    task,
    lo_ns,
    hi_ns,
    start_ns,
    end_ns,
    residual_ns,
    blocked_by,
    edge_start,
    src,
    lag_ns,
    from_start,
    lag_cause,
    part,
    rank,
):
    """`blame` for many gaps; a gap that no task follows is left without shares."""
    shares = np.zeros((len(task), N_CAUSES), np.int64)
    culprit = np.full(len(task), -1, np.int64)
    drained = np.zeros(len(task), np.int64)
    for gap in range(len(task)):
        if task[gap] >= 0:
            culprit[gap], drained[gap] = blame(
                task[gap],
                lo_ns[gap],
                hi_ns[gap],
                start_ns,
                end_ns,
                residual_ns,
                blocked_by,
                edge_start,
                src,
                lag_ns,
                from_start,
                lag_cause,
                part,
                rank,
                shares[gap],
            )
    return shares, culprit, drained
