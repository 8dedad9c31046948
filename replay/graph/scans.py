"""The loops of the graph that depend on what came before: compiled, over plain arrays.

Integers stand for the kinds that the callers name; nothing here raises, logs or prints.
"""

import numpy as np

from ingest.compiled import compiled

BACK_LIMIT = 64
"""How many earlier rows of a lane `neighbours` looks at."""
WAITED_SIZE = 1 << 22
"""Entries of the table of what lanes have waited for; lanes share rows of it beyond that."""


@compiled
def kahn(edge_start, src):
    """Task ids with every source before its destination; shorter than the task count on a cycle.

    Kahn's algorithm over the outgoing lists, last in first out, smallest id first: it follows a
    thread or a stream until something else is missing. Tasks of a lane are neighbours in memory,
    and a replay in this order reads what it has just written (nanogpt, 8 ranks: a visit of the
    tasks takes half the time of that in first-in-first-out order).
    """
    n = len(edge_start) - 1
    out_start = np.zeros(n + 1, np.int64)
    for edge in range(len(src)):
        out_start[src[edge] + 1] += 1
    for task in range(n):
        out_start[task + 1] += out_start[task]
    fill = out_start[:-1].copy()
    destination = np.empty(len(src), np.int32)
    missing = np.empty(n, np.int32)
    for task in range(n - 1, -1, -1):
        missing[task] = edge_start[task + 1] - edge_start[task]
        for edge in range(edge_start[task], edge_start[task + 1]):
            source = src[edge]
            destination[fill[source]] = task
            fill[source] += 1
    order = np.empty(n, np.int32)
    ready = np.empty(n, np.int32)
    n_ready = 0
    for task in range(n - 1, -1, -1):
        if missing[task] == 0:
            ready[n_ready] = task
            n_ready += 1
    visited = 0
    while n_ready > 0:
        n_ready -= 1
        task = ready[n_ready]
        order[visited] = task
        visited += 1
        for position in range(out_start[task], out_start[task + 1]):
            following = destination[position]
            missing[following] -= 1
            if missing[following] == 0:
                ready[n_ready] = following
                n_ready += 1
    return order[:visited]


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
        while (row < n and thread[row] == current) or depth > 0:
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


@compiled
def lay_out(carries, begin_ns, finish_ns, item_thread, lo_ns, hi_ns, item_type):
    """Fill the gaps between the items of each thread with work.

    Items are sorted by (thread, lo, hi); one that begins before the previous ended is cut short.
    Item types: 0 mark, 1 call, 2 wait. Kinds out: 0 work, 1 call, 2 wait (TaskKind).
    """
    n_items = len(item_thread)
    n_threads = len(carries)
    capacity = 2 * n_items + 2 * n_threads
    thread = np.empty(capacity, np.int64)
    kind = np.empty(capacity, np.int64)
    ts_ns = np.empty(capacity, np.int64)
    dur_ns = np.empty(capacity, np.int64)
    task_of_item = np.full(n_items, -1, np.int64)
    start_task = np.full(n_threads, -1, np.int64)
    count = 0
    item = 0
    for current in range(n_threads):
        if not carries[current]:
            continue
        now = begin_ns[current]
        start_task[current] = count
        thread[count], kind[count], ts_ns[count], dur_ns[count] = current, 2, now, 0
        count += 1
        while item < n_items and item_thread[item] == current:
            lo = max(lo_ns[item], now)
            hi = max(hi_ns[item], lo)
            if lo > now:
                thread[count], kind[count], ts_ns[count], dur_ns[count] = current, 0, now, lo - now
                count += 1
            if item_type[item] == 1:
                thread[count], kind[count], ts_ns[count], dur_ns[count] = current, 1, lo, hi - lo
                task_of_item[item] = count
                count += 1
            elif item_type[item] == 2:
                thread[count], kind[count], ts_ns[count], dur_ns[count] = current, 2, hi, 0
                task_of_item[item] = count
                count += 1
            now = hi
            item += 1
        if finish_ns[current] > now:
            thread[count], kind[count] = current, 0
            ts_ns[count], dur_ns[count] = now, finish_ns[current] - now
            count += 1
    return (
        thread[:count],
        kind[:count],
        ts_ns[:count],
        dur_ns[:count],
        task_of_item,
        start_task,
    )


@compiled
def _oldest(next_place, pending, end_ns, limit_ns):
    """First of the places, one per lane, whose row did not end after the limit; -1 for none."""
    found = -1
    for place in next_place:
        if place >= 0 and end_ns[pending[place]] <= limit_ns and (found < 0 or place < found):
            found = place
    return found


@compiled
def _last_ended(column, last_place, previous, pending, end_ns, limit_ns):
    """Per lane (column) the place of its latest row that did not end after the limit; -1.

    `column` is that of the waiting lane, which counts for nothing. Rows of a lane end one after the
    other, so the walk back is as long as the host is ahead.
    """
    found = np.full(len(last_place), -1, np.int64)
    for other in range(len(last_place)):
        place = last_place[other] if other != column else -1
        while place >= 0 and end_ns[pending[place]] > limit_ns:
            place = previous[place]
        found[other] = place
    return found


@compiled
def ordered_pairs(
    trace,
    thread,
    call_type,
    member,
    in_record,
    src_row,
    src_lane,
    dst_row,
    dst_lane,
    has_records,
    lane,
    slot,
    column,
    launch_ns,
    ts_ns,
    end_ns,
    tolerance_ns,
    near_ns,
    n_threads,
):
    """Walk the calls of each file in time order and pair waits with what they wait for.

    Types: 0 record, 1 wait, 2 launch. Evidence out: 1 ordered, 2 inferred. `slot` numbers the
    lanes of a file, `column` those with collectives. `pending` holds the ends of collectives in
    issue order, those of a lane chained; `waited_to` tells for each waiting lane and column up to
    which: to wait for one is to wait for all before it on its lane. In files without records a wait
    with no launch since that of a lone collective is for that collective.
    """
    n = len(trace)
    out_src = np.empty(n, np.int64)
    out_dst = np.empty(n, np.int64)
    out_evidence = np.empty(n, np.int64)
    count = 0
    last_type = np.full(n_threads, -1, np.int64)
    last_call = np.full(n_threads, -1, np.int64)
    last_member = np.full(n_threads, -1, np.int64)
    pending = np.empty(n + 1, np.int64)
    previous = np.full(n + 1, -1, np.int64)
    following_place = np.full(n + 1, -1, np.int64)
    place_of = np.full(len(ts_ns) + 1, -1, np.int64)
    n_columns = column.max() + 1 if len(column) else 0
    n_slots = slot.max() + 1 if len(slot) else 1
    n_waiting = min(n_slots, WAITED_SIZE // max(n_columns, 1) + 1)
    waited_to = np.full((n_waiting, n_columns), -1, np.int64)
    first_place = np.full(n_columns, -1, np.int64)
    last_place = np.full(n_columns, -1, np.int64)
    next_place = np.full(n_columns, -1, np.int64)
    in_a_row = np.zeros(n_threads, np.int64)
    inside = np.full(n_threads, -1, np.int64)
    launched_inside = np.zeros(n_threads, np.bool_)
    n_pending = 0
    current = -1
    launches_member = np.zeros(n, np.bool_)
    following = np.zeros(n_threads, np.bool_)
    for call in range(n - 1, -1, -1):
        launches_member[call] = following[thread[call]]
        if call_type[call] == 2:
            following[thread[call]] = member[call] >= 0
    for call in range(n):
        if trace[call] != current:
            current = trace[call]
            first_place[:] = -1
            last_place[:] = -1
            waited_to[:] = -1
        worker = thread[call]
        if in_record[call] != inside[worker]:
            inside[worker] = in_record[call]
            launched_inside[worker] = False
        ended = -1
        if call_type[call] == 2:
            launched_inside[worker] = in_record[call] >= 0
            in_a_row[worker] = in_a_row[worker] + 1 if member[call] >= 0 else 0
            last_member[worker] = member[call]
            if not has_records[current]:
                ended = member[call]
        elif call_type[call] == 0:
            ended = last_member[worker]
            last_member[worker] = -1
        if ended >= 0:
            mine = column[lane[ended]]
            pending[n_pending] = ended
            place_of[ended] = n_pending
            previous[n_pending] = last_place[mine]
            if last_place[mine] >= 0:
                following_place[last_place[mine]] = n_pending
            else:
                first_place[mine] = n_pending
            last_place[mine] = n_pending
            n_pending += 1
        if call_type[call] == 1 and dst_row[call] >= 0:
            target = dst_row[call]
            waiting = dst_lane[call]
            waited = waited_to[slot[waiting] % n_waiting]
            limit_ns = ts_ns[target] + tolerance_ns
            source = -1
            evidence = 1
            lone = True
            if has_records[current]:
                if last_type[worker] == 0:
                    lone = False
                    record = last_call[worker]
                    if src_lane[record] != waiting:
                        source = src_row[record]
                        if source >= 0 and end_ns[source] > limit_ns:
                            source = -1
                            lone = True
            elif in_record[call] >= 0 or launches_member[call]:
                lone = in_record[call] < 0
                after_launch = in_record[call] >= 0 and launched_inside[worker]
                if not after_launch and src_lane[call] != waiting and src_row[call] >= 0:
                    source = src_row[call]
                    if lone and end_ns[source] > limit_ns:
                        source = -1
                    else:
                        lone = False
            if lone:
                issued = last_member[worker]
                just_issued = not has_records[current] and in_a_row[worker] == 1
                just_issued = just_issued and lane[issued] != waiting
                just_issued = just_issued and end_ns[issued] <= limit_ns
                if just_issued and waited[column[lane[issued]]] < place_of[issued]:
                    source = issued
                late_ns = ts_ns[target] - near_ns
                ends = last_place
                if source < 0 and not has_records[current]:
                    ends = _last_ended(
                        column[waiting], last_place, previous, pending, end_ns, limit_ns
                    )
                    newest = -1
                    if launch_ns[target] < late_ns:
                        for place in ends:
                            if place > newest and end_ns[pending[place]] >= late_ns:
                                newest = place
                    if newest >= 0:
                        source = pending[newest]
                        evidence = 2
                if source < 0:
                    for other in range(n_columns):
                        last = waited[other]
                        next_place[other] = first_place[other]
                        if last >= 0:
                            next_place[other] = following_place[last]
                        if other == column[waiting]:
                            next_place[other] = -1
                    place = _oldest(next_place, pending, end_ns, limit_ns)
                    if place >= 0:
                        source = pending[place]
                if source < 0 and not has_records[current]:
                    evidence = 2
                    for place in ends:
                        if place >= 0:
                            row = pending[place]
                            if source < 0 or end_ns[row] > end_ns[source]:
                                source = row
            if source >= 0:
                mine = column[lane[source]]
                if mine >= 0:
                    reached = place_of[source] if place_of[source] >= 0 else last_place[mine]
                    waited[mine] = max(waited[mine], reached)
                out_src[count] = source
                out_dst[count] = target
                out_evidence[count] = evidence
                count += 1
        last_type[worker] = call_type[call]
        last_call[worker] = call
    return out_src[:count], out_dst[:count], out_evidence[:count]


@compiled
def neighbours(lane, ts_ns, end_ns, overlap_ns):
    """Previous row of each row's lane that does not overlap it by more than `overlap_ns`; -1.

    Also tells where the direct neighbour overlapped by more.
    """
    n = len(lane)
    previous = np.full(n, -1, np.int64)
    overlapped = np.zeros(n, np.bool_)
    for row in range(n):
        back = row - 1
        while back >= 0 and lane[back] == lane[row] and row - back <= BACK_LIMIT:
            if end_ns[back] - ts_ns[row] < overlap_ns and ts_ns[back] <= ts_ns[row]:
                previous[row] = back
                break
            overlapped[row] = True
            back -= 1
    return previous, overlapped


@compiled
def helpers(
    waiter, trace, lo_ns, hi_ns, trace_first, by_end, thread, row_lo_ns, row_hi_ns, first, late_ns
):
    """Per wait the thread that worked meanwhile and fell silent just before its end, and when.

    Rows of work are sorted by (thread, time), those of thread t from `first[t]` on, and do not
    overlap within a thread. `by_end` has those of the threads that may help by (trace, end, last
    thread first), those of trace t from `trace_first[t]` on. The last row that a thread began
    before the end of the wait must end inside the wait, less than `late_ns` before its end, and
    the thread must have been at work for half of the wait. The latest counts, then the first
    thread; -1 where there is none.
    """
    helper = np.full(len(waiter), -1, np.int64)
    helper_end_ns = np.full(len(waiter), -1, np.int64)
    end_ns = row_hi_ns[by_end]
    for wait in range(len(waiter)):
        lo, hi = lo_ns[wait], hi_ns[wait]
        begin, behind = trace_first[trace[wait]], trace_first[trace[wait] + 1]
        place = begin + np.searchsorted(end_ns[begin:behind], hi, side="right") - 1
        while place >= begin and end_ns[place] > max(lo, hi - late_ns):
            row = by_end[place]
            place -= 1
            worker = thread[row]
            if worker == waiter[wait] or (row + 1 < first[worker + 1] and row_lo_ns[row + 1] < hi):
                continue
            own = first[worker]
            own += np.searchsorted(row_hi_ns[own:row], lo, side="right")
            if 2 * (row_hi_ns[row] - max(lo, row_lo_ns[own])) >= hi - lo:
                helper[wait] = worker
                helper_end_ns[wait] = row_hi_ns[row]
                break
    return helper, helper_end_ns


@compiled
def last_ended(trace, lo_ns, hi_ns, trace_first, end_ns, launch_ns, late_ns):
    """Per wait the position of the last row to end in it, launched before it; -1 for none.

    Rows are sorted by (trace, end), those of trace t from `trace_first[t]` on; they end at most
    `late_ns` before the wait does.
    """
    found = np.full(len(trace), -1, np.int64)
    for wait in range(len(trace)):
        begin, behind = trace_first[trace[wait]], trace_first[trace[wait] + 1]
        place = begin + np.searchsorted(end_ns[begin:behind], hi_ns[wait], side="right") - 1
        while place >= begin and end_ns[place] >= hi_ns[wait] - late_ns:
            if launch_ns[place] < lo_ns[wait]:
                found[wait] = place
                break
            place -= 1
    return found


@compiled
def nearest_ended(trace, lo_ns, hi_ns, trace_first, end_ns, issued_ns, late_ns, early_ns):
    """Per wait the position of the row whose end is nearest to its end; -1 for none.

    Rows are sorted by (trace, end), those of trace t from `trace_first[t]` on. They were issued
    before the wait began, had not ended by then, and end from its `late_ns` before the end of the
    wait to less than its `early_ns` behind it. Of two as near, the first.
    """
    found = np.full(len(trace), -1, np.int64)
    for wait in range(len(trace)):
        lo, hi = lo_ns[wait], hi_ns[wait]
        begin, behind = trace_first[trace[wait]], trace_first[trace[wait] + 1]
        place = begin + np.searchsorted(end_ns[begin:behind], hi - late_ns[wait])
        nearest_ns = late_ns[wait] + early_ns[wait] + 1
        while place < behind and end_ns[place] < hi + early_ns[wait]:
            distance_ns = abs(end_ns[place] - hi)
            if issued_ns[place] <= lo and end_ns[place] > lo and distance_ns < nearest_ns:
                found[wait] = place
                nearest_ns = distance_ns
            place += 1
    return found


@compiled
def last_at_or_before(thread, ts_ns, of_thread, moment_ns):
    """Position of the last (thread, start) at or before each (thread, moment); 0 for none.

    Both are sorted, so that one walk over both finds them.
    """
    found = np.zeros(len(of_thread), np.int64)
    place = -1
    for query in range(len(of_thread)):
        wanted, moment = of_thread[query], moment_ns[query]
        while place + 1 < len(thread) and (
            thread[place + 1] < wanted
            or (thread[place + 1] == wanted and ts_ns[place + 1] <= moment)
        ):
            place += 1
        found[query] = max(place, 0)
    return found
