"""One pipeline stage: its step as a script, micro-batch by micro-batch.

Collectives stand where `whatif.models.volumes` puts them: those of tensor, expert and all-to-all
context ranks in the way of the computation, rings beside attention; gradients leave in buckets
while backward of the last micro-batch goes on, or behind it; FSDP gathers the next part while this
one computes; ZeRO-1 and 2 gather parameters beside the first forward (as Megatron-LM's overlapped
gather does), or before it.
"""

from itertools import pairwise

from ingest.vocab import CollectiveKind
from whatif.models.exchanges.state import BUCKET_BYTES
from whatif.models.exchanges.volume import Along, Of, Spot, Volume, Way
from whatif.models.pipeline.orders import turns
from whatif.models.pipeline.terms import Turn, Work
from whatif.models.places import Part, Pass, Place
from whatif.models.shape import SHARDS_GRADIENTS, SHARDS_PARAMETERS
from whatif.models.transformer.works import optimizer_works, sync_works
from whatif.synth.blueprint import BOTH, Blueprint, Piece, Shown
from whatif.synth.operators import Operator
from whatif.synth.order import INTO, singles
from whatif.synth.script import Script, Thread
from whatif.synth.writer import Rows, Writer

_BESIDE_PRODUCT = {Place.QKV: Spot.ATTENTION_IN, Place.UP: Spot.FFN_IN, Place.LOGITS: Spot.HEAD}
_FROM_BEFORE, _TO_NEXT, _FROM_NEXT, _TO_BEFORE = range(4)
_PASSES = {
    Work.BACKWARD: BOTH,
    Work.BACKWARD_INPUT: (Pass.BACKWARD_INPUT,),
    Work.BACKWARD_WEIGHT: (Pass.BACKWARD_WEIGHT,),
}


class Stage(Writer):
    """Writes the script of the first rank of one stage."""

    def __init__(
        self, blueprint: Blueprint, stage: int, *, brief: bool = False, rank: int = -1
    ) -> None:
        """Begin.

        Args:
            blueprint: of the run.
            stage: from 0.
            brief: one work for all that follows one another on the compute stream, no rows.
            rank: of the stage; -1: its first.
        """
        degrees = blueprint.shape.degrees
        apart = degrees.tp * degrees.cp * degrees.dp
        super().__init__(blueprint, stage, rank if rank >= 0 else stage * apart, brief=brief)
        self._stage = stage
        self._step = 0
        self._ring: tuple[int, ...] = ()
        """What the work after attention waits for."""
        self._again: tuple[int, ...] = ()
        """What the next product of weights waits for."""
        self._gathered: dict[tuple[Piece, int], int] = {}
        self._reduced: list[int] = []
        self._bucket: dict[tuple[Along, CollectiveKind, int], int] = {}
        self._sums: dict[tuple[int, Way], tuple[float, float]] = {}
        self._pieces = [
            blueprint.pieces(stage, chunk) for chunk in range(blueprint.pipeline.chunks_per_rank)
        ]
        layers = [p.layer for pieces in self._pieces for p in pieces if p.part is Part.LAYER]
        self._local = {layer: number for number, layer in enumerate(layers)}
        order = turns(blueprint.pipeline, stage)
        self._order = order
        self._last = _last_backward(order)

    def write(self, steps: int) -> Script:
        """The whole script."""
        for number in range(steps):
            self._step = number
            with self.row("user_annotation", f"ProfilerStep#{number + 1}"):
                self._one_step()
            self.flush()
        return self.script

    def _one_step(self) -> None:
        self._gathered.clear()
        self._gather_updated()
        with self.row("user_annotation", "Optimizer.zero_grad#AdamW.zero_grad"):
            pass
        seen: set[int] = set()
        for turn in self._order:
            if turn.work is Work.FORWARD:
                self._forward(turn, is_first=turn.chunk not in seen)
                seen.add(turn.chunk)
            else:
                self._backward(turn, is_last=turn.micro_batch == self._last[turn.chunk])
        self._synchronise()
        with self.row("user_annotation", "Optimizer.step#AdamW.step"):
            self._clip()
            works = optimizer_works(self._blueprint.shape, self._blueprint.state(self._stage))
            for work in singles(works):
                self.kernel(self._blueprint.shower.show(work))
        self.flush()
        if not self._blueprint.shape.options.overlap_params:
            self._gather_now()

    # Forward and backward of one micro-batch

    def _forward(self, turn: Turn, *, is_first: bool) -> None:
        self._receive(turn, _FROM_BEFORE, -1, Way.FORWARD)
        pieces = self._pieces[turn.chunk]
        for piece, later in pairwise((*pieces, None)):
            assert piece is not None
            self.within = (piece.part, piece.layer, turn.micro_batch)
            self._gathering(piece, later, Way.FORWARD, is_first=is_first)
            with self._module(piece):
                self._line(self._blueprint.forward(piece), piece, Way.FORWARD)
        self._send(turn, _TO_NEXT, 1, Way.FORWARD)

    def _backward(self, turn: Turn, *, is_last: bool) -> None:
        self.turn(Thread.AUTOGRAD)
        passes = _PASSES[turn.work]
        has_input = Pass.BACKWARD_INPUT in passes
        has_weight = Pass.BACKWARD_WEIGHT in passes
        if has_input:
            self._receive(turn, _FROM_NEXT, 1, Way.BACKWARD)
        pieces = self._pieces[turn.chunk][::-1]
        for piece, later in pairwise((*pieces, None)):
            assert piece is not None
            self.within = (piece.part, piece.layer, turn.micro_batch)
            if has_input:
                self._gathering(piece, later, Way.BACKWARD, is_first=True)
                again = self._blueprint.recompute(piece, self._number(piece))
                with self.checkpoint(is_used=bool(again)):
                    self._line(again, piece, Way.FORWARD)
            self._line(self._blueprint.backward(piece, passes), piece, Way.BACKWARD)
            if has_weight:
                self._gradients(piece, is_last=is_last)
        if has_input:
            self._send(turn, _TO_BEFORE, -1, Way.BACKWARD)
        self.turn(Thread.MAIN)

    def _line(self, line: tuple[Shown, ...], piece: Piece, way: Way) -> None:
        """Kernels and the collectives between them."""
        if self._brief and self._added(line, piece, way):
            return
        for at, step in enumerate(line):
            if isinstance(step, Spot):
                self._spot(piece, way, step, self._blueprint.hidden_ns(line, at, way))
            else:
                self._operator(step, piece, way)
        self._again_done()
        self._ring_done()

    def _added(self, line: tuple[Shown, ...], piece: Piece, way: Way) -> bool:
        """In brief: a line without anything beside it is one number, added up."""
        key = (id(line), way)
        if key not in self._sums:
            rows = [
                row
                for step in (*line, *_BESIDE_PRODUCT.values())
                if isinstance(step, Spot)
                for row in self._blueprint.at(piece, way, step)
            ]
            if any(row.beside for row in rows):
                return False
            before = self._sum_ns, self._fixed_ns
            self._sum_ns = self._fixed_ns = 0.0
            for at, step in enumerate(line):
                if isinstance(step, Spot):
                    self._spot(piece, way, step, self._blueprint.hidden_ns(line, at, way))
                else:
                    self.kernel(step)
            self._sums[key] = self._sum_ns, self._fixed_ns
            self._sum_ns, self._fixed_ns = before
        scaled, fixed = self._sums[key]
        self._sum_ns += scaled
        self._fixed_ns += fixed
        return True

    def _operator(self, operator: Operator, piece: Piece, way: Way) -> None:
        work = operator.work
        if work.place is not Place.ATTENTION:
            self._ring_done()
        if way is Way.BACKWARD and work.direction is Pass.BACKWARD_INPUT:
            spot = _BESIDE_PRODUCT.get(work.place)
            for row in self._blueprint.at(piece, way, spot) if spot else ():
                if row.beside:
                    self._again += self.join(row)
        if work.direction is Pass.BACKWARD_WEIGHT:
            self._again_done()
        self.kernel(operator)

    def _again_done(self) -> None:
        self.wait(self._again)
        self._again = ()

    def _ring_done(self) -> None:
        self.wait(self._ring)
        self._ring = ()

    def _spot(self, piece: Piece, way: Way, spot: Spot, hidden_ns: float) -> None:
        for row in self._blueprint.at(piece, way, spot):
            if row.beside and spot is Spot.ATTENTION:
                self._ring += self.join(row)
            elif row.beside and spot in INTO and way is Way.BACKWARD:
                continue  # launched before the product
            else:
                self.exposed(row, hidden_ns)

    # Gradients and parameters

    def _gathering(self, piece: Piece, later: Piece | None, way: Way, *, is_first: bool) -> None:
        """Parameters of this part, and already those of the next one."""
        if self._blueprint.shape.degrees.zero != SHARDS_PARAMETERS:
            if is_first and way is Way.FORWARD:
                self._wait_gathered(piece)
            return
        if self._keeps and (way is Way.BACKWARD or not is_first):
            return
        for each in (piece, later):
            if each is not None and (each, 0) not in self._gathered:
                with self.row("user_annotation", f"FSDP::all_gather ({_qualified(each)})"):
                    for number, row in enumerate(self._blueprint.at(each, way, Spot.PARAMETERS)):
                        self._gathered[each, number] = self.join(row)[-1]
        self._wait_gathered(piece)

    @property
    def _keeps(self) -> bool:
        """FSDP under a pipeline gathers and reduces once per step (torchtitan)."""
        degrees = self._blueprint.shape.degrees
        return degrees.zero == SHARDS_PARAMETERS and degrees.pp > 1

    def _wait_gathered(self, piece: Piece) -> None:
        found = [key for key in self._gathered if key[0] == piece]
        self.wait(tuple(self._gathered.pop(key) for key in found))

    def _gather_updated(self) -> None:
        """Parameters that other ranks updated in the step before, beside the first forward."""
        if not self._blueprint.shape.options.overlap_params:
            return
        for pieces in self._pieces:
            for piece in pieces:
                for number, row in enumerate(self._updated(piece) or self._early(piece)):
                    self._gathered[piece, number] = self.join(row)[-1]

    def _updated(self, piece: Piece) -> list[Volume]:
        return self._blueprint.at(piece, Way.NONE, Spot.UPDATED)

    def _early(self, piece: Piece) -> list[Volume]:
        if self._blueprint.shape.degrees.zero == SHARDS_PARAMETERS:
            return []  # gathered before each use
        return self._blueprint.at(piece, Way.FORWARD, Spot.PARAMETERS)

    def _gather_now(self) -> None:
        rows = [row for each in self._pieces for piece in each for row in self._updated(piece)]
        for row in rows:
            self.exposed(row)

    def _gradients(self, piece: Piece, *, is_last: bool) -> None:
        zero = self._blueprint.shape.degrees.zero
        for row in self._blueprint.at(piece, Way.BACKWARD, Spot.GRADIENTS):
            if not (is_last or (row.each_micro_batch and not self._keeps)):
                continue
            key = (row.along, row.kind, row.members)
            self._bucket[key] = self._bucket.get(key, 0) + row.size_bytes
            limit = self._blueprint.shape.options.bucket_bytes or BUCKET_BYTES
            if row.beside and (zero >= SHARDS_GRADIENTS or self._bucket[key] >= limit):
                self._leave(key)

    def _leave(self, key: tuple[Along, CollectiveKind, int]) -> None:
        along, kind, members = key
        size = self._bucket.pop(key)
        exchange = self.exchanges.exchange(along, kind, members, size, self.exchanges.gradient_type)
        self.flush()
        self._reduced.append(self.send_off(exchange))

    def _synchronise(self) -> None:
        """What is left of the gradients leaves; the optimizer waits for all of them."""
        for key in list(self._bucket):
            self._leave(key)
        self.wait(tuple(self._reduced))
        self._reduced.clear()

    def _clip(self) -> None:
        """Gradients by their norm, as Megatron-LM's optimizer does inside its step."""
        for work in singles(sync_works(self._blueprint.shape, self._blueprint.state(self._stage))):
            self.kernel(self._blueprint.shower.show(work))
        for row in self._blueprint.volumes:
            if row.of is Of.STEP and row.spot is Spot.CLIP:
                exchange = self.exchanges.over_stages(row, self._step)
                self.flush()
                self.wait((self.send_off(exchange),))

    # Messages between stages

    def _receive(self, turn: Turn, way_number: int, towards: int, way: Way) -> None:
        """From the stage before (-1) or behind (1)."""
        neighbour = self._blueprint.pipeline.neighbour(self._stage, turn.chunk, towards)
        if neighbour is None or neighbour[0] == self._stage:
            return
        place = self._blueprint.pipeline.place(self._stage, turn.chunk)
        key = (self._step, list(Way).index(way), place, turn.micro_batch)
        exchange = self.exchanges.message(CollectiveKind.RECV, way_number, neighbour[0], key)
        self.flush()
        self.wait((self.send_off(exchange, after=()),))

    def _send(self, turn: Turn, way_number: int, towards: int, way: Way) -> None:
        neighbour = self._blueprint.pipeline.neighbour(self._stage, turn.chunk, towards)
        if neighbour is None or neighbour[0] == self._stage:
            return
        stage, chunk = neighbour
        place = self._blueprint.pipeline.place(stage, chunk)
        key = (self._step, list(Way).index(way), place, turn.micro_batch)
        exchange = self.exchanges.message(CollectiveKind.SEND, way_number, stage, key)
        self.flush()
        self.send_off(exchange)

    def _module(self, piece: Piece) -> "Rows":
        name = {
            Part.EMBEDDING: "Embedding_0",
            Part.HEAD: "Head_0",
        }.get(piece.part) or f"TransformerBlock_{self._number(piece)}"
        return self.row("python_function", f"nn.Module: {name}")

    def _number(self, piece: Piece) -> int:
        """Of a layer among those of the stage."""
        return self._local.get(piece.layer, 0)


def _last_backward(order: tuple[Turn, ...]) -> dict[int, int]:
    """Micro-batch whose weights' gradients are the last of each chunk."""
    return {
        turn.chunk: turn.micro_batch
        for turn in order
        if turn.work in (Work.BACKWARD, Work.BACKWARD_WEIGHT)
    }


def _qualified(piece: Piece) -> str:
    names = {Part.EMBEDDING: "tok_embeddings", Part.HEAD: "norm, output"}
    return names.get(piece.part) or f"layers.{piece.layer}"
