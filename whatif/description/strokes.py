"""Strokes: the pieces of work of a rank in the order in which its host issued them.

Where a rank has a device these are its kernels, copies and collectives; else what its main thread
computes. Everything that labels a run looks at strokes; host tasks follow them.
"""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import CollectiveKind, LaneKind, Phase, TaskKind
from replay.graph.arrays import NONE, Bool, Int8, Int32, Int64, TaskGraph
from whatif.description.doing import Doing, doing_of
from whatif.description.products import products_of
from whatif.description.stacks import Stacks, stacks_of

_TRANSFERS = ("gloo:", "nccl:", "mpi:", "ucc:")
_OF_A_LAYER = (*(Doing.PRODUCT, Doing.ATTENTION, Doing.SOFTMAX, Doing.NORM, Doing.ACTIVATION),)
_CALLS = (Doing.EXCHANGE, Doing.MESSAGE)
_BETWEEN_TWO = (
    *(CollectiveKind.SEND, CollectiveKind.RECV, CollectiveKind.SEND_RECV),
    CollectiveKind.UNKNOWN,
)
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
    phase, again = _phases(graph, task, stacks, doing)
    return Strokes(
        rank=rank,
        on_device=bool(len(computes)),
        task=task,
        issue_ns=issue_ns,
        step=tasks.step[task],
        phase=phase,
        again=again,
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


def _phases(graph: TaskGraph, task: Int64, stacks: Stacks, doing: Int8) -> tuple[Int8, Bool]:
    """Optimizer and backward wherever names say so, else as recorded; and what is computed again.

    Forward work on the thread of backward is that, with or without the engine around it.
    """
    tasks = graph.tasks
    phase = tasks.phase[task].copy()
    silent = phase == Phase.UNKNOWN
    has_backward = bool((phase == Phase.BACKWARD).any())
    phase[silent & (stacks.own[task] >= 0) & has_backward] = Phase.FORWARD
    phase[silent & stacks.in_backward[task]] = Phase.BACKWARD
    phase[stacks.in_optimizer[task]] = Phase.OPTIMIZER
    autograd = np.array([lane.role == "autograd" for lane in graph.lanes] + [False], bool)
    caller = np.where(tasks.caller[task] != NONE, tasks.caller[task], task)
    late = autograd[tasks.lane[caller]] & (phase == Phase.FORWARD)
    phase[late] = Phase.BACKWARD
    again = stacks.again[task] | (
        late & ~stacks.in_backward[task] & (stacks.own[task] >= 0) & ~np.isin(doing, _CALLS)
    )
    return phase, _joined(again, doing)


def _joined(again: Bool, doing: Int8) -> Bool:
    """Calls and crumbs between two strokes that are computed again are part of it."""
    heavy = np.flatnonzero(~np.isin(doing, (*_CALLS, Doing.NOTHING, Doing.COPY, Doing.GRADIENT)))
    if not len(heavy) or not again.any():
        return again
    at = np.searchsorted(heavy, np.arange(len(again)), side="right")
    before, after = heavy[np.maximum(at - 1, 0)], heavy[np.minimum(at, len(heavy) - 1)]
    joined: Bool = again | (again[before] & again[after] & (at > 0) & (at < len(heavy)))
    # Wrappers of tensors run their own forward to undo what they did: that recomputes nothing.
    run = np.cumsum(np.diff(joined, prepend=False))
    weighty = np.bincount(run, joined & np.isin(doing, _OF_A_LAYER), minlength=1)
    return np.asarray(joined & (weighty[run] > 0))


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
    if on_device:
        doing[tasks.kind[task] == TaskKind.MEMSET] = Doing.NOTHING
        # A kernel that sends and receives may be one of an exchange among all.
        called = tasks.collective[task] != NONE
        kind = np.full(len(task), CollectiveKind.UNKNOWN, np.int8)
        kind[called] = graph.collectives.kind[tasks.collective[task[called]]]
        among_all = called & ~np.isin(kind, _BETWEEN_TWO)
        doing[among_all & (doing == Doing.MESSAGE)] = Doing.EXCHANGE
    return doing


def _around(stacks: Stacks, node: int) -> tuple[str, ...]:
    """Operators around a stroke; where there is none the innermost annotation or module."""
    if node < 0:
        return ()
    # Transfers of the host lie over whatever runs until somebody waits for them.
    innermost = stacks.names(node)[-1]
    return stacks.operators(node) or (() if innermost.startswith(_TRANSFERS) else (innermost,))


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
