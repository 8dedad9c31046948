"""Reads from the store what is around tasks: operators, modules, annotations, shapes."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ingest.store import Store
from replay.graph.arrays import Bool, Int8, Int32, Int64, TaskGraph
from replay.graph.facts import GraphFacts
from replay.graph.scopes import ABSENT, ANNOTATION, MODULE, OPERATOR, Scopes

SQL = Path(__file__).parent / "sql"

_OP, _ANNOTATION, _PYTHON = OPERATOR, ANNOTATION, MODULE
_MODULE = "nn.Module: "
_MANY = 0.1
"""Part of the gradients of a group that a thread must know to have made some."""
_STEP = "ProfilerStep#"
_ENGINE = "autograd::engine::evaluate_function"
_COMMUNICATION = ("nccl:", "gloo:", "mpi:", "ucc:", "xccl:")
TELLING = frozenset(
    {"mm", "addmm", "bmm", "baddbmm", "addmm_", "baddbmm_", "_scaled_mm", "_addmm_activation"}
    | {"linear", "matmul", "_grouped_mm", "_scaled_grouped_mm"}
    | {"_int_mm", "embedding", "embedding_dense_backward", "index_select"}
    | {"layer_norm", "native_layer_norm", "native_layer_norm_backward", "rms_norm"}
    | {"_fused_rms_norm", "_fused_rms_norm_backward", "cross_entropy_loss", "nll_loss"}
    | {"nll_loss_forward", "nll_loss_backward", "_log_softmax", "_log_softmax_backward_data"}
)
"""Operators whose inputs say more than those of what they call."""


def find_scopes(store: Store, graph: TaskGraph, facts: GraphFacts) -> Scopes:
    """What is around the tasks of a graph that was built from the store."""
    params: dict[str, object] = {"trace_ids": [file.trace_id for file in facts.files]}
    rows = _rows(store, params, graph.names)
    ops = _ops(store, params, rows)
    found = _walk(rows, ops, _telling(rows, graph.names), _engine(rows, graph.names))
    wanted, row = _wanted(store, params, graph, rows)
    marked = _marks(rows, graph.names)
    forward = np.where(row >= 0, found.forward[row], ABSENT)
    shapes = store.arrays_from_file(SQL / "scope_shapes.sql", params)
    return Scopes(
        slice_id=wanted,
        node=_at(found.node, row),
        op_id=np.where(found.op[row] >= 0, rows.slice_id[found.op[row]], ABSENT),
        shape=_at(ops.shape, found.told[row]),
        forward_node=_at(found.node, forward),
        forward_ns=np.where(forward >= 0, rows.ts_ns[forward], ABSENT),
        again=(row >= 0) & found.again[row],
        parent=found.parent,
        name=found.name,
        kind=found.kind,
        shapes=tuple(zip(shapes["name"].tolist(), shapes["dims"].tolist(), strict=True)),
        mark_rank=rows.rank[marked].astype(np.int32),
        mark_name=rows.name[marked].astype(np.int32),
        mark_ns=rows.ts_ns[marked],
        mark_end_ns=rows.end_ns[marked],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Host rows by slice id, and one more at the end that stands for none."""

    slice_id: Int64
    parent: Int64
    """Row around it; -1."""
    name: Int64
    ts_ns: Int64
    end_ns: Int64
    depth: Int64
    thread: Int64
    rank: Int64
    category: Int64
    names_something: Bool
    """An operator, an annotation or a module."""

    def row_of(self, slice_id: Int64) -> Int64:
        """Row of each slice; -1."""
        ids = self.slice_id[:-1]
        if not len(ids):
            return np.full(len(slice_id), ABSENT, np.int64)
        at = np.minimum(np.searchsorted(ids, slice_id), len(ids) - 1)
        return np.where(ids[at] == slice_id, at, ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ops:
    """Columns by host row."""

    shape: Int64
    forward: Int64
    """Row of the operator whose gradient the row computes; -1."""
    makes: Bool
    """It has a gradient of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Columns by host row (`node`, `op`, `told`, `forward`) and by node (`parent`, `name`)."""

    node: Int64
    op: Int64
    told: Int64
    forward: Int64
    again: Bool
    parent: Int32
    name: Int32
    kind: Int8


def _rows(store: Store, params: dict[str, object], names: tuple[str, ...]) -> _Rows:
    found = store.arrays_from_file(SQL / "scope_rows.sql", params)
    columns = {key: np.append(np.asarray(found[key], np.int64), ABSENT) for key in found}
    ids = columns["slice_id"][:-1]
    at = np.searchsorted(ids, columns["parent_id"])
    at = np.minimum(at, max(len(ids) - 1, 0))
    known = columns["parent_id"] >= 0
    known &= columns["slice_id"][at] == columns["parent_id"]
    category, name = columns["category"], columns["name_id"]
    module = np.array([one.startswith(_MODULE) for one in names] + [False], bool)
    step = np.array([one.startswith(_STEP) for one in names] + [False], bool)
    return _Rows(
        slice_id=columns["slice_id"],
        parent=np.where(known, at, ABSENT),
        name=name,
        ts_ns=columns["ts_ns"],
        end_ns=columns["end_ns"],
        depth=columns["depth"],
        thread=columns["utid"],
        rank=columns["rank"],
        category=category,
        names_something=(
            (category == _OP)
            | ((category == _ANNOTATION) & ~step[name])
            | ((category == _PYTHON) & module[name])
        ),
    )


def _ops(store: Store, params: dict[str, object], rows: _Rows) -> _Ops:
    found = store.arrays_from_file(SQL / "scope_ops.sql", params)
    row = rows.row_of(np.asarray(found["slice_id"], np.int64))
    known = row >= 0
    shape = np.full(len(rows.slice_id), ABSENT, np.int64)
    shape[row[known]] = np.asarray(found["shape"], np.int64)[known]
    seq, thread = (np.asarray(found[key], np.int64) for key in ("seq", "forward_thread"))
    forward = np.full(len(rows.slice_id), ABSENT, np.int64)
    numbered = known & (seq >= 0)
    made, by = _pairs(rows, row[numbered], seq[numbered], thread[numbered])
    forward[made] = by
    makes = np.zeros(len(rows.slice_id), bool)
    makes[row[numbered & (thread == 0)]] = True
    return _Ops(shape=shape, forward=forward, makes=makes)


def _pairs(rows: _Rows, row: Int64, seq: Int64, thread: Int64) -> tuple[Int64, Int64]:
    """Rows of backward, and for each the operator that it is the gradient of.

    Sequence numbers count per thread. Backward names the thread of its forward by a number of
    PyTorch's own: the thread that has most of the sequence numbers of that name. The last operator
    to start with a number made the node of the autograd graph.
    """
    of_forward = np.flatnonzero(thread == 0)
    key = rows.thread[row[of_forward]] * (seq.max(initial=0) + 1) + seq[of_forward]
    order = np.lexsort((row[of_forward], key))
    last = np.append(key[order][1:] != key[order][:-1], True)
    key, maker = key[order][last[: len(order)]], row[of_forward][order][last[: len(order)]]
    of_thread = np.unique(
        np.stack([rows.rank[row[of_forward]], rows.thread[row[of_forward]]]), axis=1
    )
    made: list[Int64] = []
    by: list[Int64] = []
    back = np.flatnonzero(thread > 0)
    rank, name = rows.rank[row[back]], thread[back]
    for group in np.unique(np.stack([rank, name]), axis=1).T if len(back) else ():
        mine = back[(rank == group[0]) & (name == group[1])]
        tried = [
            _makers(key, maker, one * (seq.max() + 1) + seq[mine], row[mine])
            for one in of_thread[1, of_thread[0] == group[0]].tolist()
        ]
        found = _of_threads(tried, len(mine))
        made.append(row[mine][found >= 0])
        by.append(found[found >= 0])
    if not made:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate(made), np.concatenate(by)


def _of_threads(tried: list[Int64], n: int) -> Int64:
    """Of the thread with most of the numbers; what it lacks of others that have many of them.

    A thread that computes activations again is another than the one of the first forward.
    """
    found = np.full(n, ABSENT, np.int64)
    for one in sorted(tried, key=lambda one: -int((one >= 0).sum())):
        if (one >= 0).sum() >= _MANY * n:
            found = np.where(found >= 0, found, one)
    return found


def _makers(key: Int64, maker: Int64, wanted: Int64, before: Int64) -> Int64:
    """Row that made each wanted number, where it lies before; -1."""
    if not len(key):
        return np.full(len(wanted), ABSENT, np.int64)
    at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    right = (key[at] == wanted) & (maker[at] < before)
    return np.where(right, maker[at], ABSENT)


def _telling(rows: _Rows, names: tuple[str, ...]) -> Bool:
    """Rows of operators whose inputs say more than those of what they call."""
    tells = np.array([_tells(name) for name in names] + [False], bool)
    told: Bool = (rows.category == _OP) & tells[rows.name]
    return told


def _tells(name: str) -> bool:
    """Of attention the operator that people call: what it calls lays its inputs another way."""
    short = name.rpartition("::")[2]
    inner = short.startswith(("_flash_attention", "_efficient_attention"))
    return short in TELLING or (("attention" in short or "attn" in short) and not inner)


def _engine(rows: _Rows, names: tuple[str, ...]) -> Bool:
    """Rows of nodes that the autograd engine runs."""
    runs = np.array([one.startswith(_ENGINE) for one in names] + [False], bool)
    found: Bool = (rows.category == _OP) & runs[rows.name]
    return found


def _walk(rows: _Rows, ops: _Ops, telling: Bool, engine: Bool) -> _Found:
    """From the outermost rows inwards: what each row takes over from the one around it."""
    n = len(rows.slice_id)
    node, op, shaped = (np.full(n, ABSENT, np.int64) for _ in range(3))
    told, forward = shaped.copy(), ops.forward.copy()
    backward, again = engine.copy(), np.zeros(n, bool)
    tree: dict[tuple[int, int, int], int] = {}
    order = np.argsort(rows.depth[:-1], kind="stable")
    bounds = np.flatnonzero(np.diff(rows.depth[order])) + 1
    for mine in np.split(order, bounds):
        around = rows.parent[mine]
        node[mine] = node[around]
        named = mine[rows.names_something[mine]]
        node[named] = _numbered(tree, node[named], rows.name[named], rows.category[named])
        is_op = rows.category[mine] == _OP
        op[mine] = np.where(is_op, mine, op[around])
        shaped[mine] = np.where(ops.shape[mine] >= 0, mine, shaped[around])
        tells = telling[mine] & (ops.shape[mine] >= 0)
        told[mine] = np.where(tells, mine, told[around])
        forward[mine] = np.where(forward[mine] >= 0, forward[mine], forward[around])
        backward[mine] |= backward[around]
        again[mine] = (again[around] | (ops.makes[mine] & backward[around])) & ~engine[mine]
    nodes = np.array(list(tree), np.int32).reshape(-1, 3)
    return _Found(
        node=node,
        op=op,
        told=np.where(told >= 0, told, shaped),
        forward=forward,
        again=again,
        parent=nodes[:, 0].copy(),
        name=nodes[:, 1].copy(),
        kind=nodes[:, 2].astype(np.int8),
    )


def _numbered(
    tree: dict[tuple[int, int, int], int], parent: Int64, name: Int64, kind: Int64
) -> Int64:
    """Node of each (node around, name, kind), new ones at the end of the tree."""
    keys, place = np.unique(np.stack([parent, name, kind]), axis=1, return_inverse=True)
    number = [tree.setdefault((a, b, c), len(tree)) for a, b, c in keys.T.tolist()]
    return np.array(number, np.int64)[place.ravel()]


def _wanted(
    store: Store, params: dict[str, object], graph: TaskGraph, rows: _Rows
) -> tuple[Int64, Int64]:
    """Slices that tasks stand for, ascending, and the host row that tells of each (-1: none)."""
    wanted = np.unique(graph.tasks.slice_id)
    wanted = wanted[wanted >= 0]
    launches = store.arrays_from_file(SQL / "scope_launches.sql", params)
    ids = np.asarray(launches["slice_id"], np.int64)
    call = np.asarray(launches["call_id"], np.int64)
    at = np.minimum(np.searchsorted(ids, wanted), max(len(ids) - 1, 0))
    on_device = np.zeros(len(wanted), bool)
    if len(ids):
        on_device = ids[at] == wanted
        wanted_row = np.where(on_device, call[at], wanted)
    else:
        wanted_row = wanted
    return wanted, rows.row_of(wanted_row)


def _marks(rows: _Rows, names: tuple[str, ...]) -> Int64:
    """Rows of annotations that people or frameworks made, by rank and start."""
    skip = np.array([one.startswith((*_COMMUNICATION, _STEP)) for one in names] + [True], bool)
    found = np.flatnonzero((rows.category == _ANNOTATION) & ~skip[rows.name])
    order = np.lexsort((rows.ts_ns[found], rows.rank[found]))
    return found[order]


def _at(values: Int64, row: Int64) -> Int32:
    """Values at the rows; -1 where there is no row (which stands at the end)."""
    return np.where(row >= 0, values[row], ABSENT).astype(np.int32)
