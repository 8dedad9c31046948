"""One pipeline stage: its step as a script, micro-batch by micro-batch.

Collectives stand where `whatif.models.volumes` puts them: those of tensor, expert and all-to-all
context ranks in the way of the computation, rings beside attention; gradients leave in buckets
while backward of the last micro-batch goes on, or behind it; FSDP gathers the next part while this
one computes; ZeRO-1 and 2 gather parameters beside the first forward (as Megatron-LM's overlapped
gather does), or before it.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from ingest.vocab import CollectiveKind
from whatif.models.exchanges.volume import Along, Of, Spot, Volume, Way
from whatif.models.pipeline import Turn, Work, turns
from whatif.models.places import Part, Pass, Place
from whatif.models.transformer.works import optimizer_works, sync_works
from whatif.models.volumes import stage_message_bytes
from whatif.synth.groups import Groups
from whatif.synth.operators import Operator
from whatif.synth.order import INTO, singles
from whatif.synth.plan import BOTH, Piece, Plan, Shown
from whatif.synth.play import STREAM_GAP_NS
from whatif.synth.script import Exchange, Kernel, Script, Thread
from whatif.synth.shown import OPERATORS, arguments, kernel_of, record, tensor

FULLY_SHARDED = 3
_NARROW = "Float8_e4m3fn"
SHARED_GRADIENTS = 2
BUCKET_BYTES = 25 * 2**20
"""Of PyTorch's DDP."""
EVALUATE = "autograd::engine::evaluate_function: "
_THREAD_NUMBER = {Thread.MAIN: 1, Thread.AUTOGRAD: 2}
"""As the profiler numbers the threads that forward operators run on."""
_BESIDE_PRODUCT = {Place.QKV: Spot.ATTENTION_IN, Place.UP: Spot.FFN_IN, Place.LOGITS: Spot.HEAD}
_FROM_BEFORE, _TO_NEXT, _FROM_NEXT, _TO_BEFORE = range(4)
_PASSES = {
    Work.BACKWARD: BOTH,
    Work.BACKWARD_INPUT: (Pass.BACKWARD_INPUT,),
    Work.BACKWARD_WEIGHT: (Pass.BACKWARD_WEIGHT,),
}


class Stage:
    """Writes the script of the first rank of one stage."""

    def __init__(self, plan: Plan, stage: int, *, brief: bool = False, rank: int = -1) -> None:
        """Begin.

        Args:
            plan: of the run.
            stage: from 0.
            brief: one work for all that follows one another on the compute stream, no rows.
            rank: of the stage; -1: its first.
        """
        degrees = plan.shape.degrees
        apart = degrees.tp * degrees.cp * degrees.dp
        self._plan, self._stage, self._brief = plan, stage, brief
        self.script = Script(rank=rank if rank >= 0 else stage * apart)
        self._groups = Groups(rank=self.script.rank, shape=plan.shape)
        self._sum_ns, self._fixed_ns = 0.0, 0.0
        self._step = 0
        self._ring: tuple[int, ...] = ()
        """What the work after attention waits for."""
        self._again: tuple[int, ...] = ()
        """What the next product of weights waits for."""
        self._gathered: dict[tuple[Piece, int], int] = {}
        self._reduced: list[int] = []
        self._bucket: dict[tuple[Along, CollectiveKind, int], int] = {}
        self._sequence = 0
        self._within: tuple[Part, int, int] = (Part.OTHER, -1, -1)
        """Part, layer and micro-batch of the operators that come."""
        self._made: dict[tuple[Part, int, int], dict[Place | None, tuple[int, int]]] = {}
        """Sequence number and thread of the last forward operator of each place (None: of all)."""
        self._began: dict[tuple[Part, int, int], tuple[int, int]] = {}
        """The same of the first forward operator."""
        self._sums: dict[tuple[int, Way], tuple[float, float]] = {}
        self._pieces = [plan.pieces(stage, chunk) for chunk in range(plan.pipeline.chunks_per_rank)]
        layers = [p.layer for pieces in self._pieces for p in pieces if p.part is Part.LAYER]
        self._local = {layer: number for number, layer in enumerate(layers)}
        order = turns(plan.pipeline, stage)
        self._order = order
        self._last = _last_backward(order)

    def write(self, steps: int) -> Script:
        """The whole script."""
        for number in range(steps):
            self._step = number
            with self._row("user_annotation", f"ProfilerStep#{number + 1}"):
                self._one_step()
            self._flush()
        return self.script

    def _one_step(self) -> None:
        with self._row("user_annotation", "Optimizer.zero_grad#AdamW.zero_grad"):
            pass
        self._gathered.clear()
        self._gather_updated()
        seen: set[int] = set()
        for turn in self._order:
            if turn.work is Work.FORWARD:
                self._forward(turn, is_first=turn.chunk not in seen)
                seen.add(turn.chunk)
            else:
                self._backward(turn, is_last=turn.micro_batch == self._last[turn.chunk])
        self._synchronise()
        with self._row("user_annotation", "Optimizer.step#AdamW.step"):
            works = optimizer_works(self._plan.shape, self._plan.state(self._stage))
            for work in singles(works):
                self._kernel(self._plan.shower.show(work))
        self._flush()
        if not self._plan.shape.options.overlap_params:
            self._gather_now()

    # Forward and backward of one micro-batch

    def _forward(self, turn: Turn, *, is_first: bool) -> None:
        self._receive(turn, _FROM_BEFORE, -1, Way.FORWARD)
        pieces = self._pieces[turn.chunk]
        for piece, later in pairwise((*pieces, None)):
            assert piece is not None
            self._within = (piece.part, piece.layer, turn.micro_batch)
            self._gathering(piece, later, Way.FORWARD, is_first=is_first)
            with self._module(piece):
                self._line(self._plan.forward(piece), piece, Way.FORWARD)
        self._send(turn, _TO_NEXT, 1, Way.FORWARD)

    def _backward(self, turn: Turn, *, is_last: bool) -> None:
        self._turn(Thread.AUTOGRAD)
        passes = _PASSES[turn.work]
        has_input = Pass.BACKWARD_INPUT in passes
        has_weight = Pass.BACKWARD_WEIGHT in passes
        if has_input:
            self._receive(turn, _FROM_NEXT, 1, Way.BACKWARD)
        pieces = self._pieces[turn.chunk][::-1]
        for piece, later in pairwise((*pieces, None)):
            assert piece is not None
            self._within = (piece.part, piece.layer, turn.micro_batch)
            if has_input:
                self._gathering(piece, later, Way.BACKWARD, is_first=True)
                again = self._plan.recompute(piece, self._number(piece))
                with self._checkpoint(is_used=bool(again)):
                    self._line(again, piece, Way.FORWARD)
            self._line(self._plan.backward(piece, passes), piece, Way.BACKWARD)
            if has_weight:
                self._gradients(piece, is_last=is_last)
        if has_input:
            self._send(turn, _TO_BEFORE, -1, Way.BACKWARD)
        self._turn(Thread.MAIN)

    def _line(self, line: tuple[Shown, ...], piece: Piece, way: Way) -> None:
        """Kernels and the collectives between them."""
        if self._brief and self._added(line, piece, way):
            return
        for at, step in enumerate(line):
            if isinstance(step, Spot):
                self._spot(piece, way, step, self._plan.hidden_ns(line, at, way))
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
                for row in self._plan.at(piece, way, step)
            ]
            if any(row.beside for row in rows):
                return False
            before = self._sum_ns, self._fixed_ns
            self._sum_ns = self._fixed_ns = 0.0
            for at, step in enumerate(line):
                if isinstance(step, Spot):
                    self._spot(piece, way, step, self._plan.hidden_ns(line, at, way))
                else:
                    self._kernel(step)
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
            for row in self._plan.at(piece, way, spot) if spot else ():
                if row.beside:
                    self._again += self._join(row)
        if work.direction is Pass.BACKWARD_WEIGHT:
            self._again_done()
        self._kernel(operator)

    def _again_done(self) -> None:
        self._wait(self._again)
        self._again = ()

    def _ring_done(self) -> None:
        self._wait(self._ring)
        self._ring = ()

    def _spot(self, piece: Piece, way: Way, spot: Spot, hidden_ns: float) -> None:
        for row in self._plan.at(piece, way, spot):
            if row.beside and spot is Spot.ATTENTION:
                self._ring += self._join(row)
            elif row.beside and spot in INTO and way is Way.BACKWARD:
                continue  # launched before the product
            else:
                self._exposed(row, hidden_ns)

    # Gradients and parameters

    def _gathering(self, piece: Piece, later: Piece | None, way: Way, *, is_first: bool) -> None:
        """Parameters of this part, and already those of the next one."""
        if self._plan.shape.degrees.zero != FULLY_SHARDED:
            if is_first and way is Way.FORWARD:
                self._wait_gathered(piece)
            return
        if self._keeps and (way is Way.BACKWARD or not is_first):
            return
        for each in (piece, later):
            if each is not None and (each, 0) not in self._gathered:
                with self._row("user_annotation", f"FSDP::all_gather ({_qualified(each)})"):
                    for number, row in enumerate(self._plan.at(each, way, Spot.PARAMETERS)):
                        self._gathered[each, number] = self._join(row)[-1]
        self._wait_gathered(piece)

    @property
    def _keeps(self) -> bool:
        """FSDP under a pipeline gathers and reduces once per step (torchtitan)."""
        degrees = self._plan.shape.degrees
        return degrees.zero == FULLY_SHARDED and degrees.pp > 1

    def _wait_gathered(self, piece: Piece) -> None:
        found = [key for key in self._gathered if key[0] == piece]
        self._wait(tuple(self._gathered.pop(key) for key in found))

    def _gather_updated(self) -> None:
        """Parameters that other ranks updated in the step before, beside the first forward."""
        if not self._plan.shape.options.overlap_params:
            return
        for pieces in self._pieces:
            for piece in pieces:
                for number, row in enumerate(self._updated(piece)):
                    self._gathered[piece, number] = self._join(row)[-1]

    def _updated(self, piece: Piece) -> list[Volume]:
        return self._plan.at(piece, Way.NONE, Spot.UPDATED)

    def _gather_now(self) -> None:
        rows = [row for each in self._pieces for piece in each for row in self._updated(piece)]
        for row in rows:
            self._exposed(row)

    def _gradients(self, piece: Piece, *, is_last: bool) -> None:
        zero = self._plan.shape.degrees.zero
        for row in self._plan.at(piece, Way.BACKWARD, Spot.GRADIENTS):
            if not (is_last or (row.each_micro_batch and not self._keeps)):
                continue
            key = (row.along, row.kind, row.members)
            self._bucket[key] = self._bucket.get(key, 0) + row.size_bytes
            limit = self._plan.shape.options.bucket_bytes or BUCKET_BYTES
            if row.beside and (zero >= SHARED_GRADIENTS or self._bucket[key] >= limit):
                self._leave(key)

    def _leave(self, key: tuple[Along, CollectiveKind, int]) -> None:
        along, kind, members = key
        size = self._bucket.pop(key)
        exchange = self._exchange(along, kind, members, size, self._gradient_type)
        self._flush()
        self._reduced.append(self._send_off(exchange))

    @property
    def _gradient_type(self) -> tuple[str, float]:
        elements = self._plan.shape.elements
        each = elements.gradient if elements.reduced is None else elements.reduced
        return ("Float", 4.0) if each > 2 else (self._half, each)  # noqa: PLR2004

    def _synchronise(self) -> None:
        """What is left of the gradients leaves; the optimizer waits for all of them."""
        for key in list(self._bucket):
            self._leave(key)
        self._wait(tuple(self._reduced))
        self._reduced.clear()
        for work in singles(sync_works(self._plan.shape, self._plan.state(self._stage))):
            self._kernel(self._plan.shower.show(work))
        for row in self._plan.volumes:
            if row.of is Of.STEP and row.spot is Spot.CLIP:
                exchange = self._over_stages(row)
                self._flush()
                self._wait((self._send_off(exchange),))

    def _over_stages(self, row: Volume) -> Exchange:
        """A collective in which all stages meet, once a step."""
        exchange = self._of_row(row)
        stages = self._plan.shape.degrees.pp
        if stages == 1:
            return exchange
        return replace(exchange, meeting=(self._step, len(Way)), ends=stages)

    # Messages between stages

    def _receive(self, turn: Turn, way_number: int, towards: int, way: Way) -> None:
        """From the stage before (-1) or behind (1)."""
        neighbour = self._plan.pipeline.neighbour(self._stage, turn.chunk, towards)
        if neighbour is None or neighbour[0] == self._stage:
            return
        place = self._plan.pipeline.place(self._stage, turn.chunk)
        key = (self._step, list(Way).index(way), place, turn.micro_batch)
        exchange = self._message(CollectiveKind.RECV, way_number, neighbour[0], key)
        self._flush()
        self._wait((self._send_off(exchange, after=()),))

    def _send(self, turn: Turn, way_number: int, towards: int, way: Way) -> None:
        neighbour = self._plan.pipeline.neighbour(self._stage, turn.chunk, towards)
        if neighbour is None or neighbour[0] == self._stage:
            return
        stage, chunk = neighbour
        place = self._plan.pipeline.place(stage, chunk)
        key = (self._step, list(Way).index(way), place, turn.micro_batch)
        exchange = self._message(CollectiveKind.SEND, way_number, stage, key)
        self._flush()
        self._send_off(exchange)

    def _message(
        self, kind: CollectiveKind, way: int, stage: int, key: tuple[int, ...]
    ) -> Exchange:
        size = stage_message_bytes(self._plan.shape)
        peer = self.script.rank + (stage - self._stage) * self._groups.apart
        elements = round(size / self._plan.shape.elements.activation)
        ends = (min(self.script.rank, peer), max(self.script.rank, peer))
        sending = kind is CollectiveKind.SEND
        return Exchange(
            kind=kind,
            group=self._groups.pipeline(way),
            sent=elements if sending else 0,
            received=0 if sending else elements,
            dtype=self._half,
            transfer_ns=self._plan.site.transfer_ns(CollectiveKind.SEND_RECV, size, ends),
            peer=peer,
            meeting=key,
        )

    # One collective, one kernel

    @property
    def _half(self) -> str:
        return "Half" if self._plan.shape.elements.product == "fp16" else "BFloat16"

    def _exposed(self, row: Volume, hidden_ns: float = 0.0) -> None:
        """In the way of the computation, but for what hides behind a product."""
        exchange = self._of_row(row)
        if hidden_ns and row.along is Along.TENSOR:
            whole_ns = exchange.transfer_ns
            left_ns = max(whole_ns - hidden_ns, whole_ns / row.members)
            exchange = replace(exchange, transfer_ns=left_ns)
        if self._brief:
            self._fixed_ns += row.count * (exchange.transfer_ns + 2 * STREAM_GAP_NS)
            return
        for _ in range(row.count):
            self._wait((self._send_off(exchange),))

    def _join(self, row: Volume) -> tuple[int, ...]:
        self._flush()
        exchange = self._of_row(row)
        return tuple(self._send_off(exchange) for _ in range(row.count))

    def _of_row(self, row: Volume) -> Exchange:
        elements = self._plan.shape.elements
        own = (self._half, elements.activation)
        size = row.size_bytes
        if row.along is Along.TENSOR and self._is_narrow(row):
            own, size = (_NARROW, 1.0), round(size / elements.activation)
        if row.along in (Along.SHARDS, Along.REPLICAS):
            own = self._gradient_type
            if row.kind is CollectiveKind.ALL_GATHER:
                own = (self._half, elements.parameter)
        elif row.spot in (Spot.LOSS, Spot.CLIP):
            own = ("Float", 4.0)
        return self._exchange(row.along, row.kind, row.members, size, own)

    def _is_narrow(self, row: Volume) -> bool:
        """Rows are cast to 8 bits before they are gathered (torchtitan, docs/float8.md)."""
        is_gather = row.kind is CollectiveKind.ALL_GATHER and row.spot is not Spot.HEAD
        return is_gather and self._plan.shape.elements.product == "fp8"

    def _exchange(
        self,
        along: Along,
        kind: CollectiveKind,
        members: int,
        size_bytes: float,
        own: tuple[str, float],
    ) -> Exchange:
        dtype, each_bytes = own
        group = self._groups.of(along, members)
        whole = round(size_bytes / each_bytes)
        part = max(whole // members, 1)
        sent, received = whole, whole
        if kind is CollectiveKind.ALL_GATHER:
            sent = part
        elif kind is CollectiveKind.REDUCE_SCATTER:
            received = part
        return Exchange(
            kind=kind,
            group=group,
            sent=sent,
            received=received,
            dtype=dtype,
            transfer_ns=self._plan.site.transfer_ns(kind, size_bytes, group.ranks),
        )

    def _send_off(self, exchange: Exchange, after: tuple[int, ...] | None = None) -> int:
        kernel = kernel_of(exchange)
        if self._brief:
            return self.script.join(kernel, exchange, after)
        with (
            self._row("cpu_op", OPERATORS[exchange.kind], tensor(exchange)),
            self._row("cpu_op", "record_param_comms", record(exchange, self.script.rank)),
        ):
            return self.script.join(kernel, exchange, after)

    def _kernel(self, operator: Operator) -> None:
        if self._brief:
            self._sum_ns += operator.kernel.dur_ns
            self._fixed_ns += STREAM_GAP_NS
            return
        if not operator.node:
            with self._operators(operator.names, arguments(operator)):
                self.script.launch(operator.kernel)
            return
        direction = operator.work.direction
        is_forward = direction in (Pass.FORWARD, Pass.RECOMPUTE)
        self._sequence += 1 if is_forward else 0
        numbered: dict[str, object] = {"Sequence number": self._sequence, "Fwd thread id": 0}
        made = self._made.setdefault(self._within, {})
        if is_forward:
            thread = _THREAD_NUMBER[Thread.MAIN if direction is Pass.FORWARD else Thread.AUTOGRAD]
            made[operator.work.place] = made[None] = (self._sequence, thread)
            self._began.setdefault(self._within, (self._sequence, thread))
            with self._operators(operator.names, numbered | arguments(operator)):
                self.script.launch(operator.kernel)
            return
        made_by = made.get(operator.work.place) or made.get(None) or (self._sequence, 1)
        numbered["Sequence number"], numbered["Fwd thread id"] = made_by
        with (
            self._operators((EVALUATE + operator.node, operator.node), numbered),
            self._operators(operator.names, arguments(operator)),
        ):
            self.script.launch(operator.kernel)

    # Rows

    def _checkpoint(self, *, is_used: bool) -> "_Nested":
        """The engine's node that computes activations again, numbered as their first operator."""
        node = "CheckpointFunctionBackward"
        names = () if self._brief or not is_used else (EVALUATE + node, node)
        sequence, thread = self._began.get(self._within, (self._sequence, 1))
        return self._operators(names, {"Sequence number": sequence, "Fwd thread id": thread})

    def _operators(self, names: Iterable[str], args: dict[str, object]) -> "_Nested":
        return _Nested(self.script, tuple(names), args)

    def _row(self, category: str, name: str, args: dict[str, object] | None = None) -> "_Nested":
        names = () if self._brief else (name,)
        return _Nested(self.script, names, args or {}, category)

    def _module(self, piece: Piece) -> "_Nested":
        name = {
            Part.EMBEDDING: "Embedding_0",
            Part.HEAD: "Head_0",
        }.get(piece.part) or f"TransformerBlock_{self._number(piece)}"
        return self._row("python_function", f"nn.Module: {name}")

    def _number(self, piece: Piece) -> int:
        """Of a layer among those of the stage."""
        return self._local.get(piece.layer, 0)

    def _turn(self, thread: Thread) -> None:
        if not self._brief:
            self.script.turn(thread)

    def _wait(self, works: tuple[int, ...]) -> None:
        if works:
            self._flush()
            self.script.wait(*works)

    def _flush(self) -> None:
        """In brief: write down what was added up."""
        if self._sum_ns or self._fixed_ns:
            kernel = Kernel(name="", dur_ns=self._sum_ns)
            self.script.launch(kernel, self._fixed_ns)
            self._sum_ns = self._fixed_ns = 0.0


class _Nested:
    """Rows inside each other, as a context."""

    def __init__(
        self,
        script: Script,
        names: tuple[str, ...],
        args: dict[str, object],
        category: str = "cpu_op",
    ) -> None:
        self._script, self._names, self._args = script, names, args
        self._category = category

    def __enter__(self) -> None:
        for name in self._names:
            self._script.open(self._category, name, self._args)

    def __exit__(self, *_: object) -> None:
        for _name in self._names:
            self._script.close()


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
