"""Matrix kernels far below what the device's matrix units do."""

from whatif.postmortem.contract import Confidence, Finding
from whatif.postmortem.findings.matrix_time import matrix_frac
from whatif.postmortem.findings.saving import Told, best, finding, is_worth, twice
from whatif.postmortem.material import Material
from whatif.postmortem.wording import percent
from whatif.report.rates import accelerators, flops_text, peak_of, step_flops

LEAST_TIME_FRAC = 0.2
"""Of the step: below it a better kernel hardly shows."""
LOW_FRAC = 0.3
"""Of the peak, over all matrix kernels: large products reach 60 to 80 % of it with cuBLAS, so twice
this is in reach."""
LEVERS = ("gemm kernels", "convolution kernels", "attention kernels")
NS_PER_S = 1e9


def rule(material: Material) -> Finding | None:
    """Utilisation of matrix kernels by recorded shapes, where twice as much would be usual."""
    found = material.findings
    machine = accelerators(found.graph, has_device=found.facts.has_device)
    flops = step_flops(found.workload, found.flops, machine)
    peak = peak_of(machine, flops)
    moved = best(*(twice(material, name) for name in LEVERS))
    if flops is None or not flops.is_recorded or peak is None or not is_worth(material, moved):
        return None
    reached = found.flops.per_step * len(found.graph.steps) / found.flops.counted_ns * NS_PER_S
    frac, time_frac = reached / peak.flops_per_s, matrix_frac(material)
    if frac > LOW_FRAC or time_frac < LEAST_TIME_FRAC:
        return None
    told = Told(
        key="matrix_below_roof",
        section="kernels",
        insight=f"matrix kernels reach {percent(frac)} of the device's {peak.dtype} peak, "
        f"and they are {percent(time_frac)} of the step",
        evidence=f"{flops_text(reached)}/s over kernels with recorded shapes "
        f"({found.flops.covered_frac:.0%} of matrix time), peak {flops_text(peak.flops_per_s)}/s; "
        f"told up to {LOW_FRAC:.0%} of the peak and from {LEAST_TIME_FRAC:.0%} of the step on",
        query=material.ask.query("kernel_rates"),
        action="larger products (batch, fused QKV), sizes that are multiples of 8 to 64, "
        "channels_last for convolutions, flash attention, torch.compile(mode='max-autotune')",
    )
    return finding(
        material,
        told,
        moved,
        most=Confidence.LOW,
        why="that these kernels can be twice as fast is usual for the peak, not known of them",
    )
