"""Factors between the sizes of the recorded run and those of its target, on one rank."""

from dataclasses import dataclass

from whatif.models.shape import UNSAID_SAMPLES, UNSAID_SEQUENCE, RunShape
from whatif.models.transformer.dims import Dims, dims_of, expert_tensor, fullest_experts, is_known
from whatif.models.transformer.parameters import (
    held_by_layer,
    optimizer_shards,
    stage_held,
    updated_by_rank,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Target over recorded run, of what one rank computes in one micro-batch."""

    samples: float = 1.0
    queries: float = 1.0
    """Tokens of a sample on a context rank."""
    keys: float = 1.0
    """Tokens of a sample over all context ranks."""
    whole: float = 1.0
    """Tokens of what tensor parallelism leaves whole."""
    columns: float = 1.0
    """Of what tensor parallelism divides: heads, inner width, vocabulary."""
    qkv: float = 1.0
    """Width of queries, keys and values: no rank has less than one head of the latter two."""
    routed: float = 1.0
    """Tokens that the experts of a rank get in all."""
    experts: float = 1.0
    """Experts of a rank."""
    expert_columns: float = 1.0
    """Inner width of an expert on a rank."""
    held: float = 1.0
    """Parameters of a layer on a rank, before replicas divide them."""
    expert_held: float = 1.0
    """The same of a layer with experts."""
    state: float = 1.0
    """Parameters that a rank's optimizer updates."""

    @property
    def tokens(self) -> float:
        """Of a micro-batch on a context rank."""
        return self.samples * self.queries

    @property
    def is_same(self) -> bool:
        """Whether nothing that a kernel computes changes."""
        return self == Sizes()


def sizes_of(before: RunShape, target: RunShape) -> Sizes:
    """Compare two shapes; what a model's sizes are needed for follows the degrees without them."""
    old, new = before.degrees, target.degrees
    samples = _samples(target) / _samples(before)
    keys = _sequence(target) / _sequence(before)
    queries = keys * old.cp / new.cp
    columns = old.tp / new.tp
    undivided = (old.tp if old.sp else 1) / (new.tp if new.sp else 1)
    expert_columns = expert_tensor(before) / expert_tensor(target)
    routed = samples * queries * columns / expert_columns
    return Sizes(
        samples=samples,
        queries=queries,
        keys=keys,
        whole=samples * queries * undivided,
        columns=columns,
        qkv=_qkv(before, target, columns),
        routed=routed * fullest_experts(target) / fullest_experts(before),
        experts=old.ep / new.ep,
        expert_columns=expert_columns,
        held=_held(before, target, columns, has_experts=False),
        expert_held=_held(before, target, columns, has_experts=True),
        state=_state(before, target),
    )


def known_dims(shape: RunShape) -> Dims | None:
    """Widths of a rank, where model and batch are known."""
    batch = shape.batch
    if not is_known(shape.model) or batch.samples is None or batch.sequence is None:
        return None
    return dims_of(shape)


def _samples(shape: RunShape) -> float:
    return shape.batch.samples or UNSAID_SAMPLES


def _sequence(shape: RunShape) -> float:
    return float(shape.batch.sequence or UNSAID_SEQUENCE)


def _qkv(before: RunShape, target: RunShape, columns: float) -> float:
    old, new = known_dims(before), known_dims(target)
    if old is None or new is None:
        return columns
    wide = [
        each.heads * each.head_dim + each.kv_heads * (each.head_dim + each.v_head_dim)
        for each in (old, new)
    ]
    return wide[1] / wide[0]


def _held(before: RunShape, target: RunShape, columns: float, *, has_experts: bool) -> float:
    """Parameters of a layer; where they are not known all of them are taken as divided."""
    if not is_known(before.model) or (has_experts and before.model.experts is None):
        return columns
    old, new = (held_by_layer(shape, has_experts=has_experts) for shape in (before, target))
    return new / old


def _state(before: RunShape, target: RunShape) -> float:
    """Parameters that one optimizer updates, at the mean of all stages.

    Which layers a rank has is decided later, and its share with it.
    """
    return _updated(target) / _updated(before)


def _updated(shape: RunShape) -> float:
    model, degrees = shape.model, shape.degrees
    if is_known(model) or (model.parameters is not None and model.layers is not None):
        every = [updated_by_rank(shape, stage_held(shape, at)) for at in range(degrees.pp)]
        return sum(every) / degrees.pp
    return float(model.layers or 1) / (optimizer_shards(shape) * degrees.pp * degrees.tp)
