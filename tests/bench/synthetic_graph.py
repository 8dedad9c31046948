"""A task graph of any size, replayed in a process of its own: prints seconds and peak memory.

    python -m tests.bench.synthetic_graph TASKS

Eight ranks, each a thread that launches one kernel after another; every hundredth kernel waits for
those of all ranks before it, as a collective does. Columns that no replay reads hold one value.
"""

import json
import sys
import time
from typing import Any

import numpy as np

from ingest.vocab import EdgeKind, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import NEVER_RELEASED_NS, Boundaries, Collectives, Edges, TaskGraph, Tasks
from replay.graph.csr import topological_order
from tests.bench.one_reading import peak_bytes

RANKS = 8
MEET_EVERY = 100
ROUNDS = 3


def synthetic_graph(n_tasks: int) -> TaskGraph:
    """Per rank `n_tasks / 16` calls and as many kernels; ids by rank: calls, then kernels."""
    per_lane = n_tasks // (2 * RANKS)
    n_tasks = per_lane * 2 * RANKS
    edges = _edges(per_lane)
    dur_ns = np.empty((RANKS, 2, per_lane), np.int64)
    dur_ns[:, 0] = 3_000 + np.arange(per_lane) % 5_000
    dur_ns[:, 1] = 2_000 + np.arange(per_lane) * 7 % 9_000
    release_ns = np.full(n_tasks, NEVER_RELEASED_NS)
    release_ns[:: 2 * per_lane] = 0
    nothing = np.zeros(0, np.int64)
    return TaskGraph(
        tasks=_tasks(n_tasks, dur_ns.reshape(-1), release_ns),
        edges=edges,
        order=topological_order(edges),
        collectives=Collectives(**dict.fromkeys(Collectives.__slots__, nothing)),
        boundaries=Boundaries(
            n_steps=0, ranks=(), start=nothing, task=nothing.astype(np.int32), floor_ns=nothing
        ),
        steps=(0,),
        steps_recorded=False,
        lanes=(),
        groups=(),
        ranks=(),
        world_size=RANKS,
        names=("",),
    )


def _edges(per_lane: int) -> Edges:
    """Program order, launches, stream order, and from the kernels of all ranks where they meet."""
    n_incoming = np.empty((RANKS, 2, per_lane), np.int8)
    n_incoming[:, 0] = 1
    n_incoming[:, 1] = 2
    n_incoming[:, :, 0] -= 1
    meets = np.arange(MEET_EVERY, per_lane, MEET_EVERY)
    n_incoming[:, 1, meets] = 1 + RANKS
    start = np.zeros(RANKS * 2 * per_lane + 1, np.int64)
    np.cumsum(n_incoming.reshape(-1), dtype=np.int64, out=start[1:])
    src = np.empty(start[-1], np.int32)
    for rank in range(RANKS):
        first_call, first_kernel = 2 * rank * per_lane, (2 * rank + 1) * per_lane
        calls = np.arange(per_lane, dtype=np.int32)
        src[start[first_call + 1 : first_kernel]] = first_call + calls[:-1]
        src[start[first_kernel : first_kernel + per_lane]] = first_call + calls
        src[start[first_kernel + 1 : first_kernel + per_lane] + 1] = first_kernel + calls[:-1]
        for other in range(RANKS):
            before = (2 * other + 1) * per_lane + meets - 1
            src[start[first_kernel + meets] + 1 + other] = before
    return Edges(
        start=start,
        src=src,
        lag_ns=np.full(len(src), 1_500, np.int64),
        kind=_one(EdgeKind.STREAM_ORDER, len(src), np.int8),
        evidence=_one(0, len(src), np.int8),
        from_start=np.zeros(len(src), bool),
    )


def _tasks(n_tasks: int, dur_ns: np.ndarray, release_ns: np.ndarray) -> Tasks:
    ids = ("rank", "lane", "step", "name", "op", "module", "caller", "collective")
    return Tasks(
        kind=_one(TaskKind.KERNEL, n_tasks, np.int8),
        phase=_one(0, n_tasks, np.int8),
        kernel_class=_one(0, n_tasks, np.int8),
        geometry=_one(-1, n_tasks, np.int64),
        fixed=_one(0, n_tasks, np.bool_),
        ts_ns=_one(0, n_tasks, np.int64),
        unexplained_ns=_one(0, n_tasks, np.int64),
        slice_id=_one(-1, n_tasks, np.int64),
        dur_ns=dur_ns,
        release_ns=release_ns,
        residual_ns=np.zeros(n_tasks, np.int64),
        **{name: _one(-1, n_tasks, np.int32) for name in ids},
    )


def _one(value: int, length: int, dtype: type[np.generic]) -> Any:  # noqa: ANN401  (any dtype)
    return np.broadcast_to(np.array(value, dtype), length)


def main(n_tasks: str) -> None:
    """Replay, then print one line of JSON; the best of a few replays counts."""
    replay(synthetic_graph(2 * RANKS))
    graph = synthetic_graph(int(n_tasks))
    best_s = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        schedule = replay(graph)
        best_s = min(best_s, time.perf_counter() - began)
        end_ns = int(schedule.end_ns.max())
        del schedule
    began = time.perf_counter()
    topological_order(graph.edges)
    answer = {
        "tasks": graph.n_tasks,
        "edges": len(graph.edges.src),
        "replay_s": best_s,
        "order_s": time.perf_counter() - began,
        "peak_bytes": peak_bytes(),
        "end_ns": end_ns,
    }
    print(json.dumps(answer))  # noqa: T201  (its answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
