"""Small runs of layers with labels, for tests of tapes. Times in ns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from replay.engine.run import replay
from replay.graph.arrays import NONE, Int64, TaskGraph
from replay.results.metrics import step_times
from tests.builders import GraphBuilder
from whatif.description.labels import Labels, Part, Pass
from whatif.tape.assemble import assemble, original
from whatif.tape.cut import cut
from whatif.tape.segments import Assembled, Program, Tape

CALL_NS = 10
"""Host time of a launch: with kernels of a microsecond and more the device is the limit."""


@dataclass(kw_only=True)
class Labelled:
    """A builder whose tasks have the labels that were set last."""

    builder: GraphBuilder
    rows: list[tuple[int, int, int, int]]
    now: tuple[int, int, int, int] = (Part.OTHER, Pass.NONE, NONE, NONE)

    @classmethod
    def new(cls, ranks: Sequence[int] = (0,)) -> "Labelled":
        return cls(builder=GraphBuilder(ranks=ranks), rows=[])

    def at(
        self, part: Part, way: Pass = Pass.NONE, layer: int = NONE, micro_batch: int = NONE
    ) -> None:
        """What the tasks added from here on are."""
        self._fill()
        self.now = (part, way, layer, micro_batch)

    def kernel(self, rank: int, dur_ns: int, step: int = 0, stream: int = 7) -> int:
        """A launch and its kernel; the kernel's id."""
        call = self.builder.call(rank, "cudaLaunchKernel", CALL_NS, step=step)
        return self.builder.kernel(rank, "gemm", dur_ns, caller=call, step=step, stream=stream)

    def reduce(
        self, ranks: Sequence[int], dur_ns: int, after: dict[int, int], step: int = 0
    ) -> None:
        """An all-reduce of these ranks."""
        calls = {
            rank: self.builder.call(rank, "ncclAllReduce", CALL_NS, step=step) for rank in ranks
        }
        self.builder.collective(dur_ns, callers=calls, after=after, step=step)

    def tape(self) -> Tape:
        """Cut."""
        graph, labels = self.built()
        return cut(graph, labels)

    def built(self) -> tuple[TaskGraph, Labels]:
        """The graph and its labels."""
        self._fill()
        part, way, layer, micro_batch = np.array(self.rows).T
        return self.builder.build(), Labels(
            part=part.astype(np.int8),
            direction=way.astype(np.int8),
            layer=layer.astype(np.int32),
            micro_batch=micro_batch.astype(np.int32),
            place=np.zeros(len(part), np.int8),
        )

    def _fill(self) -> None:
        self.rows += [self.now] * (len(self.builder.rows) - len(self.rows))


def training(
    *, ranks: Sequence[int] = (0,), n_layers: int = 2, steps: int = 2, layer_ns: int = 5_000
) -> Labelled:
    """Forward, backward (twice as long, with an all-reduce per layer) and an optimizer of 1,000.

    Layer i takes `layer_ns + 100 i` forward.
    """
    run = Labelled.new(ranks)
    for step in range(steps):
        last: dict[int, int] = {}
        for layer in range(n_layers):
            run.at(Part.LAYER, Pass.FORWARD, layer, 0)
            for rank in ranks:
                last[rank] = run.kernel(rank, layer_ns + 100 * layer, step)
        for layer in reversed(range(n_layers)):
            run.at(Part.LAYER, Pass.BACKWARD, layer, 0)
            for rank in ranks:
                last[rank] = run.kernel(rank, 2 * (layer_ns + 100 * layer), step)
            if len(ranks) > 1:
                run.reduce(ranks, 700, dict(last), step)
        run.at(Part.OPTIMIZER)
        for rank in ranks:
            last[rank] = run.kernel(rank, 1_000, step)
    return run


def again(tape: Tape) -> Assembled:
    """The tape put together as it was."""
    return assemble(tape, original(tape), world_size=tape.graph.world_size or 1)


def step_ns(graph: TaskGraph) -> list[int]:
    """Lengths of the steps."""
    times: list[int] = step_times(graph, replay(graph)).per_step_ns.tolist()
    return times


def rows_of(program: Program, rows: Sequence[int] | Int64, **columns: Int64) -> Program:
    """Some rows of a program, in that order, with other columns."""
    chosen = np.array(rows, np.int64)
    made = {
        name: getattr(program, name)[chosen] for name in ("segment", "step", "layer", "micro_batch")
    }
    return replace(program, **{**made, **columns})
