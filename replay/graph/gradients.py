"""Gradients as PyTorch's DDP copies them into its buckets: how large, and when each is ready."""

import json
from math import prod

import numpy as np

from ingest.normalise.messages import DTYPE_BYTES, dtype_code
from ingest.store import Store
from replay.graph.arrays import NO_GRADIENTS, NONE, Gradients, Int64
from replay.graph.host_tasks import HostTasks
from replay.graph.recorded import SQL, Recorded

COPIED = "torch::distributed::reducer::mul_out"
"""Operator that divides a gradient by the number of ranks and writes it into its bucket."""


def find_gradients(store: Store, recorded: Recorded, host_tasks: HostTasks) -> Gradients:
    """The gradients of the chosen ranks."""
    if COPIED not in recorded.names:
        return NO_GRADIENTS
    name = recorded.names.index(COPIED)
    host = recorded.host
    rows = np.flatnonzero(host.name == name)
    columns = store.arrays_from_file(SQL / "gradient.sql", {"name_id": name})
    sizes = {
        int(slice_id): _size_bytes(str(dims), str(types))
        for slice_id, dims, types in zip(*columns.values(), strict=True)
    }
    rank = np.array(recorded.ranks, np.int64)[host.trace[rows]]
    order = np.lexsort((host.end_ns[rows], rank))
    rows, rank = rows[order], rank[order]
    return Gradients(
        rank=rank,
        task=_running_at(host_tasks, host.thread[rows], host.end_ns[rows]),
        ready_ns=host.end_ns[rows].copy(),
        size_bytes=np.array([sizes.get(int(each), NONE) for each in host.slice_id[rows]], np.int64),
    )


def _size_bytes(dims: str, types: str) -> int:
    """Bytes of the first input; -1 where its shape or type is not recorded."""
    try:
        shape, dtype = json.loads(dims)[0], json.loads(types)[0]
    except (ValueError, IndexError, TypeError):
        return NONE
    code = dtype_code(dtype)
    if code < 0 or not all(isinstance(size, int) for size in shape):
        return NONE
    return int(DTYPE_BYTES[code] * prod(shape))


def _running_at(host_tasks: HostTasks, thread: Int64, moment_ns: Int64) -> Int64:
    """Host task that runs on each thread at the moment; -1 for none."""
    found = np.full(len(thread), NONE, np.int64)
    for each in np.unique(thread).tolist():
        mine = np.flatnonzero(thread == each)
        first, last = np.searchsorted(host_tasks.thread, [each, each + 1])
        begins_ns = host_tasks.ts_ns[first:last]
        place = first + np.searchsorted(begins_ns, moment_ns[mine], side="right") - 1
        valid = place >= first
        place = np.maximum(place, 0)
        valid &= moment_ns[mine] <= host_tasks.ts_ns[place] + host_tasks.dur_ns[place]
        found[mine] = np.where(valid, place, NONE)
    return found
