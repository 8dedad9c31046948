"""Jobs that share a link: how long each would take alone, and when each ends beside the others.

A job is on the link for a part of its time when alone, its *weight*: bytes take the link, latency
does not. Beside others it takes `1 + weight * (sum of the weights of the others)` times as long: n
jobs of weight 1 take n times as long, as equal shares of the link do; one of weight 0 is not slowed
and slows nobody; in between, each waits for the part of the time that the others are on the link.

Floating point, in the order of the jobs, so that equal input gives equal output.
"""

import numpy as np

from ingest.compiled import compiled


@compiled
def alone_times(first, start_ns, end_ns, weight, alone_ns):
    """Write how long each job would have taken alone, from when it ran beside the others.

    Jobs of link k are `[first[k], first[k + 1])`, by start. All columns are float64.
    """
    active = np.empty(len(start_ns), np.int64)
    for link in range(len(first) - 1):
        arriving, behind = first[link], first[link + 1]
        count = 0
        now = 0.0
        on_link = 0.0
        while arriving < behind or count > 0:
            if count == 0:
                now = start_ns[arriving]
                on_link = 0.0
            moment, ending = np.inf, -1
            for place in range(count):
                if end_ns[active[place]] < moment:
                    moment, ending = end_ns[active[place]], place
            arrives = arriving < behind and start_ns[arriving] < moment
            if arrives:
                moment, ending = start_ns[arriving], -1
            passed = max(moment - now, 0.0)
            for place in range(count):
                job = active[place]
                alone_ns[job] += passed / (1.0 + weight[job] * (on_link - weight[job]))
            now = max(moment, now)
            if arrives:
                active[count] = arriving
                on_link += weight[arriving]
                arriving += 1
                count += 1
            else:
                on_link -= weight[active[ending]]
                count -= 1
                active[ending] = active[count]


@compiled
def shared_ends(first, start_ns, alone_ns, weight, end_ns):
    """Write when each job ends, from its start and its time alone: the inverse of `alone_times`."""
    active = np.empty(len(start_ns), np.int64)
    left = alone_ns.copy()
    for link in range(len(first) - 1):
        arriving, behind = first[link], first[link + 1]
        count = 0
        now = 0.0
        on_link = 0.0
        while arriving < behind or count > 0:
            if count == 0:
                now = start_ns[arriving]
                on_link = 0.0
            moment, ending = np.inf, -1
            for place in range(count):
                job = active[place]
                ends = now + left[job] * (1.0 + weight[job] * (on_link - weight[job]))
                if ends < moment:
                    moment, ending = ends, place
            arrives = arriving < behind and start_ns[arriving] < moment
            if arrives:
                moment, ending = start_ns[arriving], -1
            passed = max(moment - now, 0.0)
            for place in range(count):
                job = active[place]
                left[job] -= passed / (1.0 + weight[job] * (on_link - weight[job]))
            now = max(moment, now)
            if arrives:
                active[count] = arriving
                on_link += weight[arriving]
                arriving += 1
                count += 1
            else:
                end_ns[active[ending]] = now
                on_link -= weight[active[ending]]
                count -= 1
                active[ending] = active[count]
