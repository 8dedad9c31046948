"""What a task spends its time on, in the few words that a reading of a run needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np

from ingest.store import Store
from ingest.vocab import HOST_KINDS, TaskKind
from replay.graph.arrays import Int64, TaskGraph
from replay.results.cover import Cover, cover

SQL = Path(__file__).parent / "sql"
NOWHERE = cover(np.zeros(0, np.int64), np.zeros(0, np.int64))


class Cause(IntEnum):
    """What time goes to; the codes are columns of arrays."""

    HOST = 0
    """CPU work and calls, the fetching of batches left out."""
    INPUT = 1
    """CPU work inside the data loader."""
    COMPUTE = 2
    COPIES = 3
    TRANSFER = 4
    """A collective moves data: waiting for its members left out."""
    WAIT = 5
    """Waiting for members of a collective: of another group, or not in these files."""
    UNKNOWN = 6
    """Lags, residuals, releases: what no task explains."""


WORDS: Mapping[Cause, str] = {
    Cause.HOST: "host work",
    Cause.INPUT: "data loader",
    Cause.COMPUTE: "device compute",
    Cause.COPIES: "copies",
    Cause.TRANSFER: "transfers of collectives",
    Cause.WAIT: "waiting for other ranks",
    Cause.UNKNOWN: "lags and gaps without a known cause",
}
"""As people read them."""


@dataclass(frozen=True, slots=True)
class Fetching:
    """When each rank was inside its data loader, as recorded, ns after the run's origin."""

    by_rank: Mapping[int, Cover]

    def of(self, rank: int) -> Cover:
        """Of one rank; covers nothing where no loader is recorded."""
        return self.by_rank.get(rank, NOWHERE)


NOT_FETCHING = Fetching({})


def find_fetching(store: Store) -> Fetching:
    """The rows `enumerate(DataLoader)#...` and their like on the threads that carry steps."""
    rows = store.arrays_from_file(SQL / "input.sql", {})
    rank = rows["rank"].astype(np.int64)
    lo_ns, hi_ns = rows["ts_ns"].astype(np.int64), rows["end_ns"].astype(np.int64)
    return Fetching(
        {int(each): cover(lo_ns[rank == each], hi_ns[rank == each]) for each in np.unique(rank)}
    )


def task_causes(graph: TaskGraph) -> Int64:
    """Cause of every task: host work is HOST (`fetching_ns` tells what of it is INPUT)."""
    of_kind = np.full(max(TaskKind) + 1, Cause.UNKNOWN, np.int64)
    of_kind[[int(kind) for kind in HOST_KINDS]] = Cause.HOST
    of_kind[TaskKind.KERNEL] = Cause.COMPUTE
    of_kind[[TaskKind.MEMCPY, TaskKind.MEMSET]] = Cause.COPIES
    of_kind[TaskKind.TRANSFER] = Cause.TRANSFER
    of_kind[[TaskKind.ARRIVE, TaskKind.MEET]] = Cause.WAIT
    return of_kind[graph.tasks.kind]


def fetching_ns(graph: TaskGraph, fetching: Fetching) -> Int64:
    """Per task: part of its duration that its thread spent in the data loader; 0 off the host."""
    tasks = graph.tasks
    carries = np.array([lane.steps for lane in graph.lanes] + [False], bool)
    host = np.isin(tasks.kind, [int(kind) for kind in HOST_KINDS])
    if carries.any():
        host &= carries[tasks.lane]
    inside_ns = np.zeros(graph.n_tasks, np.int64)
    for rank in fetching.by_rank:
        ids = np.flatnonzero(host & (tasks.rank == rank))
        lo_ns = tasks.ts_ns[ids]
        inside_ns[ids] = fetching.of(rank).within(lo_ns, lo_ns + tasks.dur_ns[ids])
    return inside_ns
