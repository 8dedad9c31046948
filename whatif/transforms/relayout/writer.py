"""One program: the turns of a stage, with the segments that stand for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replay.graph.arrays import Int64
from whatif.description.labels import Part
from whatif.models.pipeline.terms import Pipeline, Turn, Work
from whatif.models.shape import Schedule
from whatif.tape.segments import RECEIVE, SEND, Program
from whatif.transforms.relayout.columns import Column
from whatif.transforms.relayout.messages import Messages
from whatif.transforms.relayout.passes import Recorded
from whatif.transforms.relayout.rows import At, Message, Rows
from whatif.transforms.relayout.structure import layer_sources, micro_batch_source
from whatif.transforms.relayout.turned import Turning

OUTSIDE_LAYERS = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What all programs of a layout share."""

    pipeline: Pipeline
    per_stage: int
    """Ranks of a stage."""
    stage_layers: tuple[tuple[tuple[int, ...], ...], ...]
    """New layers by stage and chunk."""
    turns: tuple[tuple[Turn, ...], ...]
    """By stage."""
    messages: Messages | None
    domain: Int64
    """Scale-up domain of each new rank."""
    turning: Turning
    layers: int
    """Of the new model."""
    dense_layers: int
    recorded_stages: tuple[tuple[int, ...], ...]
    """Recorded layers by recorded stage."""
    stage_of_rank: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A program, and how much of it was recorded."""

    program: Program
    asked: int
    """Passes of layers that it needs."""
    missing: int
    """Of these, that no rank recorded."""


def program_of(plan: Plan, recorded: Recorded, column: Column, stage: int, number: int) -> Written:
    """The program of one stage.

    Args:
        plan: of the layout.
        recorded: passes of the pipeline's recorded ranks.
        column: these ranks.
        stage: of the new pipeline.
        number: of the pipeline.
    """
    sources = layer_sources(recorded.layers or (0,), plan.layers, dense=plan.dense_layers)
    like = _like(plan, column, {sources[layer] for layer in _layers(plan, stage)})
    writer = _Writer(plan, recorded, sources, stage, column.place, number)
    for step in recorded.steps:
        around = recorded.around.get((step, like))
        if around is not None:
            writer.around(around.entry, step)
        for turn in plan.turns[stage]:
            writer.turn(turn, step)
        if around is not None:
            writer.around(around.exit, step)
    rank = column.place + stage * plan.per_stage
    return Written(
        program=writer.rows.program(rank=rank, like=like, stage=stage),
        asked=writer.asked,
        missing=writer.missing,
    )


def _layers(plan: Plan, stage: int) -> list[int]:
    return [layer for chunk in plan.stage_layers[stage] for layer in chunk]


def _like(plan: Plan, column: Column, layers: set[int]) -> int:
    """The recorded rank that has most of the stage's layers; the first of equals."""

    def shared(rank: int) -> int:
        stage = plan.stage_of_rank.get(rank, 0)
        known = stage < len(plan.recorded_stages)
        return len(layers.intersection(plan.recorded_stages[stage])) if known else 0

    return max(column.ranks, key=shared)


class _Writer:
    """Writes the rows of one program."""

    def __init__(
        self,
        plan: Plan,
        recorded: Recorded,
        sources: Sequence[int],
        stage: int,
        place: int,
        number: int,
    ) -> None:
        self.plan, self.recorded, self.sources = plan, recorded, sources
        self.stage, self.place, self.number = stage, place, number
        self.rows = Rows()
        self.asked = self.missing = 0
        self.n_steps = recorded.steps[-1] + 1
        self.parts = [self._parts(chunk) for chunk in range(plan.pipeline.chunks_per_rank)]
        self.layers = _layers(plan, stage)
        self.borders = {
            (chunk, towards): self._border(chunk, towards)
            for chunk in range(plan.pipeline.chunks_per_rank)
            for towards in (-1, 1)
        }

    def around(self, segments: Sequence[int], step: int) -> None:
        """What lies before or after the passes."""
        self.rows.add(*self.plan.turning.forward(segments), At(step, OUTSIDE_LAYERS, -1))

    def turn(self, turn: Turn, step: int) -> None:
        """One turn with its messages."""
        if turn.work is Work.FORWARD:
            self._message(RECEIVE, turn, step, towards=-1)
            self._forward(turn, step)
            self._message(SEND, turn, step, towards=1)
            return
        if turn.work is not Work.BACKWARD_WEIGHT:
            self._message(RECEIVE, turn, step, towards=1)
        self._backward(turn, step)
        if turn.work is not Work.BACKWARD_WEIGHT:
            self._message(SEND, turn, step, towards=-1)

    def _forward(self, turn: Turn, step: int) -> None:
        for part, layer in self.parts[turn.chunk]:
            segments = self._find(part, layer, turn, step, backward=False)
            at = At(step, layer, turn.micro_batch)
            self.rows.add(*self.plan.turning.forward(segments), at)

    def _backward(self, turn: Turn, step: int) -> None:
        turning = self.plan.turning
        for part, layer in reversed(self.parts[turn.chunk]):
            at = At(step, layer, turn.micro_batch)
            again = turning.runs_again(part, layer, self.layers)
            if again and turn.work is not Work.BACKWARD_WEIGHT:
                forward = self._find(part, layer, turn, step, backward=False)
                self.rows.add(*turning.recomputed(forward), at)
            segments = self._find(part, layer, turn, step, backward=True)
            self.rows.add(*turning.backward(segments, turn.work, part), at)

    def _parts(self, chunk: int) -> list[tuple[Part, int]]:
        """Parts of the model in a chunk, in the order of forward."""
        place = self.plan.pipeline.place(self.stage, chunk)
        parts = [(Part.LAYER, layer) for layer in self.plan.stage_layers[self.stage][chunk]]
        first = [(Part.EMBEDDING, OUTSIDE_LAYERS)] if place == 0 else []
        is_last = place == self.plan.pipeline.depth - 1
        return first + parts + ([(Part.HEAD, OUTSIDE_LAYERS)] if is_last else [])

    def _find(
        self, part: Part, layer: int, turn: Turn, step: int, *, backward: bool
    ) -> Sequence[int]:
        found = self.recorded.find(
            step,
            part,
            backward=backward,
            layer=self.sources[layer] if part is Part.LAYER else OUTSIDE_LAYERS,
            micro_batch=self._source(turn),
        )
        wanted = part is Part.LAYER and backward in self.recorded.sides
        self.asked += wanted
        self.missing += wanted and not found
        return found

    def _source(self, turn: Turn) -> int:
        """The recorded micro-batch that stands for that of a turn.

        The two ways of DualPipe have half of them each, and exchange gradients after their own.
        """
        count, at = self.plan.pipeline.micro_batches, turn.micro_batch
        if self.plan.pipeline.kind is Schedule.DUALPIPE:
            count //= 2
            at %= count
        return micro_batch_source(at, count, self.recorded.micro_batches)

    def _border(self, chunk: int, towards: int) -> tuple[int, int, int] | None:
        """New rank behind a border of a chunk, number of the border, and time of a message."""
        plan, messages = self.plan, self.plan.messages
        other = plan.pipeline.neighbour(self.stage, chunk, towards)
        if other is None or messages is None:
            return None
        rank, peer = (self.place + stage * plan.per_stage for stage in (self.stage, other[0]))
        here = plan.domain[rank] == plan.domain[peer]
        border = plan.pipeline.place(self.stage, chunk) + max(towards, 0)
        return peer, border, messages.inside_ns if here else messages.across_ns

    def _message(self, kind: int, turn: Turn, step: int, *, towards: int) -> None:
        """A message from or to the chunk before or behind this one, where there is one."""
        border, messages = self.borders[turn.chunk, towards], self.plan.messages
        if border is None or messages is None:
            return
        peer, number, time_ns = border
        key = self._key(turn, step, number)
        at = At(step, OUTSIDE_LAYERS, turn.micro_batch)
        self.rows.send(Message(kind, peer, key, messages.size_bytes, time_ns), at)

    def _key(self, turn: Turn, step: int, border: int) -> int:
        """Number of a message: by pipeline, step, direction, border, micro-batch."""
        pipeline = self.plan.pipeline
        key = self.number * self.n_steps + step
        key = key * 2 + (turn.work is not Work.FORWARD)
        key = key * (pipeline.depth + 1) + border
        return key * pipeline.micro_batches + turn.micro_batch
