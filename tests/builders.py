"""Small task graphs for tests, from a description that fits on one screen."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ingest.vocab import (
    CollectiveKind,
    EdgeKind,
    Evidence,
    KernelClass,
    LaneKind,
    Phase,
    TaskKind,
)
from replay.engine.run import replay
from replay.graph.arrays import (
    NEVER_RELEASED_NS,
    NONE,
    Boundaries,
    Collectives,
    Edges,
    Group,
    Lane,
    RankInfo,
    TaskGraph,
    Tasks,
)
from replay.graph.csr import EdgeList, by_destination, topological_order
from replay.graph.facts import GraphFacts
from replay.results.fidelity import Baseline, baseline

H100 = "NVIDIA H100 80GB HBM3"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One task; what is left out has the value that matters least."""

    kind: TaskKind
    rank: int = NONE
    lane: int = NONE
    name: str = ""
    op: str = ""
    module: str = ""
    dur_ns: int = 0
    step: int = 0
    kernel_class: KernelClass = KernelClass.OTHER
    phase: Phase = Phase.UNKNOWN
    caller: int = NONE
    collective: int = NONE
    fixed: bool = False
    residual_ns: int = 0
    release_ns: int = NEVER_RELEASED_NS


@dataclass(kw_only=True)
class GraphBuilder:
    """Adds tasks in program order; neighbours of a thread or stream get their edge by themselves.

    The recorded times are those of the replay, so that it reproduces the recording.
    """

    ranks: Sequence[int] = (0,)
    gpu: str | None = H100
    devices_seen: int = 8
    world_size: int | None = None
    item_bytes: int = NONE
    """Of one element of every collective."""
    rows: list[Row] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    calls: list[tuple[CollectiveKind, int, int, int, int, int, int, bool]] = field(
        default_factory=list
    )
    edges: list[tuple[int, int, int, EdgeKind, bool]] = field(default_factory=list)
    last_of_lane: dict[int, int] = field(default_factory=dict)

    def host(self, rank: int, name: str, dur_ns: int, **more: object) -> int:
        """Host work on the main thread."""
        return self._on_thread(TaskKind.HOST_WORK, rank, name, dur_ns, more)

    def call(self, rank: int, name: str, dur_ns: int, **more: object) -> int:
        """A runtime call on the main thread."""
        return self._on_thread(TaskKind.HOST_CALL, rank, name, dur_ns, more)

    def kernel(  # noqa: PLR0913 - each argument is a column of the picture
        self,
        rank: int,
        name: str,
        dur_ns: int,
        *,
        caller: int = NONE,
        stream: int = 7,
        kind: TaskKind = TaskKind.KERNEL,
        kernel_class: KernelClass = KernelClass.GEMM,
        **more: object,
    ) -> int:
        """A device task; starts after its caller and the one before it on the stream."""
        lane = self.stream(rank, stream)
        row = Row(
            kind=kind,
            rank=rank,
            lane=lane,
            name=name,
            dur_ns=dur_ns,
            caller=caller,
            kernel_class=kernel_class,
        )
        return self._on_lane(replace(row, **more), EdgeKind.STREAM_ORDER, caller)

    def collective(  # noqa: PLR0913 - each argument is a column of the picture
        self,
        dur_ns: int,
        *,
        callers: dict[int, int],
        after: dict[int, int] | None = None,
        kind: CollectiveKind = CollectiveKind.ALL_REDUCE,
        size_bytes: int = NONE,
        stream: int = 20,
        expected: int | None = None,
        group: Sequence[int] | None = None,
        on_host: bool = False,
        outside_ns: int = 0,
        name: str = "ncclDevKernel_AllReduce",
        fixed: bool = False,
        step: int = 0,
    ) -> tuple[int, ...]:
        """One member per caller: arrivals, a meeting, transfers. Answers the transfers' ids.

        `after` names per rank a device task whose end the arrival waits for.
        """
        number = len(self.calls)
        members = tuple(group) if group is not None else tuple(callers)
        wanted = expected if expected is not None else len(members)
        backend = "cpu:gloo" if on_host else "nccl"
        self.groups.append(Group(name="g", ranks=members, size=wanted, backend=backend))
        self.calls.append(
            (kind, number, size_bytes, len(callers), wanted, dur_ns, outside_ns, on_host)
        )
        arrivals, transfers = [], []
        for rank, caller in callers.items():
            row = Row(
                kind=TaskKind.ARRIVE,
                rank=rank,
                lane=self.link(rank) if on_host else self.stream(rank, stream),
                name=name,
                step=step,
                kernel_class=KernelClass.COLLECTIVE,
                caller=caller,
                collective=number,
                fixed=fixed,
            )
            arrivals.append(
                self._on_lane(replace(row, dur_ns=outside_ns), EdgeKind.STREAM_ORDER, caller)
            )
            if after is not None:
                self.edge(after[rank], arrivals[-1])
            self.rows.append(replace(row, kind=TaskKind.TRANSFER, dur_ns=dur_ns))
            transfers.append(len(self.rows) - 1)
            self.last_of_lane[row.lane] = transfers[-1]
        self.rows.append(
            Row(
                kind=TaskKind.MEET,
                name=name,
                kernel_class=KernelClass.COLLECTIVE,
                collective=number,
                fixed=fixed,
            )
        )
        meet = len(self.rows) - 1
        for arrive, transfer in zip(arrivals, transfers, strict=True):
            self.edge(arrive, meet, kind=EdgeKind.COLLECTIVE)
            self.edge(meet, transfer, kind=EdgeKind.COLLECTIVE)
        return tuple(transfers)

    def edge(
        self,
        src: int,
        dst: int,
        lag_ns: int = 0,
        *,
        kind: EdgeKind = EdgeKind.EVENT_WAIT,
        from_start: bool = False,
    ) -> None:
        """One more dependency."""
        self.edges.append((src, dst, lag_ns, kind, from_start))

    def thread(self, rank: int) -> int:
        """Lane of the rank's main thread."""
        return self._lane(LaneKind.THREAD, rank, NONE, "main")

    def stream(self, rank: int, stream: int) -> int:
        """Lane of a stream; roles count the streams of the rank."""
        return self._lane(LaneKind.STREAM, rank, stream, f"stream {stream}")

    def link(self, rank: int) -> int:
        """Lane of the host-side collectives of a rank."""
        return self._lane(LaneKind.LINK, rank, NONE, "link 0")

    def build(self) -> TaskGraph:
        """Freeze, with the replay's times as the recording."""
        names = sorted(
            {text for row in self.rows for text in (row.name, row.op, row.module)} - {""}
        )
        n_steps = max((row.step for row in self.rows), default=0) + 1
        edges = edge_columns(self.edges, len(self.rows))
        graph = TaskGraph(
            tasks=self._tasks(names),
            edges=edges,
            order=topological_order(edges),
            collectives=self._collectives(),
            boundaries=self._boundaries(n_steps),
            steps=tuple(range(n_steps)),
            steps_recorded=True,
            lanes=tuple(self.lanes),
            groups=tuple(self.groups),
            ranks=tuple(
                RankInfo(rank=rank, gpu=self.gpu, devices_seen=self.devices_seen, host="node0")
                for rank in self.ranks
            ),
            world_size=self.world_size or len(self.ranks),
            names=tuple(names),
        )
        return replace(graph, tasks=replace(graph.tasks, ts_ns=replay(graph).start_ns.copy()))

    def _on_thread(
        self, kind: TaskKind, rank: int, name: str, dur_ns: int, more: dict[str, object]
    ) -> int:
        row = Row(kind=kind, rank=rank, lane=self.thread(rank), name=name, dur_ns=dur_ns)
        return self._on_lane(replace(row, **more), EdgeKind.PROGRAM_ORDER, NONE)

    def _on_lane(self, row: Row, kind: EdgeKind, caller: int) -> int:
        task = len(self.rows)
        previous = self.last_of_lane.get(row.lane)
        if previous is None and caller == NONE and row.release_ns == NEVER_RELEASED_NS:
            row = replace(row, release_ns=0)
        self.rows.append(row)
        if previous is not None:
            self.edge(previous, task, kind=kind)
        if caller != NONE:
            self.edge(caller, task, kind=EdgeKind.LAUNCH)
        self.last_of_lane[row.lane] = task
        return task

    def _lane(self, kind: LaneKind, rank: int, stream: int, role: str) -> int:
        lane = Lane(
            kind=kind,
            rank=rank,
            device=rank if kind == LaneKind.STREAM else NONE,
            stream=stream,
            role=role,
            steps=kind == LaneKind.THREAD,
        )
        if lane not in self.lanes:
            self.lanes.append(lane)
        return self.lanes.index(lane)

    def _tasks(self, names: list[str]) -> Tasks:
        def column(name: str, dtype: type[np.generic]) -> np.ndarray:
            return np.array([getattr(row, name) for row in self.rows], dtype)

        def text(name: str) -> np.ndarray:
            index = {known: number for number, known in enumerate(names)}
            return np.array([index.get(getattr(row, name), NONE) for row in self.rows], np.int32)

        nothing = np.zeros(len(self.rows), np.int64)
        return Tasks(
            kind=column("kind", np.int8),
            rank=column("rank", np.int32),
            lane=column("lane", np.int32),
            step=column("step", np.int32),
            name=text("name"),
            op=text("op"),
            module=text("module"),
            phase=column("phase", np.int8),
            kernel_class=column("kernel_class", np.int8),
            ts_ns=nothing,
            dur_ns=column("dur_ns", np.int64),
            release_ns=column("release_ns", np.int64),
            residual_ns=column("residual_ns", np.int64),
            unexplained_ns=nothing.copy(),
            fixed=column("fixed", np.bool_),
            caller=column("caller", np.int32),
            slice_id=np.arange(len(self.rows)),
            collective=column("collective", np.int32),
        )

    def _collectives(self) -> Collectives:
        kind, group, size, seen, expected, transfer, outside, on_host = (
            zip(*self.calls, strict=True) if self.calls else ((),) * 8
        )
        return Collectives(
            kind=np.array(kind, np.int8),
            group=np.array(group, np.int32),
            size_bytes=np.array(size, np.int64),
            members_seen=np.array(seen, np.int32),
            members_expected=np.array(expected, np.int32),
            transfer_ns=np.array(transfer, np.int64),
            outside_wait_low_ns=np.array(transfer, np.int64),
            outside_wait_high_ns=np.array(transfer, np.int64) + np.array(outside, np.int64),
            on_host=np.array(on_host, bool),
            item_bytes=np.full(len(self.calls), self.item_bytes, np.int8),
            latency_ns=np.zeros(len(self.calls), np.int64),
        )

    def _boundaries(self, n_steps: int) -> Boundaries:
        closing: list[list[int]] = []
        for rank in self.ranks:
            closing.append([])
            closing += [
                [
                    task
                    for task, row in enumerate(self.rows)
                    if row.rank == rank and row.step == step and row.kind != TaskKind.MEET
                ]
                for step in range(n_steps)
            ]
        floor_ns = np.full(len(closing), NEVER_RELEASED_NS, np.int64)
        floor_ns[:: n_steps + 1] = 0
        return Boundaries(
            n_steps=n_steps,
            ranks=tuple(self.ranks),
            start=np.cumsum([0, *(len(tasks) for tasks in closing)], dtype=np.int64),
            task=np.array([task for tasks in closing for task in tasks], np.int32),
            floor_ns=floor_ns,
        )


def edge_columns(edges: Iterable[tuple[int, int, int, EdgeKind, bool]], n_tasks: int) -> Edges:
    """CSR of (source, destination, lag, kind, from_start)."""
    rows = list(edges)
    src, dst, lag_ns, kind, from_start = zip(*rows, strict=True) if rows else ((),) * 5
    return by_destination(
        EdgeList(
            src=np.array(src, np.int32),
            dst=np.array(dst, np.int32),
            lag_ns=np.array(lag_ns, np.int64),
            kind=np.array(kind, np.int8),
            evidence=np.full(len(rows), Evidence.RECORDED, np.int8),
            from_start=np.array(from_start, bool),
        ),
        n_tasks,
    )


def facts_of(graph: TaskGraph) -> GraphFacts:
    """Facts of a graph without oddities."""
    return GraphFacts(
        files=(),
        edges={},
        contradicted={},
        lags={},
        unlinked_frac=0.0,
        members=int(graph.collectives.members_seen.sum()),
        members_matched=int(graph.collectives.members_seen.sum()),
        members_complete=int(graph.collectives.members_seen.sum()),
        issues={},
        has_device=True,
        moved_ns=0,
    )


def baseline_of(graph: TaskGraph) -> Baseline:
    """Baseline of a graph without oddities."""
    return baseline(graph, facts_of(graph))


def data_parallel(
    *,
    ranks: Sequence[int] = (0, 1),
    slow_rank: int | None = None,
    size_bytes: int = NONE,
    builder: GraphBuilder | None = None,
) -> TaskGraph:
    """Each rank: launch a 1 ms GEMM (2 ms on the slow rank), then an all-reduce of 400 us."""
    builder = builder or GraphBuilder(ranks=ranks)
    callers, gemms = {}, {}
    for rank in ranks:
        launch = builder.call(rank, "cudaLaunchKernel", 10_000)
        dur_ns = 2_000_000 if rank == slow_rank else 1_000_000
        gemms[rank] = builder.kernel(rank, "gemm_a", dur_ns, caller=launch, op="aten::mm")
        callers[rank] = builder.call(rank, "cudaLaunchKernelExC", 10_000)
    builder.collective(400_000, callers=callers, after=gemms, size_bytes=size_bytes)
    return builder.build()
