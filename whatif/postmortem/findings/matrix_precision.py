"""Matrix products in single precision on a device whose matrix units take bf16."""

from whatif.models.hardware import Accelerator, Precision, precision_of
from whatif.postmortem.contract import Confidence, Finding
from whatif.postmortem.findings.matrix_time import matrix_frac
from whatif.postmortem.findings.saving import Told, asked, finding, is_worth
from whatif.postmortem.material import Material
from whatif.postmortem.wording import percent
from whatif.report.rates import accelerators
from whatif.transforms import precision as narrower

LEAST_FRAC = 0.2
"""Of the recorded FLOPs: less is what recipes leave in single precision on purpose (norms, losses,
routers)."""
LEAST_TIME_FRAC = 0.1
"""Of the step in matrix kernels: a type twice as fast saves half of it."""
LEAST_GAIN = 2.0
"""Peak of bf16 over that of single precision, for the change to be worth its risk."""


def rule(material: Material) -> Finding | None:
    """Single precision where bf16 would do, by a replay of `--precision bf16`."""
    found = material.findings
    single = sum(
        share
        for dtype, share in found.flops.by_dtype.items()
        if precision_of(dtype) is Precision.FP32
    )
    time_frac = matrix_frac(material)
    machine = accelerators(found.graph, has_device=found.facts.has_device)
    device = None if machine is None else machine.device
    if single < LEAST_FRAC or time_frac < LEAST_TIME_FRAC or device is None or not _gains(device):
        return None
    moved = asked(material, "matrix products in bf16", narrower.Precision(dtype="bf16"))
    if not is_worth(material, moved):
        return None
    told = Told(
        key="matrix_precision",
        section="kernels",
        insight=f"{percent(single)} of the FLOPs of matrix products are in single precision, and "
        f"these kernels are {percent(time_frac)} of the step",
        evidence=f"by the shapes and types of operators ({found.flops.covered_frac:.0%} of matrix "
        f"time covered): float {single:.1%} (told from {LEAST_FRAC:.0%} on), matrix kernels "
        f"{time_frac:.1%} of the step (from {LEAST_TIME_FRAC:.0%}); {device.name} does bf16 at "
        "twice the rate or more",
        query=material.ask.query("kernel_rates"),
        action="torch.autocast(dtype=torch.bfloat16), or torch.set_float32_matmul_precision('high')"
        " for TF32; check the loss curve",
    )
    return finding(
        material,
        told,
        moved,
        most=Confidence.MEDIUM,
        why="what bf16 kernels of these shapes reach is a model's answer",
    )


def _gains(device: Accelerator) -> bool:
    single, half = device.peak_flops_per_s("fp32"), device.peak_flops_per_s("bf16")
    return bool(single and half and half >= LEAST_GAIN * single)
