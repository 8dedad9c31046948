"""What a pipeline is, and what a schedule can run."""

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

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
            hint=f"add --grad-accum {more}",
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
            f"DualPipe of {stages} stages needs an even number of micro-batches, {2 * stages} or "
            f"more: there {'is' if micro_batches == 1 else 'are'} {micro_batches:,}",
            hint=f"add --grad-accum {2 * stages}",
        )
