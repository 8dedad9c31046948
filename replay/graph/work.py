"""What kernels compute and move, by row of the store: what shapes, names and grids tell of it."""

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Int8 = NDArray[np.int8]

UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelWork:
    """Columns with one row per kernel whose work is known in part; NaN and -1 are not known.

    Rows are found by `slice_id`, not by task: a scenario that adds or merges tasks keeps them.
    """

    slice_id: Int64
    """Row in the store's `slice`, ascending."""
    flops: Float64
    """Of matrix products, convolution and attention."""
    bytes: Float64
    """Read and written, each tensor of the operator once."""
    operand_bytes: Float64
    """Of what a matrix kernel multiplies, without its output."""
    dtype: Int8
    """ElementType of what a matrix kernel multiplies, of another kernel's first tensor."""
    tiles: Int64
    """Blocks of output that a matrix product is cut into."""
    product: Int64 = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    """Batch, m, n, k of the product that a matrix kernel computes; shape (kernels, 4), zeros where
    its operands were not recorded. No rows: of nothing known."""
    peak_bytes: int = UNKNOWN
    """The most that the allocator held on one device at any time of the recording."""
    memory_bytes: int = UNKNOWN
    """Memory of one recorded device."""

    def __post_init__(self) -> None:
        for column in fields(self):
            value = getattr(self, column.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def rows_of(self, slice_id: Int64) -> Int64:
        """Row of each task; -1 where nothing is known of it."""
        if not len(self.slice_id):
            return np.full(len(slice_id), UNKNOWN, np.int64)
        at = np.minimum(np.searchsorted(self.slice_id, slice_id), len(self.slice_id) - 1)
        return np.where(self.slice_id[at] == slice_id, at, UNKNOWN)


def _nothing() -> KernelWork:
    real, whole = np.empty(0), np.empty(0, np.int64)
    return KernelWork(
        slice_id=whole,
        flops=real,
        bytes=real.copy(),
        operand_bytes=real.copy(),
        dtype=np.empty(0, np.int8),
        tiles=whole.copy(),
        product=np.zeros((0, 4), np.int64),
    )


NO_WORK = _nothing()
"""Of a graph that was not built from a store, or of a recording without shapes and names."""
