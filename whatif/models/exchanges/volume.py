"""What a row of the volumes is: a collective, its bytes, and where it stands."""

from dataclasses import dataclass
from enum import StrEnum

from ingest.vocab import CollectiveKind
from whatif.models.shape import RunShape

UNKNOWN = -1
"""Size that the shape does not tell."""
PAIR = 2
"""Both directions of a ring; keys and values; queries and outputs."""


class Along(StrEnum):
    """The ranks that a collective joins."""

    TENSOR = "tensor"
    CONTEXT = "context"
    EXPERT = "expert"
    SHARDS = "shards"
    """Replicas that share state: reduce-scatters and all-gathers of gradients and parameters."""
    REPLICAS = "replicas"
    """Replicas (of shards, where state is shared): all-reduces of gradients."""
    MODEL = "model"
    """All ranks of one replica: norms of gradients."""


class Spot(StrEnum):
    """Where in its part of the model it stands."""

    EMBEDDING = "embedding"
    ATTENTION_IN = "attention in"
    """Before the product to queries, keys and values; in backward after its input gradient."""
    ATTENTION = "attention"
    """Beside the core of attention."""
    ATTENTION_OUT = "attention out"
    """After the product behind attention; in backward before its gradients."""
    FFN_IN = "ffn in"
    FFN_OUT = "ffn out"
    DISPATCH = "dispatch"
    COMBINE = "combine"
    HEAD = "head"
    LOSS = "loss"
    PARAMETERS = "parameters"
    """Before the part of the model that needs them."""
    GRADIENTS = "gradients"
    """When the gradients of its part are ready."""
    CLIP = "clip"
    """Between the last gradient and the optimizer."""
    UPDATED = "updated"
    """After the optimizer."""


class Of(StrEnum):
    """Part of the model that has it."""

    EMBEDDING = "embedding"
    LAYER = "layer"
    """Each."""
    DENSE = "dense layer"
    EXPERTS = "layer with experts"
    HEAD = "head"
    STEP = "step"
    """None: once per step."""


class Way(StrEnum):
    """Direction in which it runs."""

    FORWARD = "forward"
    BACKWARD = "backward"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A collective of a part of the model: once per part, direction and (or) micro-batch."""

    along: Along
    kind: CollectiveKind
    size_bytes: int
    """UNKNOWN where the shape does not tell."""
    members: int
    spot: Spot
    of: Of
    way: Way
    count: int = 1
    """One after another at its place."""
    each_micro_batch: bool = True
    """Else once per step: with the last micro-batch."""
    beside: bool = False
    """On a stream of its own, while the computation goes on."""
    what: str
    """In words, for people."""

    @property
    def sent_bytes(self) -> float:
        """What each member sends in one call, by rings (facts: 2(N-1)/N S, (N-1)/N S, S)."""
        part = (self.members - 1) / self.members
        share = {
            CollectiveKind.ALL_REDUCE: PAIR * part,
            CollectiveKind.SEND_RECV: 1.0,
        }.get(self.kind, part)
        return share * max(self.size_bytes, 0)


def tokens(shape: RunShape) -> float | None:
    """Of a micro-batch on one context rank; None where the batch is not told."""
    batch = shape.batch
    if batch.samples is None or batch.sequence is None:
        return None
    return batch.samples * batch.sequence / shape.degrees.cp


def bytes_of(*factors: float | None) -> int:
    """Product of the factors; UNKNOWN where one is not told."""
    product = 1.0
    for factor in factors:
        if factor is None:
            return UNKNOWN
        product *= factor
    return round(product)


def activation_bytes(shape: RunShape) -> int:
    """Of whole rows of a micro-batch on one context rank: tokens x hidden."""
    return bytes_of(tokens(shape), shape.model.hidden, shape.elements.activation)
