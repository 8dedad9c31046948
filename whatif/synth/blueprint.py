"""What all stages of a run share: its lines of works, its collectives, its pipeline."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from ingest.errors import ScenarioError
from whatif.models.dividing import refuse_contradictory
from whatif.models.exchanges.volume import Of, Spot, Volume, Way
from whatif.models.pipeline.partition import partition
from whatif.models.pipeline.terms import Pipeline, check
from whatif.models.places import Part, Pass
from whatif.models.shape import RunShape
from whatif.models.transformer.dims import NEEDED, expert_tensor, is_known
from whatif.models.transformer.parameters import (
    Held,
    embedding_parameters,
    head_parameters,
    layer_parameters,
    layers_with_experts,
)
from whatif.models.transformer.work import Work, WorkKind
from whatif.models.volumes import volumes
from whatif.synth.machine import Site
from whatif.synth.operators import Operator, Shower
from whatif.synth.order import INTO, backward, forward, recompute

BOTH = (Pass.BACKWARD_INPUT, Pass.BACKWARD_WEIGHT)
Shown = Operator | Spot
_PAIRED = frozenset({Spot.ATTENTION_IN, Spot.ATTENTION_OUT, Spot.FFN_IN, Spot.FFN_OUT, Spot.HEAD})


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of the model: a layer, the embedding, the head."""

    part: Part
    has_experts: bool = False
    layer: int = -1

    @property
    def kin(self) -> frozenset[Of]:
        """Names under which its collectives are listed."""
        if self.part is Part.LAYER:
            return frozenset({Of.LAYER, Of.EXPERTS if self.has_experts else Of.DENSE})
        return frozenset({Of.EMBEDDING if self.part is Part.EMBEDDING else Of.HEAD})


class Blueprint:
    """One run."""

    def __init__(self, shape: RunShape, site: Site) -> None:
        """Check it.

        Raises:
            ScenarioError: sizes are missing, or degrees do not divide.
        """
        _check(shape)
        self.shape, self.site = shape, site
        self.shower = Shower(shape, site.machine)
        degrees = shape.degrees
        self.pipeline = Pipeline(
            schedule=shape.options.schedule,
            stages=degrees.pp,
            micro_batches=shape.batch.micro_batches,
            chunks=degrees.virtual_stages,
        )
        check(self.pipeline)
        self.chunks = partition(int(shape.model.layers or 0), self.pipeline)
        self._lines: dict[tuple[Piece, str, tuple[Pass, ...]], tuple[Shown, ...]] = {}

    @cached_property
    def volumes(self) -> tuple[Volume, ...]:
        """All collectives of the layout."""
        return volumes(self.shape)

    def at(self, piece: Piece, way: Way, spot: Spot) -> list[Volume]:
        """Collectives of a part at a spot."""
        return [
            row
            for row in self.volumes
            if row.of in piece.kin and row.way is way and row.spot is spot and row.size_bytes > 0
        ]

    def forward(self, piece: Piece) -> tuple[Shown, ...]:
        """What a part runs, forward."""
        part, experts = piece.part, piece.has_experts
        return self._line(
            piece, "forward", (), lambda: forward(self.shape, part, has_experts=experts)
        )

    def recompute(self, piece: Piece, number: int = 0) -> tuple[Shown, ...]:
        """What it computes again.

        Args:
            piece: part of the model.
            number: of a layer within its stage.
        """
        part, experts = piece.part, piece.has_experts
        most = self.shape.options.recompute_layers
        if most is not None and number >= most:
            return ()
        return self._line(
            piece, "recompute", (), lambda: recompute(self.shape, part, has_experts=experts)
        )

    def backward(self, piece: Piece, wanted: tuple[Pass, ...] = BOTH) -> tuple[Shown, ...]:
        """What it runs, backward."""
        part, experts = piece.part, piece.has_experts
        return self._line(
            piece,
            "backward",
            wanted,
            lambda: backward(self.shape, part, wanted, has_experts=experts),
        )

    def _line(
        self,
        piece: Piece,
        what: str,
        wanted: tuple[Pass, ...],
        make: Callable[[], tuple[Work | Spot, ...]],
    ) -> tuple[Shown, ...]:
        key = (Piece(part=piece.part, has_experts=piece.has_experts), what, wanted)
        if key not in self._lines:
            steps = make()
            self._lines[key] = tuple(
                step if isinstance(step, Spot) else self.shower.show(step) for step in steps
            )
        return self._lines[key]

    def hidden_ns(self, line: tuple[Shown, ...], at: int, way: Way) -> float:
        """Time of the product that a tensor-parallel collective at a spot runs beside in pieces.

        0 without `async_tp`; the first or the last piece has nothing beside it.
        """
        spot = line[at]
        if not self.shape.options.async_tp or spot not in _PAIRED:
            return 0.0
        follows = (spot in INTO) == (way is Way.FORWARD)
        near = at + 1 if follows else at - 1
        if not 0 <= near < len(line):
            return 0.0
        other = line[near]
        if isinstance(other, Spot) or other.work.kind is not WorkKind.PRODUCT:
            return 0.0
        tp = self.shape.degrees.tp
        return other.kernel.dur_ns * (tp - 1) / tp

    def pieces(self, stage: int, chunk: int) -> tuple[Piece, ...]:
        """Parts of the model that a chunk of a stage holds, in order."""
        experts_from = int(self.shape.model.layers or 0) - layers_with_experts(self.shape.model)
        layers = tuple(
            Piece(part=Part.LAYER, has_experts=layer >= experts_from, layer=layer)
            for layer in self.chunks[stage][chunk]
        )
        place = self.pipeline.place(stage, chunk)
        first = (Piece(part=Part.EMBEDDING),) if place == 0 else ()
        last = (Piece(part=Part.HEAD),) if place == self.pipeline.depth - 1 else ()
        return first + layers + last

    def works(self) -> int:
        """About as many kernels as all stages run in a step."""
        model = self.shape.model
        sparse = layers_with_experts(model)
        layers = {True: sparse, False: int(model.layers or 0) - sparse}
        each = 0
        for has_experts, count in layers.items():
            piece = Piece(part=Part.LAYER, has_experts=has_experts)
            if count:
                each += count * len((*self.forward(piece), *self.backward(piece)))
        return each * self.shape.batch.micro_batches

    def state(self, stage: int) -> float:
        """Parameters whose optimizer state a rank of the stage holds."""
        held = Held()
        for chunk in range(self.pipeline.chunks_per_rank):
            for piece in self.pieces(stage, chunk):
                held = held + _held(self.shape, piece)
        degrees, options = self.shape.degrees, self.shape.options
        shares = degrees.zero > 0 or options.distributed_optimizer
        shards = (degrees.shard or degrees.dp) * degrees.cp if shares else 1
        expert_shards = max(shards // degrees.ep, 1)
        apart = degrees.ep * expert_tensor(self.shape) * expert_shards
        dense = held.divided / degrees.tp + held.whole
        return dense / shards + held.routed / apart


def _held(shape: RunShape, piece: Piece) -> Held:
    match piece.part:
        case Part.EMBEDDING:
            return embedding_parameters(shape.model)
        case Part.HEAD:
            return head_parameters(shape.model)
        case _:
            return layer_parameters(shape.model, has_experts=piece.has_experts)


def _check(shape: RunShape) -> None:
    model, batch = shape.model, shape.batch
    if not is_known(model):
        missing = [name for name in NEEDED if getattr(model, name) is None]
        raise ScenarioError(
            f"the model's {', '.join(missing) or 'ffn'} is not said",
            hint="model: {layers, hidden, heads, ffn, vocab}",
        )
    if batch.samples is None or batch.sequence is None:
        missing_one = "samples" if batch.samples is None else "sequence"
        raise ScenarioError(
            f"the batch's {missing_one} is not said",
            hint="batch: {samples: 1, sequence: 4096, micro_batches: 8}",
        )
    refuse_contradictory(shape)
