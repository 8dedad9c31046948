"""Which collectives a layout has, and how many bytes each moves.

Rows follow Megatron-LM (arXiv:1909.08053; sequence parallel arXiv:2205.05198), ring attention
(arXiv:2310.01889), Ulysses (arXiv:2309.14509), GShard's experts (arXiv:2006.16668), PyTorch DDP
(arXiv:2006.15704), ZeRO (arXiv:1910.02054) and FSDP (arXiv:2304.11277). Sizes are those of
nccl-tests: of one rank for all-reduce and send/recv, the whole output of an all-gather, the whole
input of a reduce-scatter, what one rank sends in all for an all-to-all.
"""

from whatif.models.exchanges.context import context
from whatif.models.exchanges.experts import experts
from whatif.models.exchanges.state import norms, state
from whatif.models.exchanges.tensor import tensor
from whatif.models.exchanges.volume import Along, Of, Volume, Way, activation_bytes
from whatif.models.shape import Recompute, RunShape


def volumes(shape: RunShape) -> tuple[Volume, ...]:
    """All collectives of a layout but the messages between pipeline stages."""
    rows = (*tensor(shape), *context(shape), *experts(shape), *state(shape), *norms(shape))
    return tuple(row for row in rows if row.members > 1)


def calls_per_step(row: Volume, shape: RunShape, *, layers: int | None = None) -> int:
    """How often a rank with that many layers (None: all) takes part in it in a step."""
    n_all = (shape.model.layers or 1) if layers is None else layers
    dense = n_all if shape.model.experts is None else min(shape.model.dense_layers, n_all)
    n_of = {Of.LAYER: n_all, Of.DENSE: dense, Of.EXPERTS: n_all - dense}.get(row.of, 1)
    return row.count * n_of * (shape.batch.micro_batches if row.each_micro_batch else 1)


def stage_message_bytes(shape: RunShape) -> int:
    """What a pipeline stage hands to the next: with sequence parallelism each rank its rows."""
    whole = activation_bytes(shape)
    degrees = shape.degrees
    return whole // degrees.tp if degrees.sp and whole > 0 else whole


def recomputed(row: Volume, shape: RunShape) -> bool:
    """It runs once more where backward computes its part again."""
    in_layer = row.of in (Of.LAYER, Of.DENSE, Of.EXPERTS)
    inside = row.along in (Along.TENSOR, Along.CONTEXT, Along.EXPERT)
    full = shape.options.recompute is Recompute.FULL
    return full and in_layer and inside and row.way is Way.FORWARD
