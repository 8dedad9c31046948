"""Copies between host and device that no compute hides."""

from ingest.units import format_ms
from whatif.postmortem.contract import Finding
from whatif.postmortem.findings.saving import Told, finding, is_worth, twice
from whatif.postmortem.material import Material, Rows
from whatif.postmortem.wording import percent

LEVER = "copies"
LEAST_FRAC = 0.02
"""Of the step: copies twice as fast save half of it, what two runs of one job differ by."""


def rule(material: Material) -> Finding | None:
    """Exposed copies, and which of them are to or from pageable memory."""
    exposed_ns = material.answer.breakdown.baseline.exposed_memcpy_ns
    step_ns, moved = material.levers.step_ns, twice(material, LEVER)
    if exposed_ns < LEAST_FRAC * step_ns or not is_worth(material, moved):
        return None
    rows = material.ask("memcpy_by_direction")
    told = Told(
        key="exposed_copies",
        section="kernels",
        insight=f"{format_ms(exposed_ns)} of a step ({percent(exposed_ns / step_ns)}) is copies "
        f"that nothing hides{_pageable(rows)}",
        evidence=f"exposed copies {exposed_ns / step_ns:.1%} of the step, told from "
        f"{LEAST_FRAC:.0%} on; over the recording: {_directions(rows)}",
        query=rows.query,
        action=_action(rows),
    )
    return finding(material, told, moved)


def _pageable(rows: Rows) -> str:
    total = sum(row["total_ms"] for row in rows.dicts())
    pageable = sum(row["total_ms"] for row in rows.dicts() if "Pageable" in row["direction"])
    return f", {percent(pageable / total)} of it from or to pageable memory" if pageable else ""


def _directions(rows: Rows) -> str:
    told = [
        f"{row['direction']} {row['copies']:,} times ({row['total_ms']:,.2f} ms)"
        for row in rows.dicts()[:3]
    ]
    return ", ".join(told) or "no copy"


def _action(rows: Rows) -> str:
    """By the direction that takes longest."""
    first = next(iter(rows.dicts()), None)
    if first is not None and "DtoD" in first["direction"]:
        return (
            "no .contiguous(), .clone() or change of layout between operators; write into views "
            "and buffers that are there; torch.compile fuses the rest"
        )
    return (
        "pin_memory=True and .to(device, non_blocking=True) on a stream of its own; keep data on "
        "the device; one large copy instead of many"
    )
