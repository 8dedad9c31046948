"""Devices that wait for the host."""

import numpy as np

from ingest.units import format_ms
from ingest.vocab import TaskKind
from replay.results.causes import fetching_ns
from whatif.postmortem.contract import Finding
from whatif.postmortem.findings.allocator_calls import is_allocation
from whatif.postmortem.findings.saving import Told, changed, finding, is_worth, twice
from whatif.postmortem.material import Material
from whatif.postmortem.wording import percent
from whatif.report.levers import MovedFacts
from whatif.transforms.host_scale import KNOWN_ERROR

LEAST_PATH_FRAC = 0.25
"""Of the critical path that is host work: below it the device decides more than the host."""
LEAST_IDLE_FRAC = 0.05
"""Of the steps in which the devices of the ranks on the path wait for a launch; a host twice as
fast saves half of it, more than two runs of one job differ by (1 %)."""
LEVER = "host"
ALONE = "host twice as fast, data loader and allocations as they are"
LEAST_TOLD_FRAC = 0.02
"""Of the critical path in the data loader or in allocation calls, which have rules of their own."""


def rule(material: Material) -> Finding | None:
    """Host work on the critical path while devices wait for launches.

    Without a device the work of the CPU is the work itself, and no finding.
    """
    reading = material.answer.reading
    if reading is None or not is_worth(material, twice(material, LEVER)):
        return None
    on_path = reading.path_frac.get("host", 0.0)
    idle = material.findings.run.bound.path_idle_launch_frac
    if idle is None or idle < LEAST_IDLE_FRAC or on_path < LEAST_PATH_FRAC:
        return None
    moved = _saving(material)
    if moved is None or not is_worth(material, moved):
        return None
    step_ns = material.levers.step_ns
    whose = "devices" if len(material.answer.trace.ranks) == 1 else "devices on the path"
    told = Told(
        key="host_bound",
        section="host",
        insight=f"host work (Python, operators, calls) is {percent(on_path)} of the critical path, "
        f"{format_ms(round(on_path * step_ns))} a step: {whose} wait for launches {percent(idle)} "
        "of the time",
        evidence=f"share of the critical path {on_path:.1%} (told from {LEAST_PATH_FRAC:.0%} on), "
        f"idle for launches {idle:.1%} (from {LEAST_IDLE_FRAC:.0%}); a host twice as fast "
        f"(data loader and allocations apart) saves {format_ms(moved.saving_ns)}",
        query=material.ask.query("critical_by_rank"),
        action="fewer and larger operators (torch.compile, fused optimizers), less Python per "
        "step, work off the step's thread, threads pinned near their GPU; section Host names the "
        "calls",
        known_errors=(KNOWN_ERROR,),
    )
    return finding(material, told, moved, what_if="" if moved.flag else ALONE)


def _saving(material: Material) -> MovedFacts | None:
    """A host twice as fast; what other rules tell of it stays as long as it is."""
    graph, path = material.findings.graph, material.findings.baseline.path
    tasks = graph.tasks
    told_ns = fetching_ns(graph, material.findings.fetching)
    told_ns = np.where(is_allocation(graph), tasks.dur_ns, told_ns)
    if told_ns[path.task].sum() < LEAST_TOLD_FRAC * path.length_ns:
        return twice(material, LEVER)
    work = np.isin(tasks.kind, (TaskKind.HOST_WORK, TaskKind.HOST_CALL)) & ~tasks.fixed
    less_ns = np.where(work, (tasks.dur_ns - told_ns) // 2, 0)
    return changed(material, ALONE, tasks.dur_ns - less_ns)
