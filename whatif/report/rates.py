"""What a step is worth: tokens and samples per second, MFU, GPU-hours, where they are given."""

from collections.abc import Iterator
from dataclasses import dataclass

from ingest.units import Nanos
from ingest.vocab import LaneKind
from replay.graph.arrays import TaskGraph
from whatif.models.hardware import Accelerator, find

SECOND_NS = 1e9
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What a person says that a step of the whole job does; no trace records it."""

    tokens_per_step: float | None = None
    samples_per_step: float | None = None
    flops_per_step: float | None = None
    """Of the model, forward and backward, over all accelerators."""
    steps_total: int | None = None

    @property
    def is_given(self) -> bool:
        """Anything was said."""
        return self != NOTHING_SAID


NOTHING_SAID = Workload()


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerators:
    """How many run the job, and what one could do."""

    count: int
    assumed: str
    """What the count rests on where the trace does not record it; empty where it does."""
    device: Accelerator | None
    """None where the catalog does not know it or the ranks differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Of one step time; None = not given or not known."""

    tokens_per_s: float | None
    samples_per_s: float | None
    mfu_frac: float | None
    """FLOPs of the model per second over the dense matrix peak of all accelerators."""
    run_s: float | None
    """Time of all steps."""
    gpu_hours: float | None


def accelerators(graph: TaskGraph, *, has_device: bool) -> Accelerators | None:
    """Those of the whole job: devices seen per rank x ranks of the job; None without device."""
    devices = {(lane.rank, lane.device) for lane in graph.lanes if lane.kind == LaneKind.STREAM}
    if not has_device or not devices:
        return None
    per_rank = len(devices) / len({rank for rank, _ in devices})
    ranks = graph.world_size or len(graph.ranks)
    names = {info.gpu for info in graph.ranks}
    (name, *others) = names
    known = find(name) if name is not None and not others else None
    assumed = "" if graph.world_size else "the job has no other ranks than those of these files"
    return Accelerators(count=round(per_rank * ranks), assumed=assumed, device=known)


def rates(workload: Workload, step_ns: Nanos, machine: Accelerators | None) -> Rates:
    """What the workload makes of a mean step."""
    step_s = step_ns / SECOND_NS

    def per_second(amount: float | None) -> float | None:
        return amount / step_s if amount is not None and step_s else None

    peak = machine.device.matmul if machine is not None and machine.device is not None else None
    flops_per_s = per_second(workload.flops_per_step)
    mfu_frac = None
    if flops_per_s is not None and machine is not None and peak is not None:
        mfu_frac = flops_per_s / (machine.count * peak.flops_per_s.value)
    run_s = None if workload.steps_total is None else workload.steps_total * step_s
    return Rates(
        tokens_per_s=per_second(workload.tokens_per_step),
        samples_per_s=per_second(workload.samples_per_step),
        mfu_frac=mfu_frac,
        run_s=run_s,
        gpu_hours=None if run_s is None or machine is None else run_s * machine.count / HOUR_S,
    )


def rate_lines(
    workload: Workload, steps: tuple[tuple[str, Nanos], ...], machine: Accelerators | None
) -> Iterator[str]:
    """One line per step time (its name, ns), then what they rest on; nothing when none is given."""
    if not workload.is_given:
        return
    for name, step_ns in steps:
        parts = _told(rates(workload, step_ns, machine), machine)
        yield f"{name:<11}" + (" | ".join(parts) or "-")
    yield from _rests_on(workload, machine)


def _told(found: Rates, machine: Accelerators | None) -> Iterator[str]:
    for amount, noun in ((found.tokens_per_s, "tokens"), (found.samples_per_s, "samples")):
        if amount is not None:
            share = f" ({_short(amount / machine.count)} per GPU)" if machine is not None else ""
            yield f"{_short(amount)} {noun}/s{share}"
    if found.mfu_frac is not None:
        yield f"MFU {found.mfu_frac:.1%}"
    if found.run_s is not None:
        hours = f"{found.run_s / HOUR_S:,.2f} h in all"
        yield hours if found.gpu_hours is None else f"{hours}, {found.gpu_hours:,.2f} GPU-hours"


def _short(amount: float) -> str:
    """Whole numbers from a hundred on."""
    return f"{amount:,.0f}" if amount >= 100 else f"{amount:,.2f}"  # noqa: PLR2004


def _rests_on(workload: Workload, machine: Accelerators | None) -> Iterator[str]:
    if machine is None:
        if workload.flops_per_step is not None or workload.steps_total is not None:
            yield "no GPU rows: neither MFU nor GPU-hours"
        return
    count = f"{machine.count} GPU" + ("" if machine.count == 1 else "s")
    yield f"of {count}" + (f", if {machine.assumed}" if machine.assumed else "")
    if workload.flops_per_step is None:
        return
    if machine.device is None or machine.device.matmul is None:
        yield "MFU is not known: the catalog has no matrix peak of this device"
        return
    peak = machine.device.matmul
    yield (
        f"MFU against {peak.flops_per_s.value / 1e12:,g} TFLOP/s per GPU: dense {peak.dtype} of "
        f"{machine.device.name}"
    )
