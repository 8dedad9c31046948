"""Large collectives inside a node far below what its links carry."""

from collections.abc import Mapping
from typing import Any

from whatif.models.hardware import Accelerator
from whatif.postmortem.contract import Confidence, Finding
from whatif.postmortem.findings.saving import Told, asked, finding, is_worth
from whatif.postmortem.material import Material
from whatif.postmortem.untold import is_untold
from whatif.postmortem.wording import percent
from whatif.report.rates import accelerators
from whatif.transforms.nvlink import Nvlink

LARGE_MB = 64.0
"""From here bandwidth decides, not latency: nccl-tests reach 90 % of their best."""
REACHED_FRAC = 0.75
"""Of the links' one-way rate that nccl-tests reach with large messages on A100 and H100."""
LOW_FRAC = 0.5
"""Of that: below it protocol, topology or a broken link is worth a look."""
REDUCING = ("all_reduce", "all_gather", "reduce_scatter")
"""Kinds whose bus bandwidth is that of a link."""
LEAST_EXPOSED_FRAC = 0.02
"""Of the step: twice what two runs of one job differ by."""


def rule(material: Material) -> Finding | None:
    """The slowest large collective against the catalog's link, where communication is exposed."""
    parts, step_ns = material.answer.breakdown.baseline, material.levers.step_ns
    exposed_ns = parts.exposed_comm_ns - parts.exposed_wait_ns
    found = material.findings
    machine = accelerators(found.graph, has_device=found.facts.has_device)
    roof = _roof(None if machine is None else machine.device)
    if exposed_ns < LEAST_EXPOSED_FRAC * step_ns or roof is None or is_untold(material):
        return None
    rows = material.ask("comm_by_size")
    slow = [row for row in rows.dicts() if _is_slow(material, row, roof)]
    if not slow:
        return None
    worst = max(slow, key=lambda row: row["operations"] * row["transfer_p50_ns"])
    reached = worst["busbw_p50_bytes_per_s"] / 1e9
    factor = REACHED_FRAC * roof / reached
    moved = asked(material, "links as fast as elsewhere", Nvlink(rate=f"x{factor:.3g}"))
    if not is_worth(material, moved):
        return None
    told = Told(
        key="slow_links",
        section="communication",
        insight=f"{worst['kind']} of {worst['bytes'] / 1e6:,.0f} MB runs at "
        f"{reached:,.0f} GB/s, {percent(reached / roof)} of the link",
        evidence=f"bus bandwidth of {worst['operations']} calls over {worst['members']} ranks of"
        f" one node, without waiting; link {roof:,.0f} GB/s one way by the catalog; told below "
        f"{LOW_FRAC:.0%} of what nccl-tests reach ({REACHED_FRAC:.0%}) from {LARGE_MB:.0f} MB on",
        query=rows.query,
        action="nccl-tests on these nodes; NCCL_DEBUG=INFO for the chosen topology, algorithm and "
        "channels; nvidia-smi nvlink -s; kernels beside the transfer that take its SMs",
    )
    return finding(
        material,
        told,
        moved,
        most=Confidence.LOW,
        why="the link's usual bandwidth is of other machines; this one was not measured alone",
    )


def _roof(device: Accelerator | None) -> float | None:
    """One-way GB/s of the links between the accelerators of a node."""
    rate = None if device is None else device.scale_up_one_way_bytes_per_s
    return None if rate is None else rate / 1e9


def _is_slow(material: Material, row: Mapping[str, Any], roof_gbps: float) -> bool:
    inside = max(info.devices_seen for info in material.findings.graph.ranks)
    return (
        row["kind"] in REDUCING
        and (row["bytes"] or 0) >= LARGE_MB * 1e6
        and 1 < (row["members"] or 0) <= inside
        and 0 < (row["busbw_p50_bytes_per_s"] or 0) < LOW_FRAC * REACHED_FRAC * roof_gbps * 1e9
    )
