"""Calls in which the host waits for the device: `.item()`, `.cpu()`, synchronize."""

import numpy as np

from ingest.units import format_ms
from ingest.vocab import TaskKind
from whatif.postmortem.contract import Finding
from whatif.postmortem.findings.saving import Told, finding, is_worth, twice
from whatif.postmortem.material import Material
from whatif.postmortem.wording import percent
from whatif.transforms.host_calls import sync_names

LEVER = "waits of the host"
LEAST_FRAC = 0.01
"""Saving, of the step: what two runs of one job differ by."""
TOLD = 3


def rule(material: Material) -> Finding | None:
    """Waits of the host that a replay without them shows to cost time."""
    moved, step_ns = twice(material, LEVER), material.levers.step_ns
    if moved is None or not is_worth(material, moved) or moved.saving_ns < LEAST_FRAC * step_ns:
        return None
    query = material.ask.query("sync_cost")
    told = Told(
        key="synchronising_calls",
        section="idle",
        insight=f"calls that wait for the device keep the host from running ahead: without them "
        f"the step is {percent(moved.saving_frac)} shorter",
        evidence=f"replayed without these waits: {format_ms(moved.saving_ns)} less, told from "
        f"{LEAST_FRAC:.0%} of the step on; the host waits a step, mean "
        f"over ranks: {_waits(material)}",
        query=query,
        action=".item(), .cpu(), print(tensor) and boolean indexing out of the step, or once in "
        "many steps; non_blocking=True with pinned memory; no torch.cuda.synchronize()",
    )
    return finding(material, told, moved)


def _waits(material: Material) -> str:
    """The calls that the host waits in longest, ns per step."""
    graph, schedule = material.findings.graph, material.findings.baseline.schedule
    tasks = graph.tasks
    number, names = sync_names(graph)
    waits = np.flatnonzero((number >= 0) & (tasks.kind == TaskKind.HOST_WAIT) & (tasks.step >= 0))
    waits = waits[(waits > 0) & (tasks.lane[waits] == tasks.lane[waits - 1])]
    waited_ns = schedule.start_ns[waits] - schedule.end_ns[waits - 1]
    total_ns = np.bincount(number[waits], weights=waited_ns, minlength=len(names))
    times = np.bincount(number[waits], minlength=len(names))
    share = len(graph.steps) * len(graph.ranks)
    told = [
        f"{names[at]} {format_ms(round(total_ns[at] / share))} (calls: {times[at] / share:,.4g})"
        for at in np.argsort(-total_ns, kind="stable")[:TOLD].tolist()
        if times[at]
    ]
    return ", ".join(told) or "not at all"
