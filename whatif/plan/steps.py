"""From the recorded layout to another: the what-ifs that make it, which people can type."""

from collections.abc import Iterator

from whatif.models.shape import RunShape
from whatif.transforms.batch_scale import BatchScale
from whatif.transforms.cp import ContextParallel
from whatif.transforms.ep import ExpertParallel
from whatif.transforms.gpu import Gpu
from whatif.transforms.grad_accum import GradAccum
from whatif.transforms.pp import PipelineParallel
from whatif.transforms.recompute import Recomputation
from whatif.transforms.registry import Transform
from whatif.transforms.replicas import Replicas
from whatif.transforms.schedule import PipelineSchedule
from whatif.transforms.sp import SequenceParallel
from whatif.transforms.tp import TensorParallel
from whatif.transforms.virtual_stages import VirtualStages
from whatif.transforms.zero import Zero


def what_ifs(before: RunShape, after: RunShape, gpu: str | None = None) -> tuple[Transform, ...]:
    """The stack that makes one layout of the other; what stays is left out."""
    machine: tuple[Transform, ...] = () if gpu is None else (Gpu(name=gpu),)
    return (*machine, *_degrees(before, after), *_steps(before, after))


def _degrees(before: RunShape, after: RunShape) -> Iterator[Transform]:
    was, now = before.degrees, after.degrees
    if now.tp != was.tp:
        yield TensorParallel(degree=now.tp)
    if now.sp and not was.sp:
        yield SequenceParallel()
    if now.cp != was.cp:
        yield ContextParallel(degree=now.cp, exchange=now.cp_kind)
    if now.pp != was.pp:
        yield PipelineParallel(stages=now.pp)
    if now.virtual_stages != was.virtual_stages:
        yield VirtualStages(chunks=now.virtual_stages)
    if after.options.schedule != before.options.schedule and now.pp > 1:
        yield PipelineSchedule(name=after.options.schedule)
    if now.dp != was.dp:
        yield Replicas(replicas=now.dp)
    if (now.zero, now.shard) != (was.zero, was.shard):
        yield Zero(stage=now.zero, shard=now.shard)
    if now.ep != was.ep:
        yield ExpertParallel(degree=now.ep)


def _steps(before: RunShape, after: RunShape) -> Iterator[Transform]:
    was, now = before.batch, after.batch
    if now.micro_batches != was.micro_batches:
        yield GradAccum(micro_batches=now.micro_batches)
    factor = (now.samples or 1.0) / (was.samples or 1.0)
    if factor != 1:
        yield BatchScale(factor=factor)
    if after.options.recompute is not before.options.recompute:
        yield Recomputation(what=after.options.recompute)
