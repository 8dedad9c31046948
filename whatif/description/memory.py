"""What a rank of the recorded run holds in memory: lines of `replay describe`."""

from collections.abc import Iterator

from ingest.errors import UserError
from ingest.units import format_gib
from replay.graph.work import KernelWork
from whatif.description.described import Finding, Kind, Sure
from whatif.models.memory.rank import RankMemory, fullest, is_told
from whatif.models.memory.stages import stages_of
from whatif.models.memory.state import State, state_of
from whatif.models.shape import RunShape

_DEVICE = "properties of the device"
_HELD = "most that tensors hold at once on one device (memory events)"
_STATE = "parameters of a rank, over the shards of its ZeRO stage, times bytes of an element"
_KEPT = "tensors that a layer keeps (arXiv:2205.05198), layers of a stage, micro-batches of it"
_PEAK = "state, activations, logits and what backward works with, at the fullest moment"


def memory_findings(shape: RunShape, kind: Kind, work: KernelWork) -> tuple[Finding, ...]:
    """State, activations and peak of the fullest rank, by formula; the peak as recorded too.

    Args:
        shape: of the run.
        kind: of an inference run only the parameters are told.
        work: of its graph: the recorded peak.
    """
    return (*_recorded(work), *_by_formula(shape, kind))


def _recorded(work: KernelWork) -> Iterator[Finding]:
    if work.peak_bytes > 0:
        yield _finding("memory.peak", work.peak_bytes, Sure.MEASURED, _HELD)
    if work.memory_bytes > 0:
        yield _finding("memory.device", work.memory_bytes, Sure.MEASURED, _DEVICE)


def _by_formula(shape: RunShape, kind: Kind) -> Iterator[Finding]:
    """What the sizes tell; of a model or pipeline that the formulas do not know, why not."""
    try:
        state = max(
            (state_of(shape, stage) for stage in stages_of(shape)),
            key=lambda one: one.total_bytes,
        )
        yield from _state(state, kind)
        if kind is Kind.TRAINING and is_told(shape):
            yield from _moment(fullest(shape))
    except UserError as error:
        yield Finding(what="memory", value="unknown", sure=Sure.UNKNOWN, evidence=str(error))


def _state(state: State, kind: Kind) -> Iterator[Finding]:
    parts = {"parameters": state.parameters_bytes}
    if kind is not Kind.INFERENCE:
        parts |= {"gradients": state.gradients_bytes, "optimizer": state.optimizer_bytes}
    for name, size in parts.items():
        yield _finding(f"memory.{name}", size, Sure.GUESSED, _STATE)


def _moment(memory: RankMemory) -> Iterator[Finding]:
    yield _finding("memory.activations", memory.activations_bytes, Sure.GUESSED, _KEPT)
    yield _finding("memory.peak_by_formula", memory.peak_bytes, Sure.GUESSED, _PEAK)


def _finding(what: str, size: float, sure: Sure, evidence: str) -> Finding:
    return Finding(what=what, value=format_gib(size), sure=sure, evidence=evidence)
