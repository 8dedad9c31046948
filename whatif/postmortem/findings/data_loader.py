"""Steps that wait for their batch."""

import numpy as np

from ingest.units import format_ms
from replay.results.causes import fetching_ns
from whatif.postmortem.contract import Finding
from whatif.postmortem.findings.saving import Told, changed, finding, is_worth
from whatif.postmortem.material import Material
from whatif.postmortem.wording import percent

AT_ONCE = "every batch there at once"
LEAST_FRAC = 0.02
"""Of the critical path, or of idle device time: twice what two runs of one job differ by."""


def rule(material: Material) -> Finding | None:
    """Time in the data loader on the path, or beside idle devices."""
    reading, step_ns = material.answer.reading, material.levers.step_ns
    if reading is None:
        return None
    on_path = reading.path_frac.get("input", 0.0)
    idle = reading.idle_input_frac or 0.0
    if max(on_path, idle) < LEAST_FRAC:
        return None
    graph = material.findings.graph
    loading_ns = fetching_ns(graph, material.findings.fetching)
    free = ~graph.tasks.fixed
    moved = changed(material, AT_ONCE, graph.tasks.dur_ns - np.where(free, loading_ns, 0))
    if moved is None or not is_worth(material, moved):
        return None
    told = Told(
        key="data_loader",
        section="host",
        insight=f"the step waits for its batch: the data loader is {percent(on_path)} of the "
        f"critical path, {format_ms(round(on_path * step_ns))} a step",
        evidence=f"{on_path:.1%} of the critical path is CPU work in the data loader; devices idle "
        f"{idle:.1%} of the steps while the host is in it; replayed with batches that are there at "
        f"once: {format_ms(moved.saving_ns)} less; told from {LEAST_FRAC:.0%} on",
        query=material.ask.query("data_loading"),
        action="more workers (num_workers), pin_memory=True, prefetch_factor, "
        "persistent_workers=True; move decoding and augmentation off the step's thread",
    )
    return finding(material, told, moved, what_if=AT_ONCE)
