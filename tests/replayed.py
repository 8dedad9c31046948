"""Files to graph and baseline, with words to ask what a test wants to know; times in us."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ingest.pipeline import IngestOptions, open_run
from ingest.vocab import DEVICE_KINDS, EdgeKind, Evidence, TaskKind
from replay.engine.run import replay
from replay.engine.schedule import Schedule
from replay.graph.arrays import TaskGraph
from replay.graph.build import build
from replay.graph.facts import GraphFacts
from replay.results.fidelity import Baseline, baseline
from replay.results.metrics import step_times
from tests.kineto import KinetoFile


@dataclass(frozen=True)
class Edge:
    """An incoming edge."""

    src: int
    kind: EdgeKind
    evidence: Evidence
    lag_us: float
    from_start: bool


@dataclass(frozen=True)
class Replayed:
    """A graph with its facts; tasks are asked for by the name of their row."""

    graph: TaskGraph
    facts: GraphFacts

    @cached_property
    def base(self) -> Baseline:
        """Both replays of the unchanged trace."""
        return baseline(self.graph, self.facts)

    @property
    def measured_us(self) -> float:
        """Recorded step."""
        return int(self.base.measured.mean_ns) / 1000

    def is_exact(self) -> bool:
        """The calibrated replay gives every recorded start."""
        return bool((self.base.schedule.start_ns == self.graph.tasks.ts_ns).all())

    def all_of(self, name: str, kind: TaskKind | None = None, rank: int | None = None) -> list[int]:
        """Tasks of this name in the order of their recorded start."""
        tasks = self.graph.tasks
        wanted = self.graph.names.index(name)
        found = tasks.name == wanted
        if kind is not None:
            found &= tasks.kind == kind
        if rank is not None:
            found &= tasks.rank == rank
        ids = np.flatnonzero(found)
        return [int(task) for task in ids[np.lexsort((ids, tasks.ts_ns[ids]))]]

    def task(self, name: str, kind: TaskKind | None = None, rank: int | None = None) -> int:
        """The only task of this name."""
        (found,) = self.all_of(name, kind, rank)
        return found

    def call(self, name: str, rank: int | None = None) -> int:
        """The only call of this name."""
        return self.task(name, TaskKind.HOST_CALL, rank)

    def waits(self, rank: int | None = None) -> list[int]:
        """Places where a thread may have waited, those that open a thread left out."""
        tasks = self.graph.tasks
        ids = np.flatnonzero(tasks.kind == TaskKind.HOST_WAIT)
        opening = (ids == 0) | (tasks.lane[ids] != tasks.lane[ids - 1])
        ids = ids[~opening]
        return [int(task) for task in ids if rank is None or tasks.rank[task] == rank]

    def openings(self) -> list[int]:
        """The wait that opens each thread."""
        return [
            int(t)
            for t in np.flatnonzero(self.graph.tasks.kind == TaskKind.HOST_WAIT)
            if int(t) not in self.waits()
        ]

    def edges(self, task: int, kind: EdgeKind | None = None) -> list[Edge]:
        """What a task waits for."""
        columns = self.graph.edges
        return [
            Edge(
                src=int(columns.src[edge]),
                kind=EdgeKind(columns.kind[edge]),
                evidence=Evidence(columns.evidence[edge]),
                lag_us=int(columns.lag_ns[edge]) / 1000,
                from_start=bool(columns.from_start[edge]),
            )
            for edge in range(columns.start[task], columns.start[task + 1])
            if kind is None or columns.kind[edge] == kind
        ]

    def edge(self, task: int, kind: EdgeKind) -> Edge:
        """The only edge of a kind."""
        (found,) = self.edges(task, kind)
        return found

    def sources(self, task: int, kind: EdgeKind | None = None) -> list[str]:
        """Names of what a task waits for, without its own thread or stream."""
        names = [self.name(edge.src) for edge in self.edges(task, kind)]
        return sorted(names)

    def name(self, task: int) -> str:
        """Name of the task's row; empty for a node without row."""
        number = int(self.graph.tasks.name[task])
        return self.graph.names[number] if number >= 0 else ""

    def span(self, task: int, schedule: Schedule | None = None) -> tuple[float, float]:
        """Start and end, recorded or on a schedule."""
        tasks = self.graph.tasks
        if schedule is None:
            start, end = tasks.ts_ns[task], tasks.ts_ns[task] + tasks.dur_ns[task]
        else:
            start, end = schedule.start_ns[task], schedule.end_ns[task]
        return int(start) / 1000, int(end) / 1000

    def scaled(self, factors: Mapping[str, float], *, rank: int | None = None) -> Schedule:
        """Replay with the device work of these names taking so much longer or shorter.

        Of a collective only the transfer is scaled.
        """
        tasks = self.graph.tasks
        kinds = [int(kind) for kind in DEVICE_KINDS - {TaskKind.ARRIVE}]
        dur_ns = tasks.dur_ns.copy()
        for name, factor in factors.items():
            chosen = np.isin(tasks.kind, kinds) & (tasks.name == self.graph.names.index(name))
            if rank is not None:
                chosen &= tasks.rank == rank
            dur_ns[chosen] = np.round(dur_ns[chosen] * factor)
        return replay(replace(self.graph, tasks=replace(tasks, dur_ns=dur_ns)))

    def step_us(self, schedule: Schedule) -> float:
        """Mean step of a schedule."""
        return int(step_times(self.graph, schedule).mean_ns) / 1000

    def transfer_and_wait_us(self, rank: int) -> list[tuple[float, float]]:
        """Of every member of a rank in time order, as recorded."""
        tasks = self.graph.tasks
        members = np.flatnonzero((tasks.kind == TaskKind.TRANSFER) & (tasks.rank == rank))
        members = members[np.argsort(tasks.ts_ns[members], kind="stable")]
        return [
            (
                int(tasks.dur_ns[member]) / 1000,
                int(tasks.ts_ns[member] - tasks.ts_ns[member - 1]) / 1000,
            )
            for member in members
        ]


def read(
    paths: Sequence[Path], *, ranks: tuple[int, ...] | None = None, steps: range | None = None
) -> Replayed:
    """Graph of these files."""
    with open_run(paths, options=IngestOptions(cache=False)) as run:
        built = build(run.store, ranks=ranks, steps=steps)
    return Replayed(built.graph, built.facts)


def written(
    folder: Path,
    *files: KinetoFile,
    ranks: tuple[int, ...] | None = None,
    steps: range | None = None,
) -> Replayed:
    """Graph of files that are written to `folder` first."""
    paths = [file.write(folder / f"rank{file.rank}.json") for file in files]
    return read(paths, ranks=ranks, steps=steps)
