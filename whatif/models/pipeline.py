"""Pipelines: which micro-batch a stage runs when, how long it stands idle, what it holds.

Orders: GPipe (arXiv:1811.06965), 1F1B and interleaved 1F1B (Megatron-LM, arXiv:2104.04473), ZB-H1
(arXiv:2401.10241), DualPipe (arXiv:2412.19437). Closed forms of the bubble are those of the papers,
of equal stages and messages that take no time.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from itertools import accumulate, pairwise
from types import MappingProxyType

from ingest.errors import ScenarioError
from whatif.models.shape import RunShape, Schedule


class Work(IntEnum):
    """What a stage does with one micro-batch in one turn."""

    FORWARD = 0
    BACKWARD = 1
    """Both gradients."""
    BACKWARD_INPUT = 2
    BACKWARD_WEIGHT = 3


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a stage."""

    work: Work
    chunk: int
    """Of the rank, from 0 in the order of the model; in DualPipe 0 is the way from the first rank
    to the last, 1 the way back."""
    micro_batch: int
    beside: bool = False
    """Together with the turn before it: one computes while the other's messages are on the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTimes:
    """Time of one micro-batch on one rank: all of its chunks together; any unit."""

    forward: float
    backward_input: float
    backward_weight: float
    pair: float | None = None
    """A forward and the backward of another micro-batch side by side; None: as long as one
    after another."""

    @property
    def backward(self) -> float:
        """Both gradients."""
        return self.backward_input + self.backward_weight

    @property
    def whole(self) -> float:
        """Forward and backward."""
        return self.forward + self.backward


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Stages, chunks and micro-batches of one replica."""

    schedule: Schedule
    stages: int
    micro_batches: int
    chunks: int = 1
    """Of layers per rank: virtual stages; of DualPipe always two, whatever is said here."""

    @property
    def kind(self) -> Schedule:
        """The schedule in force: one stage needs none, and several have one."""
        return effective(self.schedule, stages=self.stages, chunks=self.chunks)

    @property
    def chunks_per_rank(self) -> int:
        """Chunks of layers that a rank holds; those of DualPipe lie on two ranks each."""
        if self.kind is Schedule.DUALPIPE:
            return 2
        return self.chunks if self.kind is Schedule.INTERLEAVED else 1

    @property
    def depth(self) -> int:
        """Chunks of the model, one behind another."""
        return self.stages * (1 if self.kind is Schedule.DUALPIPE else self.chunks_per_rank)

    def place(self, stage: int, chunk: int) -> int:
        """Which chunk of the model a rank's chunk is, from 0 to `depth`."""
        if self.kind is Schedule.DUALPIPE:
            return stage if chunk == 0 else self.stages - 1 - stage
        return chunk * self.stages + stage

    def neighbour(self, stage: int, chunk: int, towards: int) -> tuple[int, int] | None:
        """Stage and chunk of the model's chunk before (-1) or behind (1) it; None at an end."""
        place = self.place(stage, chunk) + towards
        if not 0 <= place < self.depth:
            return None
        if self.kind is Schedule.DUALPIPE:
            return (place, 0) if chunk == 0 else (self.stages - 1 - place, 1)
        return place % self.stages, place // self.stages


def pipeline_of(shape: RunShape) -> Pipeline:
    """Stages, chunks and micro-batches of one replica of a run."""
    return Pipeline(
        schedule=shape.options.schedule,
        stages=shape.degrees.pp,
        micro_batches=shape.batch.micro_batches,
        chunks=shape.degrees.virtual_stages,
    )


@lru_cache
def effective(schedule: Schedule, *, stages: int, chunks: int = 1) -> Schedule:
    """The schedule that a run with so many stages has: none of one stage, else 1F1B by habit."""
    if stages == 1:
        return Schedule.NONE
    if schedule in (Schedule.NONE, Schedule.ONE_F_ONE_B) and chunks > 1:
        return Schedule.INTERLEAVED
    if schedule is Schedule.NONE or (schedule is Schedule.INTERLEAVED and chunks == 1):
        return Schedule.ONE_F_ONE_B
    return schedule


def check(pipeline: Pipeline) -> None:
    """Refuse what the schedule cannot run.

    Raises:
        ScenarioError: micro-batches or stages that do not divide as the schedule needs.
    """
    stages, micro_batches = pipeline.stages, pipeline.micro_batches
    if pipeline.kind is Schedule.INTERLEAVED and micro_batches % stages:
        more = -(-micro_batches // stages) * stages
        raise ScenarioError(
            f"{micro_batches:,} micro-batches do not divide by {stages} stages, as the interleaved "
            "schedule needs",
            hint=f"add --grad-accum {more} or --micro-batches {more}",
        )
    if pipeline.kind is not Schedule.DUALPIPE:
        return
    if stages % 2:
        raise ScenarioError(
            f"DualPipe over {stages} stages: it pairs the first with the last",
            hint=f"--pp {stages + 1}, or --schedule zero_bubble",
        )
    if micro_batches % 2 or micro_batches < 2 * stages:
        raise ScenarioError(
            f"DualPipe of {stages} stages with {micro_batches:,} micro-batches: it needs an even "
            f"number, {2 * stages} or more",
            hint=f"add --grad-accum {2 * stages} or --micro-batches {2 * stages}",
        )


def turns(pipeline: Pipeline, stage: int) -> tuple[Turn, ...]:
    """What a stage runs, in order.

    Raises:
        ScenarioError: the schedule cannot run so many micro-batches or stages.
    """
    check(pipeline)
    return tuple(_ORDERS[pipeline.kind](pipeline, stage))


def bubble(pipeline: Pipeline, times: PassTimes) -> float:
    """Time that each rank stands idle in a step of equal stages, in the unit of `times`.

    GPipe and 1F1B (p-1)(F+B), interleaved that over the chunks, ZB-H1 (p-1)(F+B-2W), DualPipe
    (p/2-1)(FB+B-3W), where B is both gradients and FB `times.pair`, which ends for both at once.
    Weights' gradients fill gaps and no more: where W is longer than the inputs' gradient, the time
    remains in which the last stage waits for its first input. Of ZB-H1 from as many micro-batches
    as stages.
    """
    stages = pipeline.stages
    match pipeline.kind:
        case Schedule.NONE:
            return 0.0
        case Schedule.GPIPE | Schedule.ONE_F_ONE_B:
            return (stages - 1) * times.whole
        case Schedule.INTERLEAVED:
            return (stages - 1) * times.whole / pipeline.chunks
        case Schedule.ZERO_BUBBLE:
            rest = times.backward_input - times.backward_weight
            return (stages - 1) * (times.forward + max(rest, 0.0))
        case Schedule.DUALPIPE:
            pair = times.whole if times.pair is None else times.pair
            gap = pair + times.backward - 3 * times.backward_weight
            return (stages / 2 - 1) * max(gap, 2 * times.forward if times.pair is None else 0.0)


def bubble_frac(pipeline: Pipeline, times: PassTimes) -> float:
    """Idle time over the time of the work: (p-1)/m of 1F1B, (p-1)/(v m) interleaved."""
    return bubble(pipeline, times) / (pipeline.micro_batches * times.whole)


def held(order: tuple[Turn, ...]) -> int:
    """Most activations of a chunk that the rank holds at once, in micro-batches of a chunk.

    A micro-batch is held from its forward to the end of its backward; where that is split, what
    the weights' part needs is counted whole.
    """
    change = (1 if turn.work is Work.FORWARD else -1 if turn.work in _ENDS else 0 for turn in order)
    return max(accumulate(change), default=0)


_ENDS = (Work.BACKWARD, Work.BACKWARD_WEIGHT)


def held_of_stage(pipeline: Pipeline, stage: int) -> int:
    """As `held`, of a stage, without its order where a closed form is at hand."""
    stages, micro_batches = pipeline.stages, pipeline.micro_batches
    match pipeline.kind:
        case Schedule.NONE:
            return 1
        case Schedule.GPIPE:
            return micro_batches
        case Schedule.ONE_F_ONE_B:
            return min(stages - stage, micro_batches)
        case Schedule.ZERO_BUBBLE:
            return min(stages, micro_batches)
        case Schedule.INTERLEAVED:
            return _warm_up(pipeline, stage) + (
                _warm_up(pipeline, stage) < micro_batches * pipeline.chunks
            )
        case Schedule.DUALPIPE:
            return held(turns(pipeline, stage))


def partition(layers: int, pipeline: Pipeline) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Layers of each chunk of each stage.

    Even; what is left over goes one by one to the chunks in the middle, since the first has the
    embedding and the last the head.

    Raises:
        ScenarioError: fewer layers than chunks.
    """
    depth = pipeline.depth
    if layers < depth:
        raise ScenarioError(
            f"{layers} layers over {depth} stages and chunks: some would have none",
            hint=f"at most {layers} in all (--pp x --virtual-stages)",
        )
    each, left = divmod(layers, depth)
    first = (depth - left + 1) // 2
    sizes = [each + (first <= place < first + left) for place in range(depth)]
    ends = [0, *accumulate(sizes)]
    chunks = [tuple(range(begin, end)) for begin, end in pairwise(ends)]
    return tuple(
        tuple(chunks[pipeline.place(stage, chunk)] for chunk in range(pipeline.chunks_per_rank))
        for stage in range(pipeline.stages)
    )


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


def _warm_up(pipeline: Pipeline, stage: int) -> int:
    """Forwards of an interleaved stage before its first backward, less the one right before it."""
    stages, chunks = pipeline.stages, pipeline.chunks
    ahead = 2 * (stages - 1 - stage) + (chunks - 1) * stages
    return min(ahead, pipeline.micro_batches * chunks)


def _interleaved(pipeline: Pipeline, stage: int) -> Iterator[Turn]:
    stages, chunks = pipeline.stages, pipeline.chunks
    count = pipeline.micro_batches * chunks
    warm_up = _warm_up(pipeline, stage)

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
