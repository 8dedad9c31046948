"""One row of work: a kernel, or several alike."""

from dataclasses import dataclass
from enum import IntEnum

from whatif.models.places import Pass, Place


class WorkKind(IntEnum):
    """Which model tells its time."""

    PRODUCT = 0
    """Matrix product, batched where `batch` > 1."""
    ATTENTION = 1
    """Flash attention: m queries, n keys, width k of a head, `batch` = samples x heads."""
    MOVED = 2
    """Bound by memory: norms, sums, activations, losses, optimizers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Of one micro-batch on one rank. Sizes may be parts of whole numbers."""

    place: Place
    direction: Pass
    """FORWARD, BACKWARD_INPUT or BACKWARD_WEIGHT; RECOMPUTE; NONE of the optimizer."""
    kind: WorkKind
    flops: float
    """Of all `count` together; of attention those that a causal mask leaves."""
    bytes: float
    """Of all `count` together: read and written, each tensor once."""
    m: float = 0.0
    n: float = 0.0
    k: float = 0.0
    batch: float = 1.0
    causal: bool = False
    count: float = 1.0
    """Kernels that each do 1 / count of it."""


def moved_work(place: Place, direction: Pass, size: float, count: float = 1.0) -> Work:
    """Work that is bound by memory."""
    return Work(
        place=place, direction=direction, kind=WorkKind.MOVED, flops=0.0, bytes=size, count=count
    )
