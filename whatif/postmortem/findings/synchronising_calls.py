"""Calls in which the host waits for the device: `.item()`, `.cpu()`, synchronize."""

from ingest.units import format_ms
from whatif.postmortem.contract import Finding
from whatif.postmortem.findings.saving import Told, finding, is_worth, twice
from whatif.postmortem.material import Material, Rows
from whatif.postmortem.wording import percent

LEVER = "waits of the host"
LEAST_FRAC = 0.01
"""Saving, of the step: what two runs of one job differ by."""
TOLD = 3


def rule(material: Material) -> Finding | None:
    """Waits of the host that a replay without them shows to cost time."""
    moved, step_ns = twice(material, LEVER), material.levers.step_ns
    if moved is None or not is_worth(material, moved) or moved.saving_ns < LEAST_FRAC * step_ns:
        return None
    calls = material.ask("sync_calls", limit=TOLD)
    told = Told(
        key="synchronising_calls",
        section="idle",
        insight=f"calls that wait for the device keep the host from running ahead: without them "
        f"the step is {percent(moved.saving_frac)} shorter",
        evidence=f"replayed without these waits: {format_ms(moved.saving_ns)} less, told from "
        f"{LEAST_FRAC:.0%} of the step on; longest over the recording: {_calls(calls)}",
        query=calls.query,
        action=".item(), .cpu(), print(tensor) and boolean indexing out of the step, or once in "
        "many steps; non_blocking=True with pinned memory; no torch.cuda.synchronize()",
    )
    return finding(material, told, moved)


def _calls(calls: Rows) -> str:
    told = [
        f"{row['calls']:,} {row['api']} in {row['inside']} ({row['total_ms']:,.1f} ms)"
        for row in calls.dicts()
    ]
    return ", ".join(told) or "none recorded as calls (the profiler leaves them out): implied waits"
