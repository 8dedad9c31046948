"""The task graph: frozen, read-only columns whose rows are task ids."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from replay.graph.scopes import NO_SCOPES, Scopes
from replay.graph.work import NO_WORK, KernelWork

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Int8 = NDArray[np.int8]
Bool = NDArray[np.bool_]
Float64 = NDArray[np.float64]

NONE = -1
"""No task, no slice, no name, size not recorded: in id columns only."""
NEVER_RELEASED_NS = np.iinfo(np.int64).min // 4
"""Release of a task that only its edges hold back; far enough from the limit to add lags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A CPU thread, a GPU stream or a link: tasks on it run one after another."""

    kind: int
    rank: int
    device: int
    stream: int
    """Stream number as recorded; -1 for threads."""
    role: str
    """The same words on every rank: `main`, `autograd`, `thread 2`, `stream 7`, `link 0`."""
    steps: bool
    """Carries the `ProfilerStep` annotations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A communicator."""

    name: str
    ranks: tuple[int, ...]
    """Member ranks, global; empty when not recorded and not seen."""
    size: int
    backend: str
    description: str = ""
    """What the framework calls it: `mesh_dp`, `DATA_PARALLEL_GROUP`; empty when not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankInfo:
    """What a file says of its rank."""

    rank: int
    gpu: str | None
    """Device name as the profiler wrote it; None without GPU."""
    devices_seen: int
    """Number of GPUs that `deviceProperties` lists (usually those of the node)."""
    host: str | None
    host_slowdown: float = 1.0
    """Time of operators on the host beside a transfer of a collective on the host, over that alone;
    1 where nothing tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Columns with one row per task."""

    kind: Int8
    """TaskKind."""
    rank: Int32
    lane: Int32
    """Index into `TaskGraph.lanes`; -1 for MEET."""
    step: Int32
    """Ordinal of the step in which the task was issued (0 = first chosen); -1 outside."""
    name: Int32
    """Index into `TaskGraph.names`: the kernel, the call, or the innermost op of host work."""
    op: Int32
    """Index into `names`: innermost op that launched a device task or covers host work; -1."""
    module: Int32
    """Index into `names`: nn.Module or user annotation around it; -1."""
    phase: Int8
    """Phase."""
    kernel_class: Int8
    """KernelClass; meaningful for device tasks."""
    geometry: Int64
    """Equal for device tasks that were launched with the same grid and block by an operator with
    the same input shapes; -1 where neither is recorded, for host tasks and meetings."""
    ts_ns: Int64
    """Recorded (repaired, clock-aligned) start after the run's origin."""
    dur_ns: Int64
    """Duration; for TRANSFER the transfer without waiting, for ARRIVE an outside wait (else 0)."""
    release_ns: Int64
    """Not started before this time, in every replay (NEVER_RELEASED_NS: edges only)."""
    residual_ns: Int64
    """Signed; recorded start minus what its edges explain at recorded times."""
    unexplained_ns: Int64
    """Part of `dur_ns` of host work that is silence without a known cause."""
    fixed: Bool
    """Launched before the first step: scenarios leave it as it is."""
    caller: Int32
    """Task of the call that launched a device task; -1 when not recorded, and for host tasks."""
    slice_id: Int64
    """Row in the store's `slice`; -1 for nodes that no row stands for."""
    collective: Int32
    """Index into `collectives` columns for ARRIVE, TRANSFER, MEET; -1 else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collectives:
    """Columns with one row per matched (or lone) collective operation."""

    kind: Int8
    """CollectiveKind."""
    group: Int32
    """Index into `TaskGraph.groups`."""
    size_bytes: Int64
    """nccl-tests size S: per-rank buffer, for all-gather the output, for reduce-scatter the
    input; -1 when not recorded."""
    members_seen: Int32
    members_expected: Int32
    transfer_ns: Int64
    """Median over the members."""
    outside_wait_low_ns: Int64
    """Lower bound of the transfer when members are missing (else equal to `transfer_ns`)."""
    outside_wait_high_ns: Int64
    """Upper bound of the transfer when members are missing (else equal to `transfer_ns`)."""
    on_host: Bool
    """Runs on CPU threads (gloo, MPI): no GPU link carries it."""
    item_bytes: Int8
    """Of one element; -1 when its type is not recorded."""
    latency_ns: Int64
    """Part of the transfer in which no bytes of it are on the link, so that it shares nothing;
    0 where nothing says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """Incoming edges in CSR form: those of task t are `[start[t], start[t + 1])`."""

    start: Int64
    """Shape (tasks + 1,)."""
    src: Int32
    lag_ns: Int64
    kind: Int8
    """EdgeKind."""
    evidence: Int8
    """Evidence."""
    from_start: Bool
    """The lag counts from the start of the source, not from its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundaries:
    """Step boundaries: boundary k of a rank is the latest end of its tasks listed here.

    The tasks of (rank position p, boundary k) are
    `task[start[p * (n_steps + 1) + k] : start[p * (n_steps + 1) + k + 1]]`. `floor_ns` is a lower
    bound that no replay moves (host start of the first window for k = 0; else NEVER_RELEASED_NS).
    """

    n_steps: int
    ranks: tuple[int, ...]
    start: Int64
    task: Int32
    floor_ns: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradients:
    """Gradients as DDP copies them into its buckets: columns with one row each, by rank and time.

    A scenario that moves or adds tasks keeps the ids of those that there were.
    """

    rank: Int64
    task: Int64
    """Host task in which it was ready; -1 between tasks."""
    ready_ns: Int64
    """End of its copy after the run's origin, as recorded."""
    size_bytes: Int64
    """-1 when not recorded."""

    def __len__(self) -> int:
        return len(self.rank)


NO_GRADIENTS = Gradients(
    **{field.name: np.zeros(0, np.int64) for field in fields(Gradients)},
)
"""Of a run without DDP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGraph:
    """All that a replay needs; arrays are read-only, so transforms share what they do not change.

    `order` lists the task ids so that every source comes before its destination.
    """

    tasks: Tasks
    edges: Edges
    order: Int32
    collectives: Collectives
    boundaries: Boundaries
    steps: tuple[int, ...]
    """Step numbers as recorded (`ProfilerStep#12` -> 12); (0,) when the trace has none."""
    steps_recorded: bool
    lanes: tuple[Lane, ...]
    groups: tuple[Group, ...]
    ranks: tuple[RankInfo, ...]
    world_size: int | None
    names: tuple[str, ...]
    gradients: Gradients = NO_GRADIENTS
    origin: Int64 | None = None
    """Of a graph that a scenario put together anew: per task, the task of the recorded run's graph
    that it is a copy of; -1 for those that have no such one. None: tasks keep their numbers."""
    work: KernelWork = NO_WORK
    """What kernels compute and move; read where a scenario asks for it."""
    scopes: Scopes = NO_SCOPES
    """What is recorded around tasks; read where the parts of the model are asked for."""

    def __post_init__(self) -> None:
        for columns in (self.tasks, self.edges, self.collectives, self.boundaries, self.gradients):
            for field in fields(columns):
                value = getattr(columns, field.name)
                if isinstance(value, np.ndarray):
                    value.flags.writeable = False
        self.order.flags.writeable = False
        assert self.origin is None or len(self.origin) == self.n_tasks, "one per task"

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.tasks.kind)
