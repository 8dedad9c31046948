"""What is recorded around tasks: operators, modules and annotations, and the shapes of operators.

The stack of names around a row is one node of a tree in which equal stacks are one node, so that
what a stack means is decided once, however many tasks lie under it.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Int8 = NDArray[np.int8]
Bool = NDArray[np.bool_]

ABSENT = -1
OPERATOR, ANNOTATION, MODULE = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Scopes:
    """Columns with one row per recorded row that a task stands for.

    Rows are found by `slice_id`, not by task: a scenario that adds or merges tasks keeps them.
    """

    slice_id: Int64
    """Row in the store's `slice`, ascending."""
    node: Int32
    """Stack of names around the row, its own last: into the tree; -1 for none."""
    op_id: Int64
    """Innermost operator call around it, by its row in `slice`; -1. Equal for kernels of one."""
    shape: Int32
    """Into `shapes`: the innermost operator around it that tells (a product, an attention, …), else
    the innermost with inputs; -1."""
    forward_node: Int32
    """Stack around the forward operator whose gradient it computes; -1."""
    forward_ns: Int64
    """Start of that operator after the run's origin; -1."""
    again: Bool
    """A forward operator is around it inside the autograd engine: activations computed again."""
    parent: Int32
    """Of the tree, one row per node: the node around it; -1 at the top."""
    name: Int32
    """Per node: its name, into the graph's names."""
    kind: Int8
    """Per node: OPERATOR, ANNOTATION or MODULE."""
    shapes: tuple[tuple[str, str], ...]
    """Distinct operators with their `Input Dims` as recorded (JSON)."""
    mark_rank: Int32
    """Annotations of people and frameworks on the host, by rank and start: rank."""
    mark_name: Int32
    mark_ns: Int64
    mark_end_ns: Int64

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def rows_of(self, slice_id: Int64) -> Int64:
        """Row of each task; -1 where nothing is known of it."""
        if not len(self.slice_id):
            return np.full(len(slice_id), ABSENT, np.int64)
        at = np.minimum(np.searchsorted(self.slice_id, slice_id), len(self.slice_id) - 1)
        return np.where(self.slice_id[at] == slice_id, at, ABSENT)


def _nothing() -> Scopes:
    def whole() -> Int64:
        return np.empty(0, np.int64)

    def small() -> Int32:
        return np.empty(0, np.int32)

    return Scopes(
        slice_id=whole(),
        node=small(),
        op_id=whole(),
        shape=small(),
        forward_node=small(),
        forward_ns=whole(),
        again=np.empty(0, bool),
        parent=small(),
        name=small(),
        kind=np.empty(0, np.int8),
        shapes=(),
        mark_rank=small(),
        mark_name=small(),
        mark_ns=whole(),
        mark_end_ns=whole(),
    )


NO_SCOPES = _nothing()
"""Of a graph that was not built from a store."""
