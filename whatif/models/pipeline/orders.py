"""The turns of a stage in each schedule."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from whatif.models.pipeline.terms import Pipeline, Turn, Work, check
from whatif.models.shape import Schedule


def turns(pipeline: Pipeline, stage: int) -> tuple[Turn, ...]:
    """What a stage runs, in order.

    Raises:
        ScenarioError: the schedule cannot run so many micro-batches or stages.
    """
    check(pipeline)
    return tuple(_ORDERS[pipeline.kind](pipeline, stage))


def _one_stage(pipeline: Pipeline, _: int) -> Iterator[Turn]:
    for micro_batch in range(pipeline.micro_batches):
        yield Turn(Work.FORWARD, 0, micro_batch)
        yield Turn(Work.BACKWARD, 0, micro_batch)


def _gpipe(pipeline: Pipeline, _: int) -> Iterator[Turn]:
    for work in (Work.FORWARD, Work.BACKWARD):
        for micro_batch in range(pipeline.micro_batches):
            yield Turn(work, 0, micro_batch)


def _one_f_one_b(pipeline: Pipeline, stage: int) -> Iterator[Turn]:
    count = pipeline.micro_batches
    warm_up = min(pipeline.stages - 1 - stage, count)
    for micro_batch in range(count + warm_up):
        if micro_batch < count:
            yield Turn(Work.FORWARD, 0, micro_batch)
        if micro_batch >= warm_up:
            yield Turn(Work.BACKWARD, 0, micro_batch - warm_up)


def warm_up_of(pipeline: Pipeline, stage: int) -> int:
    """Forwards of an interleaved stage before its first backward, less the one right before it."""
    stages, chunks = pipeline.stages, pipeline.chunks
    ahead = 2 * (stages - 1 - stage) + (chunks - 1) * stages
    return min(ahead, pipeline.micro_batches * chunks)


def _interleaved(pipeline: Pipeline, stage: int) -> Iterator[Turn]:
    stages, chunks = pipeline.stages, pipeline.chunks
    count = pipeline.micro_batches * chunks
    warm_up = warm_up_of(pipeline, stage)

    def place(number: int) -> tuple[int, int]:
        chunk = number // stages % chunks
        return chunk, number // (stages * chunks) * stages + number % stages

    for number in range(count + warm_up):
        if number < count:
            yield Turn(Work.FORWARD, *place(number))
        if number >= warm_up:
            chunk, micro_batch = place(number - warm_up)
            yield Turn(Work.BACKWARD, chunks - 1 - chunk, micro_batch)


def _zero_bubble(pipeline: Pipeline, stage: int) -> Iterator[Turn]:
    """As 1F1B, with the weights' part later by as many micro-batches as the stage's number.

    So every stage holds as much as the first.
    """
    weights = 0
    inputs = 0
    for turn in _one_f_one_b(pipeline, stage):
        if turn.work is Work.FORWARD:
            yield turn
            continue
        yield Turn(Work.BACKWARD_INPUT, 0, turn.micro_batch)
        inputs += 1
        if inputs > stage:
            yield Turn(Work.BACKWARD_WEIGHT, 0, weights)
            weights += 1
    for micro_batch in range(weights, pipeline.micro_batches):
        yield Turn(Work.BACKWARD_WEIGHT, 0, micro_batch)


class _BothWays:
    """Writes the turns of a DualPipe rank; way 0 is the one that begins nearer to it."""

    def __init__(self, pipeline: Pipeline, stage: int) -> None:
        self.half = pipeline.micro_batches // 2
        self.mirrored = stage >= pipeline.stages // 2
        self.turns: list[Turn] = []
        self.waiting: list[Turn] = []
        self.done = {(work, way): 0 for work in Work for way in (0, 1)}

    def forward(self, way: int) -> None:
        self.turns.append(self._next(Work.FORWARD, way))

    def pair(self, forward: int) -> None:
        self.forward(forward)
        turn = self._next(Work.BACKWARD, 1 - forward)
        self.turns.append(replace(turn, beside=True))

    def backward(self, way: int, *, split: bool = False) -> None:
        turn = self._next(Work.BACKWARD, way)
        if split:
            weight = Turn(Work.BACKWARD_WEIGHT, turn.chunk, turn.micro_batch)
            self.waiting.append(weight)
            turn = Turn(Work.BACKWARD_INPUT, turn.chunk, turn.micro_batch)
        self.turns.append(turn)

    def weight(self) -> None:
        self.turns.append(self.waiting.pop(0))

    def _next(self, work: Work, way: int) -> Turn:
        number = self.done[work, way]
        self.done[work, way] += 1
        chunk = way ^ self.mirrored
        return Turn(work, chunk, number + chunk * self.half)


def _dualpipe(pipeline: Pipeline, stage: int) -> Iterator[Turn]:
    """The eight stretches of the paper's figure 5 (as deepseek-ai/DualPipe runs them)."""
    stages = pipeline.stages
    from_end = min(stage, stages - 1 - stage)
    from_middle = stages // 2 - 1 - from_end
    write = _BothWays(pipeline, stage)
    for _ in range(2 * from_middle):
        write.forward(0)
    for _ in range(from_end + 1):
        write.forward(0)
        write.forward(1)
    for _ in range(from_middle):
        write.backward(1, split=True)
        write.weight()
        write.forward(1)
    for _ in range(write.half - stages + from_end + 1):
        write.pair(0)
        write.pair(1)
    for _ in range(from_middle):
        write.backward(1)
        write.pair(1)
    _last_backwards(write, from_end + 1)
    for _ in range(from_middle):
        write.weight()
        write.backward(0, split=True)
    while write.waiting:
        write.weight()
    yield from write.turns


def _last_backwards(write: _BothWays, count: int) -> None:
    """Backwards of both ways in turn, the second half of them split."""
    for number in range(2 * count):
        write.backward(1 - number % 2, split=number >= count)


_ORDERS: Mapping[Schedule, Callable[[Pipeline, int], Iterator[Turn]]] = MappingProxyType(
    {
        Schedule.NONE: _one_stage,
        Schedule.GPIPE: _gpipe,
        Schedule.ONE_F_ONE_B: _one_f_one_b,
        Schedule.INTERLEAVED: _interleaved,
        Schedule.ZERO_BUBBLE: _zero_bubble,
        Schedule.DUALPIPE: _dualpipe,
    }
)
