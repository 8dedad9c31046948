"""The closed sets that everybody uses: kinds of tasks, edges, collectives, classes, severities.

Integer codes are what the arrays hold; the lower-case names are what people and SQL see.
"""

from collections.abc import Mapping
from enum import IntEnum, StrEnum

DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events"})
"""Categories of Chrome trace events that are device work; the last are kernels of MTIA."""
FIRMWARE_COPY = r"^dma_request$"
"""Rows of device lanes that no host call launched: small copies by MTIA's firmware."""


class Severity(StrEnum):
    """How much an oddity of the data matters, in Perfetto's words."""

    INFO = "info"
    NOTICE = "notice"
    DATA_LOSS = "data_loss"
    ERROR = "error"


class RuntimeKind(IntEnum):
    """What a CUDA/HIP/XPU runtime or driver call does, as far as dependencies care."""

    OTHER = 0
    LAUNCH = 1
    GRAPH_LAUNCH = 2
    MEMCPY = 3
    MEMSET = 4
    DEVICE_SYNC = 5
    STREAM_SYNC = 6
    EVENT_SYNC = 7
    EVENT_RECORD = 8
    EVENT_WAIT = 9
    EVENT_QUERY = 10
    MALLOC = 11
    FREE = 12


class KernelClass(IntEnum):
    """What a device task does; the class part of a selector."""

    OTHER = 0
    GEMM = 1
    ATTENTION = 2
    CONVOLUTION = 3
    NORMALISATION = 4
    ELEMENTWISE = 5
    REDUCTION = 6
    EMBEDDING = 7
    OPTIMIZER = 8
    COLLECTIVE = 9
    MEMCPY = 10
    MEMSET = 11


COMPUTE_CLASSES = frozenset(
    set(KernelClass) - {KernelClass.COLLECTIVE, KernelClass.MEMCPY, KernelClass.MEMSET}
)


class CollectiveKind(IntEnum):
    """Collective operations in the words of NCCL."""

    UNKNOWN = 0
    ALL_REDUCE = 1
    REDUCE_SCATTER = 2
    ALL_GATHER = 3
    BROADCAST = 4
    REDUCE = 5
    ALL_TO_ALL = 6
    SEND_RECV = 7
    SEND = 8
    RECV = 9
    GATHER = 10
    SCATTER = 11
    BARRIER = 12


class Phase(IntEnum):
    """Part of a training step."""

    UNKNOWN = 0
    FORWARD = 1
    BACKWARD = 2
    OPTIMIZER = 3


class TaskKind(IntEnum):
    """What a node of the dependency graph stands for."""

    HOST_WORK = 0
    """Python, operators and gaps between two anchors of a thread."""
    HOST_CALL = 1
    """A runtime call that is an anchor: launch, copy, record, wait, what a blocking call works."""
    HOST_WAIT = 2
    """No length: the moment at which a thread may go on."""
    KERNEL = 3
    MEMCPY = 4
    MEMSET = 5
    ARRIVE = 6
    """A member of a collective has reached its stream (start of the recorded kernel)."""
    TRANSFER = 7
    """A member moves data: from the moment all have arrived to the end of the recorded kernel."""
    MEET = 8
    """No length, no lane: the moment at which all members of a collective have arrived."""


DEVICE_KINDS = frozenset(
    {TaskKind.KERNEL, TaskKind.MEMCPY, TaskKind.MEMSET, TaskKind.ARRIVE, TaskKind.TRANSFER}
)
HOST_KINDS = frozenset({TaskKind.HOST_WORK, TaskKind.HOST_CALL, TaskKind.HOST_WAIT})


class EdgeKind(IntEnum):
    """Why a task cannot start before another (DESIGN: kinds of edges)."""

    PROGRAM_ORDER = 0
    HAND_OVER = 1
    LAUNCH = 2
    GRAPH_LAUNCH = 3
    STREAM_ORDER = 4
    EVENT_WAIT = 5
    HOST_SYNC = 6
    QUEUE_FULL = 7
    SM_FULL = 8
    COLLECTIVE = 9
    P2P = 10


class Evidence(IntEnum):
    """How an edge is known."""

    RECORDED = 0
    ORDERED = 1
    INFERRED = 2


class LaneKind(IntEnum):
    """Where tasks run one after another."""

    THREAD = 0
    STREAM = 1
    LINK = 2
    NONE = 3


class ElementType(IntEnum):
    """What the elements are that a kernel multiplies or moves."""

    UNKNOWN = 0
    FP64 = 1
    FP32 = 2
    TF32 = 3
    """Single precision in memory, 19 bits in the matrix units."""
    SINGLE = 4
    """Single precision in memory; whether the matrix units shortened it was not recorded."""
    FP16 = 5
    BF16 = 6
    FP8 = 7
    INT8 = 8
    FP4 = 9


ELEMENT_BYTES: Mapping[ElementType, float] = {
    ElementType.FP64: 8,
    ElementType.FP32: 4,
    ElementType.TF32: 4,
    ElementType.SINGLE: 4,
    ElementType.FP16: 2,
    ElementType.BF16: 2,
    ElementType.FP8: 1,
    ElementType.INT8: 1,
    ElementType.FP4: 0.5,
}
"""Size of one element in memory."""
