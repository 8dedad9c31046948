"""What would make a layout fit its device."""

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from ingest.errors import UserError
from whatif.models.memory.device import needed
from whatif.models.memory.rank import RankMemory, fullest
from whatif.models.memory.state import zero_of
from whatif.models.shape import Recompute, RunShape

DOUBLINGS = (2, 4, 8, 16, 32)
MOST_STAGES = 64
MOST_TP = 8
"""Tensor parallelism stays inside a node, which has eight accelerators as a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A change that makes the run fit."""

    flags: str
    """As typed."""
    peak_bytes: float
    """Of the fullest rank then."""


@dataclass(frozen=True, slots=True)
class _Change:
    flags: str
    shape: RunShape


def suggestions(
    shape: RunShape, device_bytes: float, *, anchor_bytes: float = 0.0
) -> list[Suggestion]:
    """The smallest change of each kind that fits; of several kinds together where none does alone.

    Args:
        shape: that does not fit.
        device_bytes: memory of the device.
        anchor_bytes: what the recorded peak has over the formula's.

    Raises:
        UserError: sizes of the model or of the batch are not known.
    """
    room = _Room(device_bytes, anchor_bytes)
    found = [best for kind in _KINDS if (best := room.first(kind(shape))) is not None]
    if found:
        return found
    eased, flags = shape, list[str]()
    for kind in _KINDS:
        last = room.first(kind(eased))
        if last is not None:
            together = " ".join((*flags, last.flags))
            return [Suggestion(flags=together, peak_bytes=last.peak_bytes)]
        least = room.least(kind(eased))
        if least is not None and fullest(least.shape).peak_bytes < fullest(eased).peak_bytes:
            eased, flags = least.shape, [*flags, least.flags]
    return []


@dataclass(frozen=True, slots=True)
class _Room:
    """A device and what is sure to lie there beside what formulas tell."""

    device_bytes: float
    anchor_bytes: float

    def first(self, changes: Iterator[_Change]) -> Suggestion | None:
        """The first that fits."""
        for change in changes:
            memory = _memory(change.shape)
            if memory is None:
                continue
            peak = memory.peak_bytes + self.anchor_bytes
            high = needed(peak, beside_bytes=memory.beside_bytes).high_bytes
            if high <= self.device_bytes:
                return Suggestion(flags=change.flags, peak_bytes=peak)
        return None

    def least(self, changes: Iterator[_Change]) -> _Change | None:
        """The one that holds least."""
        sizes = [
            (memory.peak_bytes, change)
            for change in changes
            if (memory := _memory(change.shape)) is not None
        ]
        return min(sizes, key=lambda pair: pair[0])[1] if sizes else None


def _memory(shape: RunShape) -> RankMemory | None:
    """None where the shape cannot be."""
    try:
        return fullest(shape)
    except UserError:
        return None


def _smaller_micro_batches(shape: RunShape) -> Iterator[_Change]:
    """As many samples in more micro-batches."""
    batch = shape.batch
    for cut in DOUBLINGS:
        if batch.samples is None or batch.samples / cut < 1:
            return
        count = batch.micro_batches * cut
        less = replace(batch, micro_batches=count, samples=batch.samples / cut)
        yield _Change(f"--micro-batches {count}", replace(shape, batch=less))


def _recomputed(shape: RunShape) -> Iterator[_Change]:
    if shape.options.recompute is not Recompute.FULL:
        full = replace(shape.options, recompute=Recompute.FULL, recompute_layers=None)
        yield _Change("--recompute full", replace(shape, options=full))


def _sharded(shape: RunShape) -> Iterator[_Change]:
    degrees = shape.degrees
    for stage in range(zero_of(shape) + 1, 4):
        if degrees.dp * degrees.cp > 1:
            more = replace(degrees, zero=stage, shard=None)
            yield _Change(f"--zero {stage}", replace(shape, degrees=more))


def _more_tensor(shape: RunShape) -> Iterator[_Change]:
    degrees, model = shape.degrees, shape.model
    for factor in DOUBLINGS:
        tp = degrees.tp * factor
        heads = model.kv_heads or model.heads
        if tp > MOST_TP or heads is None or heads % tp:
            return
        yield _Change(f"--tp {tp}", replace(shape, degrees=replace(degrees, tp=tp)))


def _more_stages(shape: RunShape) -> Iterator[_Change]:
    degrees, layers = shape.degrees, shape.model.layers
    for pp in range(2 * degrees.pp, MOST_STAGES + 1, degrees.pp):
        if layers is None or layers % (pp * degrees.virtual_stages):
            continue
        yield _Change(f"--pp {pp}", replace(shape, degrees=replace(degrees, pp=pp)))


def _more_replicas(shape: RunShape) -> Iterator[_Change]:
    degrees = shape.degrees
    for factor in DOUBLINGS:
        if zero_of(shape) and degrees.shard is None:
            dp = degrees.dp * factor
            yield _Change(f"--dp {dp}", replace(shape, degrees=replace(degrees, dp=dp)))


_KINDS = (
    _smaller_micro_batches,
    _recomputed,
    _sharded,
    _more_tensor,
    _more_stages,
    _more_replicas,
)
"""In the order of what they cost: time of the same devices first, then more devices."""
