"""Devices that wait for the host."""

from ingest.units import format_ms
from whatif.postmortem.contract import Finding
from whatif.postmortem.findings.saving import Told, finding, is_worth, twice
from whatif.postmortem.material import Material
from whatif.postmortem.wording import percent

LEAST_PATH_FRAC = 0.25
"""Of the critical path that is host work: below it the device decides more than the host."""
LEAST_IDLE_FRAC = 0.05
"""Of the steps in which devices wait for a launch; a host twice as fast saves half of it, more than
two runs of one job differ by (1 %)."""
LEVER = "host"


def rule(material: Material) -> Finding | None:
    """Host work on the critical path while devices wait for launches."""
    reading, moved = material.answer.reading, twice(material, LEVER)
    if reading is None or moved is None or not is_worth(material, moved):
        return None
    on_path, idle = reading.path_frac.get("host", 0.0), reading.idle_launch_frac
    if on_path < LEAST_PATH_FRAC or (idle is not None and idle < LEAST_IDLE_FRAC):
        return None
    step_ns = material.levers.step_ns
    noun = "host work (Python, operators, calls)" if idle is not None else "CPU work"
    waiting = "" if idle is None else f"; devices wait for launches {percent(idle)} of the time"
    told = Told(
        key="host_bound",
        section="host",
        insight=f"{noun} is {percent(on_path)} of the critical path, "
        f"{format_ms(round(on_path * step_ns))} a step{waiting}",
        evidence=f"share of the critical path {on_path:.1%} (told from {LEAST_PATH_FRAC:.0%} on)"
        + ("" if idle is None else f", idle for launches {idle:.1%} (from {LEAST_IDLE_FRAC:.0%})")
        + f"; a host twice as fast saves {format_ms(moved.saving_ns)}",
        query=material.ask("critical_by_rank").query,
        action="fewer and larger operators (torch.compile, fused optimizers), less Python per "
        "step, work off the step's thread, threads pinned near their GPU; section Host names the "
        "calls",
    )
    return finding(material, told, moved)
