"""What a step is worth: tokens and samples per second, MFU, GPU-hours, where given or known."""

from collections.abc import Iterator
from dataclasses import dataclass

from ingest.units import Nanos
from ingest.vocab import LaneKind
from replay.graph.arrays import TaskGraph
from replay.results.flops import NO_FLOPS, RecordedFlops
from whatif.models.hardware import Accelerator, find, precision_of

SECOND_NS = 1e9
HOUR_S = 3600.0
TERA = 1e12
GIGA = 1e9
LEAST_MFU = 0.0005
"""Less does not show with one decimal."""
PREDICTED = "predicted"
"""Name of the step that a scenario gives."""
LEAST_SHARE = 0.005
"""Less does not show in whole percent."""


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

    def times(self, factor: float) -> "Workload":
        """A step with so many times the samples; the number of steps stays."""
        if factor == 1:
            return self

        def scaled(amount: float | None) -> float | None:
            return None if amount is None else amount * factor

        return Workload(
            tokens_per_step=scaled(self.tokens_per_step),
            samples_per_step=scaled(self.samples_per_step),
            flops_per_step=scaled(self.flops_per_step),
            steps_total=self.steps_total,
        )


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
class Peak:
    """What the FLOPs of a step are measured against."""

    flops_per_s: float
    """Of one accelerator, dense; of several element types what does their mix in the least time."""
    dtype: str
    """`bf16`, or the shares of a mix: `75% bf16, 25% fp8`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFlops:
    """The FLOPs of a step that a utilisation is told from, and the devices that do them."""

    per_step: float
    devices: int
    by_dtype: dict[str, float]
    """Share of them by element type as recorded; empty where a person said them."""
    is_recorded: bool
    """Counted by the shapes of operators; else said by a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Of one step time; None = not given or not known."""

    tokens_per_s: float | None
    samples_per_s: float | None
    mfu_frac: float | None
    """FLOPs of a step per second over the dense matrix peak of the accelerators that do them."""
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


def step_flops(
    workload: Workload, recorded: RecordedFlops, machine: Accelerators | None
) -> StepFlops | None:
    """What a person said of the whole job; else what the shapes tell of the ranks in the files."""
    if machine is None:
        return None
    if workload.flops_per_step is not None:
        return StepFlops(
            per_step=workload.flops_per_step, devices=machine.count, by_dtype={}, is_recorded=False
        )
    if recorded.tell_utilisation and recorded.devices:
        return StepFlops(
            per_step=recorded.per_step,
            devices=recorded.devices,
            by_dtype=recorded.by_dtype,
            is_recorded=True,
        )
    return None


def are_known(workload: Workload, recorded: RecordedFlops, machine: Accelerators | None) -> bool:
    """There is a rate to tell: something was said, or shapes and catalog give a utilisation."""
    return workload.is_given or (
        peak_of(machine) is not None and step_flops(workload, recorded, machine) is not None
    )


def peak_of(machine: Accelerators | None, flops: StepFlops | None = None) -> Peak | None:
    """Dense peak of one accelerator; None where the catalog has none.

    Of recorded FLOPs by their element types. Of those that a person gave, and of types that are not
    known or that the device has no peak of, it is that of what training uses, bf16 or fp16.
    """
    device = None if machine is None else machine.device
    usual = None if device is None else device.usual_precision
    if device is None or usual is None:
        return None
    shares: dict[str, float] = {}
    for recorded, share in (flops.by_dtype if flops is not None else {}).items():
        precision = precision_of(recorded)
        known = precision if precision and device.peak(precision) else usual
        shares[known] = shares.get(known, 0.0) + share
    shares = shares or {usual: 1.0}
    peaks = {dtype: device.peak_flops_per_s(dtype) or 0.0 for dtype in shares}
    return Peak(
        flops_per_s=sum(shares.values()) / sum(shares[each] / peaks[each] for each in shares),
        dtype=_mix(shares),
    )


def _mix(shares: dict[str, float]) -> str:
    """One name, or those that show in whole percent."""
    shown = {dtype: share for dtype, share in shares.items() if share >= LEAST_SHARE}
    if len(shown) <= 1:
        return max(shares, key=shares.__getitem__)
    return ", ".join(f"{share:.0%} {dtype}" for dtype, share in shown.items())


def rates(
    workload: Workload,
    step_ns: Nanos,
    machine: Accelerators | None,
    recorded: RecordedFlops = NO_FLOPS,
) -> Rates:
    """What the work of a step makes of a mean step."""
    step_s = step_ns / SECOND_NS

    def per_second(amount: float | None) -> float | None:
        return amount / step_s if amount is not None and step_s else None

    flops = step_flops(workload, recorded, machine)
    peak = peak_of(machine, flops)
    flops_per_s = per_second(None if flops is None else flops.per_step)
    mfu_frac = None
    if flops_per_s is not None and flops is not None and peak is not None:
        mfu_frac = flops_per_s / (flops.devices * peak.flops_per_s)
    run_s = None if workload.steps_total is None else workload.steps_total * step_s
    return Rates(
        tokens_per_s=per_second(workload.tokens_per_step),
        samples_per_s=per_second(workload.samples_per_step),
        mfu_frac=mfu_frac,
        run_s=run_s,
        gpu_hours=None if run_s is None or machine is None else run_s * machine.count / HOUR_S,
    )


def rate_lines(
    workload: Workload,
    steps: tuple[tuple[str, Nanos], ...],
    machine: Accelerators | None,
    recorded: tuple[RecordedFlops, RecordedFlops] = (NO_FLOPS, NO_FLOPS),
    after: Accelerators | None = None,
) -> Iterator[str]:
    """One line per step time (its name, ns), then what they rest on; nothing when none is known.

    Args:
        workload: what was said.
        steps: the last is the predicted one, where `after` is given.
        machine: accelerators of the recorded run.
        recorded: FLOPs by shapes, of the recorded run and of the predicted one.
        after: accelerators of the predicted run, where they are others.
    """
    as_run, then = recorded
    if not are_known(workload, as_run, machine):
        return
    for at, (name, step_ns) in enumerate(steps):
        on = machine if after is None or at < len(steps) - 1 else after
        done = then if name == PREDICTED else as_run
        parts = _told(rates(workload, step_ns, on, done), on)
        yield f"{name:<11}" + (" | ".join(parts) or "-")
    yield from _rests_on(workload, machine)
    yield from _mfu_rests_on(workload, machine, as_run)
    yield from _predicted_against(workload, machine, after, then)


def _predicted_against(
    workload: Workload,
    before: Accelerators | None,
    after: Accelerators | None,
    recorded: RecordedFlops,
) -> Iterator[str]:
    """The peak of other accelerators."""
    if before is not None and after is not None and before.device == after.device:
        return
    peak = peak_of(after, step_flops(workload, recorded, after))
    if after is not None and after.device is not None and peak is not None:
        rate = f"{peak.flops_per_s / 1e12:.4g} TFLOP/s"
        yield f"predicted: against {rate} per GPU, dense {peak.dtype} of {after.device.name}"


def _told(found: Rates, machine: Accelerators | None) -> Iterator[str]:
    for amount, noun in ((found.tokens_per_s, "tokens"), (found.samples_per_s, "samples")):
        if amount is not None:
            share = f" ({_short(amount / machine.count)} per GPU)" if machine is not None else ""
            yield f"{_short(amount)} {noun}/s{share}"
    if found.mfu_frac is not None:
        yield "MFU below 0.1%" if found.mfu_frac < LEAST_MFU else f"MFU {found.mfu_frac:.1%}"
    if found.run_s is not None:
        hours = f"{found.run_s / HOUR_S:,.2f} h in all"
        yield hours if found.gpu_hours is None else f"{hours}, {found.gpu_hours:,.2f} GPU-hours"


def _short(amount: float) -> str:
    """Whole numbers from a hundred on."""
    return f"{amount:,.0f}" if amount >= 100 else f"{amount:,.2f}"  # noqa: PLR2004


def _rests_on(workload: Workload, machine: Accelerators | None) -> Iterator[str]:
    if not workload.is_given:
        return
    if machine is None:
        if workload.flops_per_step is not None or workload.steps_total is not None:
            yield "no GPU rows: neither MFU nor GPU-hours"
        return
    count = f"{machine.count} GPU" + ("" if machine.count == 1 else "s")
    yield f"of {count}" + (f", if {machine.assumed}" if machine.assumed else "")


def _mfu_rests_on(
    workload: Workload, machine: Accelerators | None, recorded: RecordedFlops
) -> Iterator[str]:
    flops = step_flops(workload, recorded, machine)
    peak = peak_of(machine, flops)
    if flops is None or machine is None:
        return
    if peak is None or machine.device is None:
        if not flops.is_recorded:
            yield "MFU is not known: the catalog has no matrix peak of this device"
        return
    against = (
        f"against {round(peak.flops_per_s / TERA, 1):,g} TFLOP/s per GPU: dense {peak.dtype} of "
        f"{machine.device.name}"
    )
    if not flops.is_recorded:
        yield f"MFU {against}"
        return
    yield (
        "MFU by operators' shapes, recomputation included "
        f"({recorded.covered_frac:.0%} of gemm, convolution, attention time): "
        f"{flops_text(flops.per_step / flops.devices)} per step {against}"
    )


def flops_text(flops: float) -> str:
    """In TFLOP, or in GFLOP where that would be little."""
    return f"{_short(flops / TERA)} TFLOP" if flops >= TERA else f"{_short(flops / GIGA)} GFLOP"


def type_shares(recorded: RecordedFlops) -> str:
    """Shares of the FLOPs by element type, those that show in whole percent."""
    return ", ".join(
        f"{share:.0%} {dtype.removeprefix('c10::')}"
        for dtype, share in recorded.by_dtype.items()
        if share >= LEAST_SHARE
    )
