"""Strokes: the pieces of work of a rank in the order in which its host issued them.

Where a rank has a device these are its kernels, copies and collectives; else what its main thread
computes. Everything that labels a run looks at strokes; host tasks follow them.
"""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import LaneKind, Phase, TaskKind
from replay.graph.arrays import NONE, Bool, Int8, Int32, Int64, TaskGraph
from whatif.description.doing import Doing, doing_of
from whatif.description.products import products_of
from whatif.description.stacks import Stacks, stacks_of

_DEVICE = (TaskKind.KERNEL, TaskKind.MEMCPY, TaskKind.MEMSET, TaskKind.TRANSFER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strokes:
    """Columns with one row per stroke of one rank, in order of issue."""

    rank: int
    on_device: bool
    task: Int64
    issue_ns: Int64
    """Start of the call that launched it, or of the work itself."""
    step: Int32
    phase: Int8
    """Phase."""
    again: Bool
    """Forward work inside backward."""
    doing: Int8
    """Doing."""
    token: Int64
    """Equal for strokes that do the same with the same shapes."""
    op_id: Int64
    """Operator call that it belongs to; -1."""
    shape: Int32
    """Into the shapes of the graph's scopes; -1."""
    is_copy: Bool
    """A copy between host and device."""
    collective: Int32
    """Into the collectives of the graph; -1."""
    node: Int32
    """Stack around it; -1."""
    forward_ns: Int64
    """Start of the forward operator whose gradient it is; -1."""
    forward_node: Int32
    product: Int64
    """Batch, m, n, k; shape (strokes, 4), zeros where it is none."""
    dur_ns: Int64

    def __len__(self) -> int:
        return len(self.task)


def strokes_of(graph: TaskGraph) -> list[Strokes]:
    """Of every rank in the files."""
    stacks = stacks_of(graph)
    product = products_of(graph)
    return [_of_rank(graph, info.rank, stacks, product) for info in graph.ranks]


def _of_rank(graph: TaskGraph, rank: int, stacks: Stacks, product: Int64) -> Strokes:
    tasks = graph.tasks
    mine = (tasks.rank == rank) & (tasks.step >= 0) & ~tasks.fixed
    is_device = np.isin(tasks.kind, _DEVICE)
    links = np.array([lane.kind == LaneKind.LINK for lane in graph.lanes] + [False], bool)
    computes = np.flatnonzero(mine & is_device & (tasks.kind != TaskKind.TRANSFER))
    if len(computes):
        task = np.flatnonzero(mine & is_device)
        caller = tasks.caller[task]
        issue_ns = np.where(caller != NONE, tasks.ts_ns[caller], tasks.ts_ns[task])
    else:
        main = np.array([lane.role in ("main", "autograd") for lane in graph.lanes] + [False], bool)
        works = (tasks.kind <= TaskKind.HOST_CALL) & (tasks.dur_ns > 0) & main[tasks.lane]
        task = np.flatnonzero(mine & works & ~links[tasks.lane])
        issue_ns = tasks.ts_ns[task]
    order = np.lexsort((tasks.ts_ns[task], issue_ns))
    task, issue_ns = task[order], issue_ns[order]
    doing = _doings(graph, task, stacks, on_device=bool(len(computes)))
    return Strokes(
        rank=rank,
        on_device=bool(len(computes)),
        task=task,
        issue_ns=issue_ns,
        step=tasks.step[task],
        phase=_phases(tasks.phase[task], stacks, task),
        again=stacks.again[task],
        doing=doing,
        token=_tokens(graph, task, stacks, doing, product[task]),
        op_id=stacks.op_id[task],
        shape=stacks.shape[task],
        is_copy=tasks.kind[task] == TaskKind.MEMCPY,
        collective=tasks.collective[task],
        node=stacks.node[task],
        forward_ns=stacks.forward_ns[task],
        forward_node=stacks.forward_node[task],
        product=product[task],
        dur_ns=tasks.dur_ns[task],
    )


def _phases(phase: Int8, stacks: Stacks, task: Int64) -> Int8:
    """Optimizer and backward wherever names say so; else as recorded."""
    silent = phase == Phase.UNKNOWN
    has_backward = bool((phase == Phase.BACKWARD).any())
    found = phase.copy()
    found[silent & (stacks.own[task] >= 0) & has_backward] = Phase.FORWARD
    found[silent & stacks.in_backward[task]] = Phase.BACKWARD
    found[stacks.in_optimizer[task]] = Phase.OPTIMIZER
    return found


def _doings(graph: TaskGraph, task: Int64, stacks: Stacks, *, on_device: bool) -> Int8:
    """Decided once for each distinct (stack, kernel, class)."""
    tasks = graph.tasks
    name = tasks.name[task] if on_device else np.full(len(task), NONE)
    keys = np.stack([stacks.node[task], name, tasks.kernel_class[task]]).astype(np.int64)
    distinct, place = np.unique(keys, axis=1, return_inverse=True)
    found = [
        doing_of(
            _around(stacks, node),
            graph.names[one] if one >= 0 else "",
            kernel_class,
        )
        for node, one, kernel_class in distinct.T.tolist()
    ]
    doing = np.array(found, np.int8)[place.ravel()] if len(found) else np.zeros(0, np.int8)
    whole = np.array([Doing.NOTHING], np.int8)
    memset = on_device & (tasks.kind[task] == TaskKind.MEMSET)
    chosen: Int8 = np.where(memset, whole, doing)
    return chosen


def _around(stacks: Stacks, node: int) -> tuple[str, ...]:
    """Operators around a stroke; where there is none the innermost annotation or module."""
    if node < 0:
        return ()
    return stacks.operators(node) or stacks.names(node)[-1:]


def _tokens(graph: TaskGraph, task: Int64, stacks: Stacks, doing: Int8, product: Int64) -> Int64:
    """Equal where the operator, its product and what it does are; names of kernels may differ."""
    op = stacks.own[task]
    name = np.where(op >= 0, op, graph.tasks.name[task] + len(graph.names) + 1)
    compiled = np.array([one.startswith("triton_") for one in graph.names] + [False], bool)
    name = np.where(compiled[op] & (op >= 0), -1, name)
    keys = np.column_stack([name, doing, product])
    _, token = np.unique(keys, axis=0, return_inverse=True)
    found: Int64 = token.ravel().astype(np.int64)
    return found
