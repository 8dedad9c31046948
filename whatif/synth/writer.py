"""Writes the acts of one rank: operators with their kernels, collectives, rows around them."""

from collections.abc import Iterable
from dataclasses import replace

from whatif.models.exchanges.volume import Along, Volume
from whatif.models.places import Part, Pass, Place
from whatif.synth.blueprint import Blueprint
from whatif.synth.exchanges import Exchanges
from whatif.synth.operators import Operator
from whatif.synth.play import STREAM_GAP_NS
from whatif.synth.script import Exchange, Kernel, Script, Thread
from whatif.synth.shown import OPERATORS, arguments, kernel_of, record, tensor

EVALUATE = "autograd::engine::evaluate_function: "
_THREAD_NUMBER = {Thread.MAIN: 1, Thread.AUTOGRAD: 2}
"""As the profiler numbers the threads that forward operators run on."""
Within = tuple[Part, int, int]
"""Part, layer and micro-batch."""


class Writer:
    """Of one rank; in brief it writes one work for all that follows one another, and no rows."""

    def __init__(self, blueprint: Blueprint, stage: int, rank: int, *, brief: bool) -> None:
        self._blueprint, self._brief = blueprint, brief
        self.script = Script(rank=rank)
        self.exchanges = Exchanges(blueprint, stage, rank)
        self._sum_ns, self._fixed_ns = 0.0, 0.0
        self._sequence = 0
        self.within: Within = (Part.OTHER, -1, -1)
        """Where the operators that come belong."""
        self._made: dict[Within, dict[Place | None, tuple[int, int]]] = {}
        """Sequence number and thread of the last forward operator of each place (None: of all)."""
        self._began: dict[Within, tuple[int, int]] = {}
        """The same of the first forward operator."""

    def kernel(self, operator: Operator) -> None:
        """An operator with its kernel, on the compute stream."""
        if self._brief:
            self._sum_ns += operator.kernel.dur_ns
            self._fixed_ns += STREAM_GAP_NS
            return
        if not operator.node:
            with self.operators(operator.names, arguments(operator)):
                self.script.launch(operator.kernel)
            return
        direction = operator.work.direction
        is_forward = direction in (Pass.FORWARD, Pass.RECOMPUTE)
        self._sequence += 1 if is_forward else 0
        numbered: dict[str, object] = {"Sequence number": self._sequence, "Fwd thread id": 0}
        made = self._made.setdefault(self.within, {})
        if is_forward:
            thread = _THREAD_NUMBER[Thread.MAIN if direction is Pass.FORWARD else Thread.AUTOGRAD]
            made[operator.work.place] = made[None] = (self._sequence, thread)
            self._began.setdefault(self.within, (self._sequence, thread))
            with self.operators(operator.names, numbered | arguments(operator)):
                self.script.launch(operator.kernel)
            return
        made_by = made.get(operator.work.place) or made.get(None) or (self._sequence, 1)
        numbered["Sequence number"], numbered["Fwd thread id"] = made_by
        with (
            self.operators((EVALUATE + operator.node, operator.node), numbered),
            self.operators(operator.names, arguments(operator)),
        ):
            self.script.launch(operator.kernel)

    def exposed(self, row: Volume, hidden_ns: float = 0.0) -> None:
        """In the way of the computation, but for what hides behind a product."""
        exchange = self.exchanges.of_row(row)
        if hidden_ns and row.along is Along.TENSOR:
            whole_ns = exchange.transfer_ns
            left_ns = max(whole_ns - hidden_ns, whole_ns / row.members)
            exchange = replace(exchange, transfer_ns=left_ns)
        if self._brief:
            self._fixed_ns += row.count * (exchange.transfer_ns + 2 * STREAM_GAP_NS)
            return
        for _ in range(row.count):
            self.wait((self.send_off(exchange),))

    def join(self, row: Volume) -> tuple[int, ...]:
        """A collective beside the computation; the numbers of its works."""
        self.flush()
        exchange = self.exchanges.of_row(row)
        return tuple(self.send_off(exchange) for _ in range(row.count))

    def send_off(self, exchange: Exchange, after: tuple[int, ...] | None = None) -> int:
        """A collective or message; its number."""
        kernel = kernel_of(exchange)
        if self._brief:
            return self.script.join(kernel, exchange, after)
        with (
            self.row("cpu_op", OPERATORS[exchange.kind], tensor(exchange)),
            self.row("cpu_op", "record_param_comms", record(exchange, self.script.rank)),
        ):
            return self.script.join(kernel, exchange, after)

    def wait(self, works: tuple[int, ...]) -> None:
        """Let the computation wait for works."""
        if works:
            self.flush()
            self.script.wait(*works)

    def flush(self) -> None:
        """In brief: write down what was added up."""
        if self._sum_ns or self._fixed_ns:
            kernel = Kernel(name="", dur_ns=self._sum_ns)
            self.script.launch(kernel, self._fixed_ns)
            self._sum_ns = self._fixed_ns = 0.0

    def checkpoint(self, *, is_used: bool) -> "Rows":
        """The engine's node that computes activations again, numbered as their first operator."""
        node = "CheckpointFunctionBackward"
        sequence, thread = self._began.get(self.within, (self._sequence, 1))
        args: dict[str, object] = {"Sequence number": sequence, "Fwd thread id": thread}
        return self.operators((EVALUATE + node, node) if is_used else (), args)

    def operators(self, names: Iterable[str], args: dict[str, object]) -> "Rows":
        """Operators inside each other, as a context."""
        return Rows(self.script, () if self._brief else tuple(names), args)

    def row(self, category: str, name: str, args: dict[str, object] | None = None) -> "Rows":
        """A row of the host, as a context."""
        names = () if self._brief else (name,)
        return Rows(self.script, names, args or {}, category)

    def turn(self, thread: Thread) -> None:
        """Go on with another thread."""
        if not self._brief:
            self.script.turn(thread)


class Rows:
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
