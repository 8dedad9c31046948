"""A small training run of equal layers, with the labels that it has."""

from dataclasses import dataclass, field

import numpy as np

from tests.builders import GraphBuilder
from whatif.description.described import Described, Kind
from whatif.description.labels import Labels, Part, Pass, Place
from whatif.models.shape import Batch, Degrees, ModelShape, RunShape
from whatif.parallelism import layout_of
from whatif.tape.segments import Segments, Tape
from whatif.transforms.base import Context
from whatif.transforms.machine import known
from whatif.transforms.relayout.parts import Ask

HOST_NS = 100
FORWARD_NS = 1_000_000
BACKWARD_NS = 2_000_000
HEAD_NS = 300_000
OPTIMIZER_NS = 800_000
Where = tuple[Part, Pass, int, int]


@dataclass(kw_only=True)
class Layered:
    """Ranks that each run entry, forwards, backwards and optimizer: a call and a kernel of each."""

    layers: int = 4
    micro_batches: int = 1
    ranks: int = 1
    steps: int = 1
    reduces: bool = False
    """Gradients of each layer are reduced in the last backward."""
    places: tuple[Place, ...] = (Place.QKV,)
    """Kernels of a pass of a layer, of equal length."""
    head_ns: int = HEAD_NS
    builder: GraphBuilder = field(init=False)
    where: list[tuple[Where, Place]] = field(init=False)
    segment: list[int] = field(init=False)
    rows: list[tuple[int, int, Where]] = field(init=False)

    @property
    def shape(self) -> RunShape:
        """What the run is."""
        return RunShape(
            model=ModelShape(layers=self.layers, hidden=1024),
            degrees=Degrees(dp=self.ranks),
            batch=Batch(micro_batches=self.micro_batches, samples=1, sequence=1024),
        )

    def tape(self) -> Tape:
        """The run, cut by its labels."""
        self.builder = GraphBuilder(ranks=range(self.ranks))
        self.where, self.segment, self.rows = [], [], []
        for step in range(self.steps):
            for where in self._order():
                self._segments(step, where)
        graph = self.builder.build()
        rank, step, where = zip(*self.rows, strict=True)
        part, direction, layer, micro_batch = np.array(where).T
        return Tape(
            graph=graph,
            labels=self._labels(),
            segments=Segments(
                rank=np.array(rank, np.int32),
                step=np.array(step, np.int32),
                part=part.astype(np.int8),
                direction=direction.astype(np.int8),
                layer=layer.astype(np.int32),
                micro_batch=micro_batch.astype(np.int32),
            ),
            segment=np.array(self.segment, np.int32),
        )

    def _order(self) -> list[Where]:
        order: list[Where] = [(Part.ENTRY, Pass.NONE, -1, -1)]
        for micro in range(self.micro_batches):
            layers = range(self.layers)
            order += [(Part.EMBEDDING, Pass.FORWARD, -1, micro)]
            order += [(Part.LAYER, Pass.FORWARD, layer, micro) for layer in layers]
            order += [(Part.HEAD, Pass.FORWARD, -1, micro), (Part.HEAD, Pass.BACKWARD, -1, micro)]
            order += [(Part.LAYER, Pass.BACKWARD, layer, micro) for layer in reversed(layers)]
        return [*order, (Part.OPTIMIZER, Pass.NONE, -1, -1)]

    def _segments(self, step: int, where: Where) -> None:
        """One segment on every rank; gradients meet across them."""
        part, direction, _, micro = where
        callers, kernels = {}, {}
        for rank in range(self.ranks):
            self.rows.append((rank, step, where))
            number = len(self.rows) - 1
            for place in self.places if part is Part.LAYER else (Place.UNKNOWN,):
                name = f"{part.name.lower()} {direction.name.lower()}"
                callers[rank] = self.builder.call(rank, "cudaLaunchKernel", HOST_NS, step=step)
                length_ns = self._length_ns(where) // (
                    len(self.places) if part is Part.LAYER else 1
                )
                kernels[rank] = self.builder.kernel(
                    rank, name, length_ns, caller=callers[rank], step=step
                )
                self._mark(where, place, number)
        last = micro == self.micro_batches - 1
        if self.reduces and part is Part.LAYER and direction is Pass.BACKWARD and last:
            self.builder.collective(
                500_000,
                callers=callers,
                after=kernels,
                size_bytes=1 << 22,
                step=step,
                group=range(self.ranks),
            )
            number = len(self.rows) - self.ranks
            for rank in range(self.ranks):
                self.where.append((where, Place.COMMUNICATION))
                self.where.append((where, Place.COMMUNICATION))
                self.segment += [number + rank] * 2
            self.where.append((where, Place.COMMUNICATION))
            self.segment.append(number)

    def _length_ns(self, where: Where) -> int:
        part, direction, *_ = where
        if part is Part.LAYER:
            return FORWARD_NS if direction is Pass.FORWARD else BACKWARD_NS
        return {Part.HEAD: self.head_ns, Part.OPTIMIZER: OPTIMIZER_NS}.get(part, 0)

    def _mark(self, where: Where, place: Place, number: int) -> None:
        self.where += [(where, Place.UNKNOWN), (where, place)]
        self.segment += [number] * 2

    def _labels(self) -> Labels:
        part, direction, layer, micro = np.array([where for where, _ in self.where]).T
        return Labels(
            part=part.astype(np.int8),
            direction=direction.astype(np.int8),
            layer=layer.astype(np.int32),
            micro_batch=micro.astype(np.int32),
            place=np.array([place for _, place in self.where], np.int8),
        )


def described(tape: Tape, shape: RunShape, stages: dict[int, int] | None = None) -> Described:
    """The run as it was made."""
    layers = tuple(range(shape.model.layers or 0))
    return Described(
        kind=Kind.TRAINING,
        shape=shape,
        layout=layout_of(tape.graph),
        labels=tape.labels,
        stage_of_rank=stages or {info.rank: 0 for info in tape.graph.ranks},
        stage_layers=(layers,),
    )


def ask(tape: Tape, before: RunShape, target: RunShape) -> Ask:
    """One relayout of it."""
    graph = tape.graph
    return Ask(described=described(tape, before), target=target, context=known(graph, Context()))
