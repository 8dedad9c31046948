"""The stacks of names around tasks, decided once per distinct stack."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from replay.graph.arrays import Bool, Int32, Int64, TaskGraph
from replay.graph.scopes import OPERATOR
from whatif.description.doing import ENGINE, operators

_OPTIMIZER = ("Optimizer.step#", "Optimizer.zero_grad#")


@dataclass(frozen=True, kw_only=True)
class Stacks:
    """Columns with one row per task; a task of which nothing is recorded has -1."""

    graph: TaskGraph
    node: Int32
    again: Bool
    """Forward work inside backward."""
    forward_ns: Int64
    forward_node: Int32
    op_id: Int64
    shape: Int32
    own: Int64
    """Outermost operator that says what is done, into the graph's names; -1."""
    in_optimizer: Bool
    """An annotation of the optimizer is around it."""
    in_backward: Bool
    """The autograd engine runs it."""

    @cached_property
    def _by_node(self) -> dict[int, tuple[str, ...]]:
        return {}

    def names(self, node: int) -> tuple[str, ...]:
        """Names from the outermost to the innermost."""
        known = self._by_node
        if node not in known:
            scopes = self.graph.scopes
            around = int(scopes.parent[node])
            before = self.names(around) if around >= 0 else ()
            known[node] = (*before, self.graph.names[scopes.name[node]])
        return known[node]

    def operators(self, node: int) -> tuple[str, ...]:
        """Operators inside the innermost node of the autograd engine."""
        scopes, found = self.graph.scopes, []
        while node >= 0:
            name = self.graph.names[scopes.name[node]]
            if scopes.kind[node] == OPERATOR:
                if name.startswith(ENGINE):
                    break
                found.append(name)
            node = int(scopes.parent[node])
        return operators(found[::-1])


def stacks_of(graph: TaskGraph) -> Stacks:
    """Of all tasks of a graph."""
    scopes = graph.scopes
    row = scopes.rows_of(graph.tasks.slice_id)
    n_nodes = len(scopes.parent)

    def at(values: Int64 | Int32 | Bool, missing: int = -1) -> Int64:
        table: Int64 = np.append(values, missing)
        return table[row]

    node = at(scopes.node).astype(np.int32)
    of_node = _own(graph)
    optimizer, engine = (_under(graph, one) for one in (_OPTIMIZER, (ENGINE,)))
    here = np.where(node >= 0, node, n_nodes)
    return Stacks(
        graph=graph,
        node=node,
        again=at(scopes.again, 0).astype(bool),
        forward_ns=at(scopes.forward_ns),
        forward_node=at(scopes.forward_node).astype(np.int32),
        op_id=at(scopes.op_id),
        shape=at(scopes.shape).astype(np.int32),
        own=np.append(of_node, -1)[node],
        in_optimizer=np.append(optimizer, np.zeros(1, bool))[here],
        in_backward=np.append(engine, np.zeros(1, bool))[here],
    )


def _under(graph: TaskGraph, prefixes: tuple[str, ...]) -> Bool:
    """Per node: it, or one around it, has such a name."""
    scopes = graph.scopes
    matching = [name.startswith(prefixes) for name in graph.names]
    found = np.array(matching, bool)[scopes.name] if len(scopes.name) else np.zeros(0, bool)
    for node, around in enumerate(scopes.parent.tolist()):
        # Nodes stand behind those around them.
        if around >= 0 and found[around]:
            found[node] = True
    return found


def _own(graph: TaskGraph) -> Int64:
    """Per node: the outermost operator in it that is no wrapper, inside the engine's last node."""
    scopes, names = graph.scopes, graph.names
    engine = [name.startswith(ENGINE) for name in names]
    says = [bool(operators((name,))) for name in names]
    own = np.full(len(scopes.parent), -1, np.int64)
    for node, (around, name, kind) in enumerate(
        zip(scopes.parent.tolist(), scopes.name.tolist(), scopes.kind.tolist(), strict=True)
    ):
        inherited = int(own[around]) if around >= 0 else -1
        if kind != OPERATOR:
            own[node] = inherited
        elif engine[name]:
            own[node] = -1
        elif inherited >= 0:
            own[node] = inherited
        elif says[name]:
            own[node] = name
    return own
