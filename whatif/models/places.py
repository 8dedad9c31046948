"""Where work belongs: part of the model, direction, place in a layer."""

from enum import IntEnum


class Part(IntEnum):
    """Part of the model, or of the step around it."""

    OTHER = 0
    """Not understood: stays where it is."""
    ENTRY = 1
    """Data loading, zero_grad and the like before the first forward."""
    EMBEDDING = 2
    LAYER = 3
    HEAD = 4
    """Final norm, logits, loss."""
    SYNC = 5
    """After the last backward: rest of the gradient exchange, clipping, norms."""
    OPTIMIZER = 6
    EXIT = 7
    """After the optimizer: logging, scheduler."""


class Pass(IntEnum):
    """Direction."""

    NONE = 0
    FORWARD = 1
    BACKWARD = 2
    """Both gradients, or not told apart."""
    BACKWARD_INPUT = 3
    BACKWARD_WEIGHT = 4
    RECOMPUTE = 5
    """Forward again, inside backward."""


BACKWARDS = (Pass.BACKWARD, Pass.BACKWARD_INPUT, Pass.BACKWARD_WEIGHT)


class Place(IntEnum):
    """What a device task (or the operator of a CPU run) does in its layer."""

    UNKNOWN = 0
    NORM = 1
    QKV = 2
    """Product to queries, keys, values; divided by columns under tensor parallelism."""
    ATTENTION = 3
    """Core: scores, softmax, context, rotary embedding."""
    PROJECTION = 4
    """Product after attention; divided by rows."""
    UP = 5
    """Product(s) into the feed-forward; by columns."""
    ACTIVATION = 6
    DOWN = 7
    """Product out of the feed-forward; by rows."""
    RESIDUAL = 8
    """Sums, dropout and copies of whole rows."""
    ROUTER = 9
    EXPERT = 10
    """Work of experts whose parts are not told apart."""
    DISPATCH = 11
    COMBINE = 12
    EMBEDDING = 13
    LOGITS = 14
    LOSS = 15
    GRADIENT = 16
    """Copies, casts and sums of gradients and parameters: by bytes of parameters."""
    OPTIMIZER = 17
    COMMUNICATION = 18
