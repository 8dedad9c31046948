"""The compiled passes: one visit of each task in topological order, for one replay or for several.

Their meaning is the recursive oracle in `tests/oracles/replay.py`.
"""

import numpy as np

from ingest.compiled import compiled, word_at

WIDTH = 16
"""Replays side by side in one `tile_pass`: their times of a task are two cache lines."""
EARLIEST_NS = np.iinfo(np.int64).min


@compiled
def forward_pass(
    order, edge_start, src, lag_ns, from_start, dur_ns, release_ns, residual_ns, start_ns, end_ns,
    blocked_by,
):  # fmt: skip
    """Write start and end of every task, and the edge that bound its start (-1: its release).

    start[t] = max(release[t], max over its edges of source end (or start) + lag) + residual[t];
    the release wins a tie, then the first edge in CSR order, so that the result does not depend on
    anything else. The choices are written as values, not as branches: which edge binds is as good
    as random, and a processor that guesses it waits longer than for both answers.
    """
    for position in range(len(order)):
        task = order[position]
        best = EARLIEST_NS
        binding = -1
        for edge in range(edge_start[task], edge_start[task + 1]):
            source = src[edge]
            ready = (start_ns[source] if from_start[edge] else end_ns[source]) + lag_ns[edge]
            later = ready > best
            best = ready if later else best
            binding = edge if later else binding
        released = release_ns[task] >= best
        best = release_ns[task] if released else best
        start = best + residual_ns[task]
        start_ns[task] = start
        end_ns[task] = start + dur_ns[task]
        blocked_by[task] = -1 if released else binding


@compiled
def tile_pass(order, edge_start, src, lag_ns, from_start, release_ns, residual_ns, dur_at, end_ns):
    """End of every task in WIDTH replays that differ in durations alone.

    The columns of the graph are those of `forward_pass`; `dur_at` has the address of the durations
    (contiguous, 64 bits) of each replay, as reading each from where it lies is quicker than
    bringing them side by side first. Writes `end_ns`, of shape (tasks, WIDTH).

    Nearly all tasks have one edge or two, from ends: those are written out, so that their times
    stay in registers and the loop over the replays becomes vector instructions.
    """
    for position in range(len(order)):
        task = np.int64(order[position])
        first = edge_start[task]
        behind = edge_start[task + 1]
        release = release_ns[task]
        residual = residual_ns[task]
        if behind == first + 1 and not from_start[first]:
            source, lag = src[first], lag_ns[first]
            for place in range(WIDTH):
                after = residual + np.int64(word_at(dur_at[place] + 8 * task))
                end_ns[task, place] = max(release, end_ns[source, place] + lag) + after
        elif behind == first + 2 and not from_start[first] and not from_start[first + 1]:
            source, lag = src[first], lag_ns[first]
            other, other_lag = src[first + 1], lag_ns[first + 1]
            for place in range(WIDTH):
                after = residual + np.int64(word_at(dur_at[place] + 8 * task))
                ready = max(end_ns[source, place] + lag, end_ns[other, place] + other_lag)
                end_ns[task, place] = max(release, ready) + after
        else:
            for place in range(WIDTH):
                end_ns[task, place] = release
            for edge in range(first, behind):
                source, lag = np.int64(src[edge]), lag_ns[edge]
                for place in range(WIDTH):
                    ready = end_ns[source, place] + lag
                    if from_start[edge]:
                        ready -= np.int64(word_at(dur_at[place] + 8 * source))
                    end_ns[task, place] = max(end_ns[task, place], ready)
            for place in range(WIDTH):
                after = residual + np.int64(word_at(dur_at[place] + 8 * task))
                end_ns[task, place] += after
