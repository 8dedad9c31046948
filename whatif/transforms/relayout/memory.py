"""Whether the new layout fits the device: before and after, and what would make it fit."""

from dataclasses import replace

from ingest.errors import UserError
from replay.graph.work import KernelWork
from whatif.description.described import Kind
from whatif.models.hardware import Accelerator
from whatif.models.memory.rank import fullest, is_told
from whatif.models.memory.stages import stages_of
from whatif.models.memory.state import state_of
from whatif.models.memory.suggest import suggestions
from whatif.models.memory.told import MemoryTold, Side, side_of
from whatif.models.shape import RunShape
from whatif.models.transformer.dims import NEEDED
from whatif.transforms.base import Context
from whatif.transforms.relayout.parts import Ask

NOT_TOLD = "memory: not known: the sizes of the model are not (--describe FILE says them)"


def judged(ask: Ask, work: KernelWork, recorded: Accelerator | None) -> MemoryTold | None:
    """Memory of the recorded layout and of the one asked for; None where nothing is known.

    Where the recording has memory events, its peak is the base, and the formulas tell the
    difference; else they tell both.

    Args:
        ask: the relayout.
        work: of the recorded graph: the peak of the allocator and the memory of its devices.
        recorded: the accelerator of the recording.
    """
    try:
        before, after = (_side(shape, ask.described.kind) for shape in (ask.before, ask.target))
        anchor = _anchor(before, work)
        device = device_bytes(ask.context, work, recorded)
        accelerator = ask.context.device
        told = MemoryTold(
            device=None if accelerator is None else accelerator.name,
            before=_moved(before, anchor),
            after=_moved(after, anchor),
            device_bytes=device,
            is_recorded=anchor is not None,
            lacks=_lacks(ask),
        )
        if device is None or told.after.peak_bytes is None or told.fits:
            return told
        ways = suggestions(ask.target, device, anchor_bytes=anchor or 0.0)
        return replace(told, suggestions=tuple(ways))
    except UserError:
        return None


def _lacks(ask: Ask) -> str:
    """Why no peak can be told; empty where it can."""
    if ask.described.kind is Kind.INFERENCE:
        return "of inference the parameters alone are told, not its caches"
    told = {f"model.{name}": getattr(ask.target.model, name) for name in NEEDED}
    told |= {f"batch.{name}": getattr(ask.target.batch, name) for name in ("samples", "sequence")}
    missing = [name for name, value in told.items() if value is None]
    if not missing:
        return ""
    return f"{', '.join(missing)} were not found (--describe FILE says them)"


def fits(told: MemoryTold | None) -> tuple[str, ...]:
    """Sentences: bytes per rank before and after, whether they fit, what would make them fit."""
    return (NOT_TOLD,) if told is None else told.sentences()


def device_bytes(context: Context, work: KernelWork, recorded: Accelerator | None) -> float | None:
    """Memory of one device, as the trace lists it where it is the recorded one."""
    device = context.device
    if work.memory_bytes > 0 and device == recorded:
        return float(work.memory_bytes)
    if device is None or device.memory_bytes is None:
        return None
    return device.memory_bytes.value


def _side(shape: RunShape, kind: Kind) -> Side:
    """By formula.

    Raises:
        UserError: not even the parameters are known.
    """
    is_inference = kind is Kind.INFERENCE
    if is_told(shape) and not is_inference:
        return side_of(fullest(shape))
    states = [state_of(shape, stage) for stage in stages_of(shape)]
    largest = max(states, key=lambda state: state.total_bytes)
    return Side(
        parameters_bytes=largest.parameters_bytes,
        gradients_bytes=0.0 if is_inference else largest.gradients_bytes,
        optimizer_bytes=0.0 if is_inference else largest.optimizer_bytes,
        activations_bytes=None,
        other_bytes=None,
        peak_bytes=None,
    )


def _anchor(before: Side, work: KernelWork) -> float | None:
    """What the recorded peak has over the formula's."""
    if work.peak_bytes <= 0 or before.peak_bytes is None:
        return None
    return work.peak_bytes - before.peak_bytes


def _moved(side: Side, anchor: float | None) -> Side:
    if anchor is None or side.peak_bytes is None:
        return side
    assert side.other_bytes is not None, "known with the peak"
    return replace(
        side,
        other_bytes=side.other_bytes + anchor,
        peak_bytes=side.peak_bytes + anchor,
    )
