"""Options about degrees, batch and model as typed -> transforms."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar

from ingest.errors import UsageError, nearest
from whatif.models.shape import ContextKind, Recompute, Schedule
from whatif.transforms.batch_scale import BatchScale
from whatif.transforms.cp import ContextParallel
from whatif.transforms.ep import ExpertParallel
from whatif.transforms.experts import Capacity, Imbalance
from whatif.transforms.grad_accum import GradAccum
from whatif.transforms.layers import Layers
from whatif.transforms.micro_batches import MicroBatches
from whatif.transforms.offload import Offload
from whatif.transforms.pp import PipelineParallel
from whatif.transforms.recompute import Recomputation
from whatif.transforms.registry import Relayout
from whatif.transforms.schedule import PipelineSchedule
from whatif.transforms.seq_scale import SeqScale
from whatif.transforms.sp import SequenceParallel
from whatif.transforms.sync_every import SyncEvery
from whatif.transforms.tp import TensorParallel
from whatif.transforms.virtual_stages import VirtualStages
from whatif.transforms.zero import Zero

_E = TypeVar("_E", bound=StrEnum)


def _count(option: str, text: str) -> int:
    if not (text.isascii() and text.strip().isdecimal()):
        raise UsageError(f"`{option} {text}` is no whole number", hint=f"for example {option} 2")
    return int(text)


def _factor(option: str, text: str) -> float:
    try:
        return float(text if text.isascii() and "_" not in text else "")
    except ValueError as error:
        raise UsageError(
            f"`{option} {text}` is no number", hint=f"for example {option} 2"
        ) from error


def _one_of(option: str, text: str, enum: type[_E]) -> _E:
    names = [str(one) for one in enum]
    if text not in names:
        raise UsageError(f"`{option} {text}`: there is no such choice", hint=nearest(text, names))
    return enum(text)


def _zero(value: str) -> Relayout:
    stage, colon, shard = value.partition(":")
    return Zero(stage=_count("--zero", stage), shard=_count("--zero 3:", shard) if colon else None)


def _cp(value: str) -> Relayout:
    degree, colon, kind = value.partition(":")
    exchange = _one_of("--cp N:", kind, ContextKind) if colon else ContextKind.RING
    return ContextParallel(degree=_count("--cp", degree), exchange=exchange)


RELAYOUTS: Mapping[str, Callable[[str], Relayout]] = {
    "tp": lambda text: TensorParallel(degree=_count("--tp", text)),
    "sp": lambda _: SequenceParallel(),
    "pp": lambda text: PipelineParallel(stages=_count("--pp", text)),
    "virtual_stages": lambda text: VirtualStages(chunks=_count("--virtual-stages", text)),
    "schedule": lambda text: PipelineSchedule(name=_one_of("--schedule", text, Schedule)),
    "zero": _zero,
    "ep": lambda text: ExpertParallel(degree=_count("--ep", text)),
    "imbalance": lambda text: Imbalance(factor=_factor("--imbalance", text)),
    "capacity": lambda text: Capacity(factor=_factor("--capacity", text)),
    "cp": _cp,
    "micro_batches": lambda text: MicroBatches(count=_count("--micro-batches", text)),
    "grad_accum": lambda text: GradAccum(micro_batches=_count("--grad-accum", text)),
    "batch_scale": lambda text: BatchScale(factor=_factor("--batch-scale", text)),
    "seq_scale": lambda text: SeqScale(factor=_factor("--seq-scale", text)),
    "layers": lambda text: Layers(layers=_count("--layers", text)),
    "recompute": lambda text: Recomputation(what=_one_of("--recompute", text, Recompute)),
    "offload": lambda _: Offload(),
    "sync_every": lambda text: SyncEvery(steps=_count("--sync-every", text)),
}
"""By the name of the option's parameter."""
