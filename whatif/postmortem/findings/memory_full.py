"""Device memory near its end."""

from whatif.postmortem.contract import Confidence, Finding
from whatif.postmortem.findings.saving import Told, finding
from whatif.postmortem.material import Material
from whatif.postmortem.wording import percent

KEY = "memory_full"
FULL_FRAC = 0.95
"""Of a device's memory held by the allocator: NCCL and the CUDA context need the rest."""


def rule(material: Material) -> Finding | None:
    """A risk, not a cost: a longer sequence or a fragment more ends the run."""
    work = material.findings.graph.work
    if work.peak_bytes <= 0 or work.memory_bytes <= 0:
        return None
    frac = work.peak_bytes / work.memory_bytes
    if frac < FULL_FRAC:
        return None
    told = Told(
        key=KEY,
        section="memory",
        insight=f"the allocator held {work.peak_bytes / 1e9:,.1f} of {work.memory_bytes / 1e9:,.1f}"
        f" GB ({percent(frac)}): there is no room left",
        evidence=f"peak of the memory rows of the recording over the device's memory, told from "
        f"{FULL_FRAC:.0%} on",
        query=None,
        action="PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, activation checkpointing, "
        "sharded optimizer states, a smaller micro-batch",
    )
    return finding(
        material, told, None, most=Confidence.MEDIUM, why="what else holds memory is not recorded"
    )
